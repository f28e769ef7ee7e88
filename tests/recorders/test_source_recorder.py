"""`record source` against git itself."""

import base64
import hashlib
import os
from pathlib import Path

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, NothingError, UsageError
from countermark.attestations.located import JsonValue
from countermark.attestations.schema import problems
from countermark.recorders.git import public_address
from countermark.recorders.source import check_source, record_source

from .builders import commit_all, git, new_repository, vector_repository, write_files

FORMATS = ("sha1", "sha256")


@pytest.fixture(autouse=True)
def _no_user_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def dirty(repository: Path, rev: str = "HEAD") -> tuple[JsonValue, JsonValue]:
    predicate = record_source(repository, rev).predicate
    return predicate["dirty"], predicate["dirty_paths"]


@pytest.mark.parametrize("object_format", FORMATS)
def test_commit_tree_and_parents_are_those_of_git(tmp_path: Path, object_format: str) -> None:
    repository = vector_repository(tmp_path / "r", object_format)
    first = git(repository, "rev-parse", "HEAD")
    write_files(repository, {"more": b"1"})
    second = commit_all(repository, "two")
    recording = record_source(repository)
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    assert recording.predicate_name == "source"
    assert recording.predicate["commit"] == f"git-commit:{second}"
    assert recording.predicate["tree"] == f"git-tree:{tree}"
    assert recording.predicate["parents"] == [f"git-commit:{first}"]
    assert [subject.digests for subject in recording.subjects] == [{"gitCommit": second}, {"gitTree": tree}]
    raw = base64.b64decode(str(recording.predicate["object"]))
    assert hashlib.new(object_format, b"commit %d\0" % len(raw) + raw).hexdigest() == second
    assert set(recording.predicate) == {"commit", "tree", "parents", "object", "dirty", "dirty_paths", "source_trees"}
    assert problems("source", recording.predicate) == []


@pytest.mark.parametrize("object_format", FORMATS)
def test_dirty_as_git_describe_means_it(tmp_path: Path, object_format: str) -> None:
    repository = vector_repository(tmp_path / "r", object_format)
    first = git(repository, "rev-parse", "HEAD")
    assert dirty(repository) == (False, 0)
    (repository / "untracked").write_bytes(b"")
    assert dirty(repository) == (False, 0)
    assert any("untracked" in note for note in record_source(repository).notes)
    (repository / "a.py").write_bytes(b"x = 2\n")
    (repository / "run").chmod(0o644)
    assert dirty(repository) == (True, 2)
    git(repository, "add", "-A")
    assert dirty(repository) == (True, 3)
    commit_all(repository, "two")
    (repository / "a.py").unlink()
    assert dirty(repository) == (True, 1)
    assert dirty(repository, first) == (False, 0)
    assert dirty(repository, "main") == (True, 1)


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_a_path_that_git_was_told_not_to_look_at_is_looked_at(tmp_path: Path, mark: str) -> None:
    repository = vector_repository(tmp_path / "r")
    git(repository, "update-index", mark, "a.py")
    assert dirty(repository) == (False, 0)
    (repository / "a.py").write_bytes(b"x = 2\n")
    assert git(repository, "status", "--porcelain") == ""
    assert dirty(repository) == (True, 1)
    assert git(repository, "ls-files", "-v", "a.py")[0] in "hS"


def test_a_sparse_checkout_is_clean(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    git(repository, "sparse-checkout", "set", "--no-cone", "/a.py")
    assert not (repository / "pkg").exists()
    assert dirty(repository) == (False, 0)


def test_a_changed_submodule_makes_dirty(tmp_path: Path) -> None:
    inner = vector_repository(tmp_path / "inner")
    outer = new_repository(tmp_path / "outer")
    git(outer, "submodule", "--quiet", "add", str(inner), "sub")
    commit_all(outer)
    assert dirty(outer) == (False, 0)
    (outer / "sub/untracked").write_bytes(b"")
    assert dirty(outer) == (False, 0)
    (outer / "sub/a.py").write_bytes(b"changed")
    assert dirty(outer) == (True, 1)
    write_files(outer / "sub", {"new": b""})
    commit_all(outer / "sub", "moves")
    assert dirty(outer) == (True, 1)


def test_any_revision_of_bare_repositories_and_worktrees(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "-a", "v1", "-m", "annotated")
    git(repository, "tag", "-a", "v1-again", "-m", "a tag of a tag", "v1")
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    write_files(tmp_path / "side", {"a.py": b"x = 9\n"})
    assert dirty(repository) == (False, 0)
    assert dirty(tmp_path / "side") == (True, 1)
    for where, rev in ((repository, "v1"), (repository, "v1-again"), (repository, first[:8]), (tmp_path / "bare.git", "main")):
        assert record_source(where, rev).predicate["commit"] == f"git-commit:{first}"
    assert dirty(tmp_path / "bare.git") == (False, 0)
    assert record_source(repository / "pkg").predicate["commit"] == f"git-commit:{first}"


def test_a_replacement_object_and_the_callers_environment_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = vector_repository(tmp_path / "r")
    first = git(repository, "rev-parse", "HEAD")
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    other = vector_repository(tmp_path / "other", "sha256")
    write_files(repository, {"a.py": b"evil"})
    evil = commit_all(repository, "evil")
    git(repository, "replace", first, evil)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path))
    predicate = record_source(repository, first).predicate
    assert (predicate["commit"], predicate["tree"]) == (f"git-commit:{first}", f"git-tree:{tree}")


