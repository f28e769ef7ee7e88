"""Folder and commit as trees: the same files for the same pattern, and no way out of the root."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import InputError
from countermark.contracts.tree import Tree
from countermark.recorders.file_trees import FolderTree, RevisionTree
from countermark.recorders.git import GitRepository

from .builders import commit_all, git, new_repository, write_files

FORMATS = ("sha1", "sha256")
FILES = {
    "contract.yaml": b"c",
    "builder/pins.json": b"{}",
    "profiles/one.yaml": b"1",
    "profiles/two.yaml": b"2",
    "profiles/deep/three.yaml": b"3",
    "profiles/.hidden.yaml": b"h",
    "docs/a[1].md": b"a",
    "docs/é.md": b"e",
    "run*": b"#!/bin/sh\n",
}


@pytest.fixture(autouse=True)
def _no_user_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def linked_repository(where: Path, object_format: str = "sha1") -> Path:
    """Files, links that stay inside, links that lead out, and links that lead nowhere; committed."""
    repository = new_repository(where / "repository", object_format)
    write_files(where, {"outside/secret.yaml": b"secret"})
    write_files(repository, FILES)
    links = {
        "profiles/same.yaml": "one.yaml",
        "profiles/up.yaml": "../builder/../builder/pins.json",
        "inside": "profiles",
        "profiles/out.yaml": "../../outside/secret.yaml",
        "profiles/absolute.yaml": str(where / "outside" / "secret.yaml"),
        "out": "../outside",
        "profiles/broken.yaml": "nothing.yaml",
        "round": "round",
    }
    for name, target in links.items():
        (repository / name).symlink_to(target)
    commit_all(repository)
    return repository


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One repository of each object format, which no test changes."""
    return {object_format: linked_repository(tmp_path_factory.mktemp(object_format), object_format) for object_format in FORMATS}


@pytest.fixture(params=["folder", *FORMATS])
def tree(request: pytest.FixtureRequest, repositories: dict[str, Path]) -> Iterator[Tree]:
    kind: str = request.param
    if kind == "folder":
        yield FolderTree(repositories["sha1"])
        return
    with GitRepository(repositories[kind]) as repository:
        yield RevisionTree(repository, "HEAD")


PROFILES = [f"profiles/{name}.yaml" for name in (".hidden", "absolute", "broken", "one", "out", "same", "two", "up")]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("profiles/*.yaml", PROFILES),
        ("profiles/**", sorted([*PROFILES, "profiles/deep/three.yaml"])),
        ("profiles/**/t*.yaml", ["profiles/deep/three.yaml", "profiles/two.yaml"]),
        ("**/*.yaml", sorted(["contract.yaml", *PROFILES, "profiles/deep/three.yaml"])),
        ("*/pins.json", ["builder/pins.json"]),
        ("profiles/???.yaml", ["profiles/one.yaml", "profiles/out.yaml", "profiles/two.yaml"]),
        ("docs/a[1].*", ["docs/a[1].md"]),
        ("docs/?.md", ["docs/é.md"]),
        ("*", ["contract.yaml", "round", "run"]),
        ("builder/pins.json", ["builder/pins.json"]),
        ("docs/a[1].md", ["docs/a[1].md"]),
        ("inside/one.yaml", ["inside/one.yaml"]),
        ("builder", []),
        ("inside", []),
        ("nothing.json", []),
        ("nowhere/*.json", []),
        ("builder/pins.json/*", []),
        ("inside/*.yaml", []),
        ("out/*.yaml", []),
    ],
)
def test_a_pattern_gives_the_same_files_of_both(tree: Tree, pattern: str, found: list[str]) -> None:
    assert [path for path in tree.glob(pattern) if path != "out"] == found  # what a link out of a commit leads to, nobody can know


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("builder/pins.json", b"{}"),
        ("run", b"#!/bin/sh\n"),
        ("docs/é.md", b"e"),
        ("profiles/same.yaml", b"1"),
        ("profiles/up.yaml", b"{}"),
        ("inside/two.yaml", b"2"),
        ("inside/deep/three.yaml", b"3"),
    ],
)
def test_a_file_is_read_also_through_links_that_stay_inside(tree: Tree, path: str, data: bytes) -> None:
    assert tree.read(path) == data


