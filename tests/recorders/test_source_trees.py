"""The two source-tree digests, by their vectors and against trees that try to leave the set."""

import contextlib
import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError, InputError, NothingError, UsageError
from countermark.attestations.located import JsonValue
from countermark.recorders import source_tree
from countermark.recorders.git_objects import TreeEntry, parse_commit, parse_tree
from countermark.recorders.source import read_include, record_source
from countermark.recorders.source_tree import LineEndings, SourceFile, countermark_digest, parse_include, sparkcache_digest

from .builders import commit_all, git, new_repository, vector_repository, write_files

TWO_FILES = "9e1aa04666bbd3491a8adc01d5e0bdb5108a7e69a4afefafb603a8f309d49a4c"
WITH_LINK = "5983ff7fe689c586e269ccfdd346085ca7988dc3b07b15871692e5d94e7e3e71"
SPARKCACHE = "9634d2076d550cbcdc195e2f2fc6254e750b5238801a7dfbb6d2b8652e02a8dc"
OURS = "countermark-source-tree/v1"
THEIRS = "sparkcache-source-tree/v1"


def digests(repository: Path, *asked: str, include: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    found = record_source(repository, source_trees=asked, include=listed(repository, include)).predicate["source_trees"]
    assert isinstance(found, list)
    return [(str(tree["digest"]).removeprefix("source-tree:sha256:"), files_of(tree)) for tree in found if isinstance(tree, dict)]


def listed(repository: Path, include: tuple[str, ...]) -> Path | None:
    path = repository.with_name("include.txt")
    path.write_text("".join(f"{line}\n" for line in include))
    return path if include else None


def files_of(tree: dict[str, JsonValue]) -> int:
    assert isinstance(tree["files"], int)
    return tree["files"]


def member(path: str, data: bytes, mode: int = 0o100644) -> SourceFile:
    return SourceFile(path.encode(), mode, len(data), hashlib.sha256(data).digest())


def test_vectors_without_git() -> None:
    two = [member("a.py", b"x = 1\r\n"), member("pkg/b.txt", b"hello\n")]
    assert countermark_digest(two) == TWO_FILES
    more = [member("link", b"a.py", 0o120000), member("run", b"#!/bin/sh\n", 0o100755)]
    assert countermark_digest([*more, *two]) == WITH_LINK
    normalised = {b"a.py": hashlib.sha256(b"x = 1\n").digest(), b"pkg/b.txt": hashlib.sha256(b"hello\n").digest()}
    assert sparkcache_digest(normalised) == SPARKCACHE


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_vectors_from_git_objects(tmp_path: Path, object_format: str) -> None:
    repository = vector_repository(tmp_path / "r", object_format)
    assert digests(repository, OURS) == [(WITH_LINK, 4)]
    both = ("a.py", "pkg/")
    assert digests(repository, OURS, THEIRS, include=both) == [(TWO_FILES, 2), (SPARKCACHE, 2)]
    assert digests(repository, include=both) == [(TWO_FILES, 2)]
    assert digests(repository) == []


def test_the_work_tree_and_its_attributes_play_no_part(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    write_files(repository, {"a.py": b"changed", "pkg/b.txt": b"changed"})
    git(repository, "config", "core.autocrlf", "true")
    assert digests(repository, OURS) == [(WITH_LINK, 4)]


def test_root_and_include_are_recorded_as_asked(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    trees = record_source(repository, source_trees=[f"{OURS}:./pkg/", f"{OURS}:"]).predicate["source_trees"]
    assert isinstance(trees, list)
    assert [tree["root"] for tree in trees if isinstance(tree, dict)] == ["pkg", ""]
    expected = countermark_digest([member("b.txt", b"hello\n")])
    assert digests(repository, f"{OURS}:pkg", include=("b.txt",)) == [(expected, 1)]


def test_sparkcache_leaves_out_builds_and_caches(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "r")
    kept = {"a.py": b"x = 1\r\n", "pkg/b.txt": b"hello\n"}
    left_out = {"__pycache__/c": b"1", "pkg/build/x": b"1", "pkg/.pytest_cache/x": b"1", "a.pyc": b"1", "pkg/b.pyo": b"1"}
    write_files(repository, kept | left_out)
    (repository / "pkg/build/link").symlink_to("x")
    commit_all(repository)
    assert digests(repository, THEIRS) == [(SPARKCACHE, 2)]
    write_files(repository, {"build-cuda/x": b"1"})
    commit_all(repository, "build-cuda is another name")
    assert digests(repository, THEIRS)[0] != (SPARKCACHE, 2)


@given(st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b""]), max_size=12))
def test_line_endings_do_not_depend_on_the_cut(pieces: list[bytes]) -> None:
    hasher = LineEndings()
    for piece in pieces:
        hasher.update(piece)
    assert hasher.digest() == hashlib.sha256(b"".join(pieces).replace(b"\r\n", b"\n")).digest()


