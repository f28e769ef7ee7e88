"""A git repository, read through the git program and believed only where bytes hash to the id asked for.

The repository may be hostile: nothing it configures is run (hooks, fsmonitor, filters, transports), replacement objects are not
followed, and the caller's GIT_* environment does not redirect the reading. Two things are kept from the caller: where the
user's and the system's configuration lie, because `safe.directory` is only honoured from there.
"""

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, InputError, Location, NothingError, UsageError
from countermark.recorders.files import CHUNK_BYTES
from countermark.recorders.git_objects import object_hash

MAX_COMMIT_BYTES = 4 << 20
MAX_TREE_BYTES = 64 << 20

_KEPT_ENVIRONMENT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_SET_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
_DEADLINE_S = 300
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "protocol.allow": "never",  # a partial clone would fetch a missing object through whatever transport its configuration names
    "core.trustctime": "true",  # these three: a changed file must not look unchanged because the repository says so
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    "core.splitIndex": "false",
}
_REMOTE_SCP = re.compile(r"(?:[^@/\s:]+@)?([A-Za-z0-9][A-Za-z0-9.-]+):(?!//|:)/?([^\s\\]+)\Z")
_REMOTE_URL = re.compile(r"(https?|ssh|git)://(?:[^@/\s]*@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:\d+)?/([^\s\\?#]+)", re.ASCII)


