"""Repositories made on the spot for the tests of the recorders, by git itself."""

import os
import subprocess
from pathlib import Path

GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(where: Path, *arguments: str, given: bytes = b"") -> str:
    """What git prints, stripped; the test fails when git does."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | GIT_ENVIRONMENT
    command = ["git", "-c", "protocol.file.allow=always", "-C", str(where), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, check=True, env=environment)
    return done.stdout.decode().strip()


def new_repository(where: Path, object_format: str = "sha1", *, bare: bool = False) -> Path:
    """An empty repository at `where`."""
    where.mkdir(parents=True)
    git(where, "init", "-q", f"--object-format={object_format}", "--initial-branch=main", *(["--bare"] if bare else []))
    return where


def write_files(where: Path, files: dict[str, bytes]) -> None:
    """Write files with the folders they need; a path that ends in `*` is executable."""
    for name, data in files.items():
        path = where / name.removesuffix("*")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith("*") else 0o644)


def commit_all(where: Path, message: str = "one") -> str:
    """Commit everything; the commit id as git says it."""
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", message)
    return git(where, "rev-parse", "HEAD")


def vector_repository(where: Path, object_format: str = "sha1") -> Path:
    """The files of the second vector of `countermark-source-tree/v1`, committed."""
    repository = new_repository(where, object_format)
    write_files(repository, {"a.py": b"x = 1\r\n", "pkg/b.txt": b"hello\n", "run*": b"#!/bin/sh\n"})
    (repository / "link").symlink_to("a.py")
    commit_all(repository)
    return repository