def refused(repository: Path, code: Code, *asked: str, include: tuple[str, ...] = (), names: str = "") -> None:
    with pytest.raises(CountermarkError) as caught:
        record_source(repository, source_trees=asked or [OURS], include=listed(repository, include))
    assert caught.value.code is code
    assert names in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize(
    "target",
    ["../outside", "/etc/passwd", "absent", "pkg/../../outside", "loop2", "loop1", "a.py/x", "a.py/", "pkg/deep", "pkg/deep/../../.."],
)
def test_a_link_that_leaves_the_set_is_named(tmp_path: Path, target: str) -> None:
    repository = vector_repository(tmp_path / "r")
    (repository / "loop1").symlink_to(target if target.startswith("loop") else "a.py")
    (repository / "loop2").symlink_to("loop1")
    (repository / "pkg/leaving").symlink_to(f"../{target}" if not target.startswith("/") else target)
    if target == "loop1":
        (repository / "pkg/leaving").unlink()
        (repository / "loop1").unlink()
        (repository / "loop1").symlink_to("loop2")
    commit_all(repository)
    refused(repository, Code.UNKNOWN_NAME, names="loop" if target.startswith("loop") else "pkg/leaving")


@pytest.mark.parametrize("target", ["../a.py", "../pkg", "../pkg/", "./b.txt", "../linked/b.txt", "../linked/../a.py", "..", "../link"])
def test_a_link_inside_the_set_is_followed_through_others(tmp_path: Path, target: str) -> None:
    repository = vector_repository(tmp_path / "r")
    (repository / "linked").symlink_to("pkg")
    (repository / "pkg/staying").symlink_to(target)
    commit_all(repository)
    assert digests(repository, OURS)[0][1] == 6
    refused(repository, Code.UNKNOWN_NAME, THEIRS, names="link")