@pytest.mark.parametrize("name", ["evil", "a=b"])
def test_nothing_that_the_repository_configures_is_run(tmp_path: Path, name: str) -> None:
    repository = vector_repository(tmp_path / "r")
    write_files(repository, {".gitattributes": f"a.py filter={name}\n".encode() if name == "evil" else b"a.py filter=a=b\n"})
    commit_all(repository, "attributes")
    ran = tmp_path / "ran"
    for setting in (f"filter.{name}.clean", f"filter.{name}.process", "core.fsmonitor"):
        git(repository, "config", setting, f"touch {ran}")
    git(repository, "config", f"filter.{name}.required", "true")
    hook = repository / ".git/hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    os.utime(repository / "a.py", (1, 1))
    git_says = dirty(repository)
    assert git_says == (False, 0)
    assert not ran.exists()


def test_a_missing_object_of_a_partial_clone_is_not_fetched(tmp_path: Path) -> None:
    origin = vector_repository(tmp_path / "origin")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{origin}", "partial")
    partial = tmp_path / "partial"
    assert record_source(partial, git(partial, "rev-parse", "HEAD")).predicate["source_trees"] == []
    with pytest.raises(InputError) as caught:
        record_source(partial, source_trees=["countermark-source-tree/v1"])
    assert caught.value.code is Code.UNREADABLE
    assert "partial" in caught.value.fix


@pytest.mark.parametrize(
    ("remote", "public"),
    [
        ("https://user:secret@GitHub.com/org/repo.git", "https://github.com/org/repo"),
        ("https://github.com/org/repo/", "https://github.com/org/repo"),
        ("https://host:8443/org/repo?token=secret", "https://host:8443/org/repo"),
        ("http://host/org/repo", "http://host/org/repo"),
        ("git@github.com:org/repo.git", "https://github.com/org/repo"),
        ("github.com:org/repo", "https://github.com/org/repo"),
        ("ssh://git@host:2222/org/repo.git", "https://host/org/repo"),
        ("git://host/org/repo", "https://host/org/repo"),
        ("https://[::1]/org/repo", "https://[::1]/org/repo"),
        ("https://user:p@ss@host/org/repo", None),
        ("/srv/git/repo.git", None),
        ("file:///srv/git/repo.git", None),
        ("../repo", None),
        ("C:/repo", None),
        ("ext::sh -c touch% /tmp/x", None),
        ("ext::sh", None),
        ("", None),
    ],
)
def test_addresses_are_public_and_hold_no_credentials(remote: str, public: str | None) -> None:
    assert public_address(remote) == public