@pytest.mark.parametrize(
    "path",
    [
        "profiles/out.yaml",
        "profiles/absolute.yaml",
        "out/secret.yaml",
        "profiles/broken.yaml",
        "round",
        "builder",
        "inside",
        "nothing.json",
        "builder/pins.json/x",
    ],
)
def test_a_path_that_leads_out_or_nowhere_is_refused_with_its_name(tree: Tree, path: str) -> None:
    with pytest.raises(InputError) as caught:
        tree.read(path)
    assert (caught.value.code, caught.value.exit) == (Code.UNREADABLE, ExitCode.INVALID)
    assert caught.value.at
    assert caught.value.at.file == path


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../outside/secret.yaml", "a//b", "./contract.yaml", "a/", ".git/config", "a\0b"])
def test_a_path_that_is_not_plain_is_refused(tree: Tree, path: str) -> None:
    for ask in (tree.read, tree.glob):
        with pytest.raises(InputError, match="relative path"):
            ask(path)


def test_a_folder_shows_what_lies_there_now_and_a_commit_what_was_committed(tmp_path: Path) -> None:
    repository = linked_repository(tmp_path)
    write_files(repository, {"profiles/one.yaml": b"changed", "profiles/new.yaml": b"new"})
    with GitRepository(repository) as opened:
        commit = RevisionTree(opened, "HEAD")
        assert (FolderTree(repository).read("profiles/one.yaml"), commit.read("profiles/one.yaml")) == (b"changed", b"1")
        assert FolderTree(repository).glob("profiles/new.yaml") == ("profiles/new.yaml",)
        assert commit.glob("profiles/new.yaml") == ()


def test_a_commit_is_read_below_a_folder_and_no_higher(tmp_path: Path) -> None:
    with GitRepository(linked_repository(tmp_path)) as opened:
        below = RevisionTree(opened, "HEAD", "profiles")
        assert below.glob("t*.yaml") == ("two.yaml",)
        assert below.read("same.yaml") == b"1"
        with pytest.raises(InputError):
            below.read("up.yaml")


def test_an_older_commit_is_another_tree(tmp_path: Path) -> None:
    repository = linked_repository(tmp_path)
    first = git(repository, "rev-parse", "HEAD")
    write_files(repository, {"contract.yaml": b"second"})
    commit_all(repository, "two")
    with GitRepository(repository) as opened:
        assert RevisionTree(opened, first).read("contract.yaml") == b"c"
        assert RevisionTree(opened, "HEAD").read("contract.yaml") == b"second"
        with pytest.raises(InputError):
            RevisionTree(opened, "no-such-branch")


def test_a_name_that_is_not_text_is_told_and_not_passed_over(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    write_files(repository, {"docs/a.md": b"a"})
    os.close(os.open(os.fsencode(repository / "docs") + b"/\xff.md", os.O_CREAT | os.O_WRONLY))
    commit_all(repository)
    with GitRepository(repository) as opened:
        for tree in (FolderTree(repository), RevisionTree(opened, "HEAD")):
            with pytest.raises(InputError, match="not printable"):
                tree.glob("docs/*.md")
            assert tree.glob("docs/a*.md") == ("docs/a.md",)


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    tree = FolderTree(tmp_path)
    assert tree.glob("p*") == ("pipe",)
    with pytest.raises(InputError, match="not a regular file"):
        tree.read("pipe")


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"closed/a.yaml": b""})
    list_folder = os.scandir

    def closed(path: str) -> object:
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(InputError, match="Permission denied"):
        FolderTree(tmp_path).glob("*/a.yaml")


def test_there_is_no_tree_without_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        FolderTree(tmp_path / "nothing")