def test_a_link_out_of_the_include_list_or_the_root(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    (repository / "pkg/up").symlink_to("../a.py")
    commit_all(repository)
    refused(repository, Code.UNKNOWN_NAME, include=("link",), names="link")
    refused(repository, Code.UNKNOWN_NAME, f"{OURS}:pkg", names="up")
    assert digests(repository, OURS, include=("link", "a.py"))[0][1] == 2


def test_submodules_and_missing_includes_are_named(tmp_path: Path) -> None:
    inner = vector_repository(tmp_path / "inner")
    repository = vector_repository(tmp_path / "r")
    git(repository, "submodule", "--quiet", "add", str(inner), "vendored")
    commit_all(repository)
    refused(repository, Code.UNKNOWN_NAME, names="vendored")
    refused(repository, Code.UNKNOWN_NAME, THEIRS, names="vendored")
    assert digests(repository, OURS, include=("a.py", "pkg/"))[0] == (TWO_FILES, 2)
    refused(repository, Code.UNKNOWN_NAME, include=("absent",), names="absent")
    refused(repository, Code.UNKNOWN_NAME, include=("*.py",), names="globs")
    refused(repository, Code.UNKNOWN_NAME, include=("pkg",), names="pkg/")
    refused(repository, Code.UNKNOWN_NAME, include=("a.py/",), names="a.py/")
    refused(repository, Code.UNKNOWN_NAME, f"{OURS}:absent", names="absent")
    refused(repository, Code.UNKNOWN_NAME, f"{OURS}:a.py", names="a.py")


def test_requests_without_meaning(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    with pytest.raises(UsageError):
        record_source(repository, source_trees=["source-tree/v9"])
    refused(repository, Code.UNKNOWN_NAME, f"{OURS}:../other")
    empty = new_repository(tmp_path / "empty")
    git(empty, "commit", "-q", "--allow-empty", "-m", "nothing")
    refused(empty, Code.NOTHING_EVALUATED)
    refused(empty, Code.NOTHING_EVALUATED, THEIRS)


def test_paths_that_are_not_utf8(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "r")
    Path(os.fsdecode(os.fsencode(repository) + b"/caf\xe9")).write_bytes(b"x")
    commit_all(repository)
    expected = countermark_digest([SourceFile(b"caf\xe9", 0o100644, 1, hashlib.sha256(b"x").digest())])
    assert digests(repository, OURS) == [(expected, 1)]


def test_include_grammar(tmp_path: Path) -> None:
    text = "# the set\n\n  pkg/ \r\na.py\na.py\n./b\n"
    assert parse_include(text, "set") == ("a.py", "b", "pkg/")
    for bad in ("/etc", "../x", "a//b", "a/../b"):
        with pytest.raises(InputError) as caught:
            parse_include(f"a.py\n{bad}\n", "set")
        assert str(caught.value.at) == "set:2"
    with pytest.raises(NothingError):
        parse_include("# nothing\n", "set")
    (tmp_path / "set").write_bytes(b"\xff")
    with pytest.raises(InputError):
        read_include(tmp_path / "set")
    with pytest.raises(InputError):
        read_include(tmp_path)
    (tmp_path / "set").write_bytes(b"a.py")
    assert read_include(tmp_path / "set") == ("a.py",)


def test_a_tree_with_more_entries_than_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten trees of ten equal entries name 10^10 files; the walk stops long before."""
    repository = new_repository(tmp_path / "r", bare=True)
    oid, kind, mode = git(repository, "hash-object", "-w", "--stdin", given=b"x"), "blob", "100644"
    for _ in range(10):
        listing = "".join(f"{mode} {kind} {oid}\t{name}\n" for name in range(10))
        oid, kind, mode = git(repository, "mktree", given=listing.encode()), "tree", "040000"
    git(repository, "update-ref", "HEAD", git(repository, "commit-tree", oid, given=b"bomb"))
    monkeypatch.setattr(source_tree, "MAX_ENTRIES", 10_000)
    refused(repository, Code.TOO_LARGE)


def test_raw_objects_that_git_would_not_write() -> None:
    blob = bytes(20)
    good = b"100644 a\0" + blob + b"40000 d\0" + blob
    assert parse_tree(good, 40, "t") == (TreeEntry(0o100644, b"a", "00" * 20), TreeEntry(stat.S_IFDIR, b"d", "00" * 20))
    for bad in (good[:-1], good + b"1", b"100644 a\0" + blob + b"100644 a\0" + blob, b"100644 ..\0" + blob, b"100644 a/b\0" + blob):
        with pytest.raises(InputError):
            parse_tree(bad, 40, "t")
    with pytest.raises(InputError):
        parse_tree(good, 64, "t")
    for raw in (b"", b"tree abc\nauthor ", b"parent " + b"a" * 40, b"tree " + b"a" * 40 + b"\nparent x\n"):
        with pytest.raises(InputError):
            parse_commit(raw, "c")


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_object_readers(data: bytes) -> None:
    for read in (lambda: parse_commit(data, "c"), lambda: parse_tree(data, 40, "t")):
        with contextlib.suppress(InputError):
            read()