class GitRepository:
    """An open repository; a context manager, because one `git cat-file --batch` serves all objects."""

    def __init__(self, path: Path) -> None:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib raises where a name cannot be looked up
            raise InputError(Code.UNREADABLE, "there is no such folder", at=Location(str(path)), fix="give the folder of a git repository")
        self._batch: subprocess.Popen[bytes] | None = None
        self.path = path
        said = self.run("rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir").decode(errors="surrogateescape")
        bare, inside, git_dir = said.rstrip("\n").split("\n", 2)
        if bare == "false" and inside == "false":
            raise self.error(Code.UNREADABLE, "this is the inside of a .git folder", "give the work tree that it belongs to")
        self.git_dir = Path(git_dir)
        self.is_bare = bare == "true"
        if not self.is_bare:
            self.path = Path(os.fsdecode(self.run("rev-parse", "--show-toplevel")).removesuffix("\n"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._batch:
            self._batch.kill()
            self._batch.communicate()
            self._batch = None

    def error(self, code: Code, message: str, fix: str) -> InputError:
        """An error about this repository."""
        return InputError(code, message, at=Location(str(self.path)), fix=fix)

    def run(
        self,
        *arguments: str,
        given: bytes = b"",
        settings: Mapping[str, str] = _SETTINGS,
        index: Path | None = None,
        may_fail: bool = False,
    ) -> bytes:
        """What git prints; `given` is its input, `index` replaces the index file, `settings` come on top of the hardening ones.

        A failure that is not allowed is an `InputError`.
        """
        environment = _environment(settings) | ({"GIT_INDEX_FILE": str(index)} if index else {})
        try:
            done = subprocess.run(
                self._command(arguments), input=given, capture_output=True, env=environment, check=False, timeout=_DEADLINE_S
            )
        except subprocess.TimeoutExpired:
            message = f"git {arguments[0]} did not end within {_DEADLINE_S} s"
            raise CannotTellError(Code.UNREADABLE, message, at=Location(str(self.path)), fix="look at its configuration") from None
        except (OSError, ValueError) as error:
            raise _no_git(error) from None
        if done.returncode and not may_fail:
            raise self._complaint(done.stderr.decode(errors="replace") or f"(nothing, and ended with {done.returncode})")
        return b"" if done.returncode else done.stdout

    def commit(self, rev: str) -> Digest:
        """The full id of the commit that `rev` names; tags are peeled."""
        if rev.startswith("-") or not rev.isprintable():
            raise UsageError(Code.UNKNOWN_NAME, f"{rev!r} is not a revision", fix="give a commit, branch or tag")
        found = self.run("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}", may_fail=True).decode().strip()
        if found:
            return Digest(DigestKind.GIT_COMMIT, found)
        if rev == "HEAD":
            raise NothingError(
                Code.NOTHING_EVALUATED, "the repository has no commit yet", at=Location(str(self.path)), fix="commit, or give --rev"
            )
        raise self.error(
            Code.UNKNOWN_NAME, f"no single commit is named {rev!r}", "give the full commit id, a branch or a tag; fetch it first"
        )

    def head(self) -> Digest | None:
        """The commit checked out, or `None` before the first one."""
        found = self.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail=True).decode().strip()
        return Digest(DigestKind.GIT_COMMIT, found) if found else None

    def origin(self) -> str | None:
        """The address of remote `origin` in one public form, without credentials; `None` for a local path or no remote."""
        said = self.run("config", "--get", "remote.origin.url", may_fail=True)
        return public_address(os.fsdecode(said).removesuffix("\n"))

    def read(self, oid: str, kind: str, limit_bytes: int) -> bytes:
        """The content of one object, hashed and compared with its id."""
        parts: list[bytes] = []
        self.consume(oid, kind, parts.append, limit_bytes)
        return b"".join(parts)

    def consume(self, oid: str, kind: str, sink: Callable[[bytes], object], limit_bytes: int | None = None) -> int:
        """Feed the content of one object to `sink` piece by piece; its size in bytes once the whole of it hashed to `oid`."""
        output, size = self._ask(oid, kind)
        if limit_bytes is not None and size > limit_bytes:
            raise self.error(Code.TOO_LARGE, f"{kind} {oid} has {size} bytes; at most {limit_bytes} are read", "check the repository")
        hasher, left = object_hash(kind, size, len(oid)), size
        while left:
            piece = output.read(min(CHUNK_BYTES, left))
            if not piece:
                raise self._unreadable(kind, oid)
            hasher.update(piece)
            sink(piece)
            left -= len(piece)
        output.read(1)
        if hasher.hexdigest() != oid:
            raise self.error(Code.BAD_DIGEST, f"the bytes of {kind} {oid} hash to {hasher.hexdigest()}", "run git fsck and fetch it again")
        return size

    def _ask(self, oid: str, kind: str) -> tuple[IO[bytes], int]:
        batch = self._batch or self._start_batch()
        if not batch.stdin or not batch.stdout:
            raise self._unreadable(kind, oid)
        try:
            batch.stdin.write(f"{oid}\n".encode())
            batch.stdin.flush()
        except BrokenPipeError:
            raise self._unreadable(kind, oid) from None
        said = batch.stdout.readline(1024).split()
        if said[:2] != [oid.encode(), kind.encode()]:
            raise self._unreadable(kind, oid)
        return batch.stdout, int(said[2])

    def _start_batch(self) -> subprocess.Popen[bytes]:
        self._batch = subprocess.Popen(
            self._command(("cat-file", "--batch")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(_SETTINGS),
        )
        return self._batch

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return ["git", "--no-replace-objects", "--no-pager", "--literal-pathspecs", "-C", str(self.path), *arguments]

    def _unreadable(self, kind: str, oid: str) -> InputError:
        return self.error(Code.UNREADABLE, f"git cannot give {kind} {oid}", "run git fsck; fetch it if the clone is shallow or partial")

    def _complaint(self, said: str) -> InputError:
        if "dubious ownership" in said:
            fix = f"if you trust it: git config --global --add safe.directory {self.path.absolute()}"
            return self.error(Code.UNREADABLE, "the repository belongs to another user, and git will not read it", fix)
        if "not a git repository" in said:
            return self.error(Code.UNREADABLE, "this is not a git repository", "give the folder of one")
        first = said.strip().partition("\n")[0]
        return self.error(Code.UNREADABLE, f"git says: {first}", "mend the repository")


def public_address(remote: str) -> str | None:
    """`https://HOST/PATH` for the address of a remote: user, password, query and `.git` dropped, ssh and scp forms rewritten.

    A path of this machine says nothing to a reader elsewhere, and an unknown transport may be a command: both are `None`.
    """
    if url := _REMOTE_URL.match(remote):
        scheme, host, port, path = url.groups()
        web = scheme in ("http", "https")
        base = f"{scheme if web else 'https'}://{host.lower()}{(port or '') if web else ''}"
    elif scp := _REMOTE_SCP.match(remote):
        base, path = f"https://{scp[1].lower()}", scp[2]
    else:
        return None
    path = path.strip("/").removesuffix(".git")
    return f"{base}/{path}" if path and path.isascii() and path.isprintable() else None


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT_ENVIRONMENT}
    pairs = {**settings, **_SETTINGS}
    numbered = {"GIT_CONFIG_COUNT": str(len(pairs))}  # unlike -c, this takes a name that holds "="
    for number, (name, value) in enumerate(pairs.items()):
        numbered |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return kept | _SET_ENVIRONMENT | numbered


def _no_git(error: OSError | ValueError) -> CannotTellError:
    return CannotTellError(
        Code.UNSUPPORTED, f"the git program cannot be run: {error}", fix="install git 2.31 or newer, and have it on PATH"
    )