def test_the_commit_subject_carries_the_address(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    assert record_source(repository).subjects[0].uri is None
    git(repository, "remote", "add", "origin", "https://u:p@example.com/org/repo.git")
    recording = record_source(repository)
    commit = git(repository, "rev-parse", "HEAD")
    assert recording.predicate["repository"] == "https://example.com/org/repo"
    assert [subject.uri for subject in recording.subjects] == [f"git+https://example.com/org/repo@{commit}", None]


def refused(error: type[CountermarkError], code: Code, repository: Path, rev: str = "HEAD") -> CountermarkError:
    with pytest.raises(error) as caught:
        record_source(repository, rev)
    assert caught.value.code is code
    assert caught.value.fix
    return caught.value


def test_what_is_not_a_repository_or_a_revision(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_bytes(b"")
    refused(InputError, Code.UNREADABLE, tmp_path / "plain")
    refused(InputError, Code.UNREADABLE, tmp_path / "file")
    refused(InputError, Code.UNREADABLE, tmp_path / "absent")
    empty = new_repository(tmp_path / "empty")
    assert refused(NothingError, Code.NOTHING_EVALUATED, empty).exit is ExitCode.NOTHING
    repository = vector_repository(tmp_path / "r")
    refused(InputError, Code.UNREADABLE, repository / ".git")
    refused(InputError, Code.UNKNOWN_NAME, repository, "nowhere")
    refused(InputError, Code.UNKNOWN_NAME, repository, "f" * 40)
    refused(InputError, Code.UNKNOWN_NAME, repository, "HEAD:a.py")
    for bad in ("--all", "a\nb", "a\0b"):
        refused(UsageError, Code.UNKNOWN_NAME, repository, bad)


def test_a_machine_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refused(CannotTellError, Code.UNSUPPORTED, tmp_path).exit is ExitCode.CANNOT_TELL


def test_a_repository_of_another_user_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = vector_repository(tmp_path / "r")
    try:
        os.chown(repository, 12345, -1)
        os.chown(repository / ".git", 12345, -1)
    except PermissionError:
        pytest.skip("only root can give a folder to another user")
    assert "safe.directory" in refused(InputError, Code.UNREADABLE, repository).fix
    trusting = tmp_path / "config"
    trusting.write_text(f"[safe]\n\tdirectory = {repository}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(trusting))
    assert dirty(repository) == (False, 0)


def loose_object(repository: Path, rev: str) -> Path:
    oid = git(repository, "rev-parse", rev)
    return repository / ".git/objects" / oid[:2] / oid[2:]


@pytest.mark.parametrize("object_format", FORMATS)
@pytest.mark.parametrize("what", ["HEAD", "HEAD^{tree}", "HEAD:pkg/b.txt"])
def test_an_object_whose_bytes_are_another_objects_is_refused(tmp_path: Path, object_format: str, what: str) -> None:
    repository = vector_repository(tmp_path / "r", object_format)
    target = loose_object(repository, what)
    write_files(repository, {"pkg/b.txt": b"another\n"})
    commit_all(repository, "other")
    other = loose_object(repository, what).read_bytes()
    first = git(repository, "rev-parse", "HEAD~1")
    target.chmod(0o644)
    target.write_bytes(other)
    with pytest.raises(InputError) as caught:
        record_source(repository, first, source_trees=["countermark-source-tree/v1"])
    assert caught.value.code in (Code.BAD_DIGEST, Code.UNREADABLE, Code.UNKNOWN_NAME)


def test_a_truncated_object_is_refused(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    target = loose_object(repository, "HEAD:a.py")
    target.chmod(0o644)
    target.write_bytes(target.read_bytes()[:8])
    with pytest.raises(InputError):
        record_source(repository, source_trees=["countermark-source-tree/v1"])


@pytest.mark.parametrize("object_format", FORMATS)
def test_a_record_checks_out_without_its_repository(tmp_path: Path, object_format: str) -> None:
    repository = vector_repository(tmp_path / "r", object_format)
    write_files(repository, {"more": b"1"})
    commit_all(repository, "two")
    predicate = record_source(repository, source_trees=["countermark-source-tree/v1", "countermark-source-tree/v1:pkg"]).predicate
    assert check_source(predicate).holds
    assert check_source(predicate).evaluated == 3
    assert check_source(predicate, repository).evaluated == 7
    assert check_source(predicate, repository).holds


def test_each_false_word_of_a_record_is_found(tmp_path: Path) -> None:
    repository = vector_repository(tmp_path / "r")
    predicate = record_source(repository, source_trees=["countermark-source-tree/v1"]).predicate
    lies: list[tuple[str, JsonValue]] = [
        ("commit", "git-commit:" + "a" * 40),
        ("commit", "git-commit:" + "a" * 64),
        ("tree", "git-tree:" + "a" * 40),
        ("parents", ["git-commit:" + "a" * 40]),
    ]
    for name, lie in lies:
        checked = check_source(predicate | {name: lie})
        assert not checked.holds
        assert [str(found.location) for found in checked.findings] == [f"predicate /{name}"]
        assert checked.findings[0].code is Code.RECORD_CONTRADICTED
    assert isinstance(predicate["source_trees"], list)
    tree = predicate["source_trees"][0]
    assert isinstance(tree, dict)
    false_tree: list[JsonValue] = [tree | {"digest": "source-tree:sha256:" + "0" * 64}]
    assert check_source(predicate | {"source_trees": false_tree}).holds
    assert len(check_source(predicate | {"source_trees": false_tree}, repository).findings) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"commit": 1},
        {"commit": "git-commit:abc", "tree": "git-tree:" + "a" * 40},
        {"commit": "git-commit:" + "a" * 40, "tree": "git-tree:" + "a" * 40, "object": "no base64!"},
        {"commit": "git-commit:" + "a" * 40, "tree": "git-tree:" + "a" * 40, "object": None},
    ],
)
def test_a_predicate_of_another_shape_is_an_input_error(wrong: JsonValue) -> None:
    with pytest.raises(InputError):
        check_source(wrong)
