"""Two revisions of a repository compared by its contract, pure and through git."""

import os
import subprocess
from pathlib import Path

from countermark.actions.verify_contract import judge
from countermark.attestations.codes import ExitCode, Severity
from countermark.contracts.compare_revisions import Revision, RevisionComparison, compare_revisions

from .small_repository import COMMIT, CONTRACT, FILES, MemoryTree, verdict_on

OTHER = COMMIT.replace("5", "6", 1)
FACTS = CONTRACT.replace("  invariants:\n", "  facts:\n    geometry: {file: builder/pins.json, json: /geometry}\n  invariants:\n")
Files = dict[str, bytes]


def compared(now: str, before: str | None, files: Files, earlier: Files) -> RevisionComparison:
    tree, old = MemoryTree(files), MemoryTree(earlier)
    data = None if before is None else before.encode()
    return compare_revisions(
        verdict_on(tree, now), Revision(tree, now.encode(), "contract.yaml"), Revision(old, data, "contract.yaml at v1")
    )


def told(comparison: RevisionComparison) -> list[tuple[str, str, str | None]]:
    return [(str(it.severity), f"{it.location.file}:{it.location.line}" if it.location else "", it.observed) for it in comparison.changes]


def test_nothing_changed() -> None:
    assert compared(FACTS, FACTS, dict(FILES), dict(FILES)) == RevisionComparison((), 0, 0)


def test_a_finding_that_is_new_and_one_that_is_gone_are_counted() -> None:
    broken = {**FILES, "profiles/one.yaml": FILES["profiles/one.yaml"].replace(COMMIT.encode(), OTHER.encode())}
    other = {**FILES, "profiles/two.yaml": FILES["profiles/two.yaml"].replace(COMMIT.encode(), OTHER.encode())}
    assert compared(FACTS, FACTS, broken, dict(FILES)) == RevisionComparison((), 1, 0)
    assert compared(FACTS, FACTS, dict(FILES), broken) == RevisionComparison((), 0, 1)
    assert compared(FACTS, FACTS, broken, other) == RevisionComparison((), 1, 1)
    moved = {**broken, "profiles/one.yaml": b"# more\n" + broken["profiles/one.yaml"]}
    assert compared(FACTS, FACTS, moved, broken) == RevisionComparison((), 0, 0)


def test_a_pin_that_advances_under_a_new_version_is_information() -> None:
    now = FACTS.replace(COMMIT, OTHER).replace("version: 1", "version: 2")
    files = {path: data.replace(COMMIT.encode(), OTHER.encode()) for path, data in FILES.items()}
    assert told(compared(now, FACTS, files, dict(FILES))) == [("info", "contract.yaml:7", OTHER)]


def test_a_contract_that_means_something_else_needs_another_version() -> None:
    comparison = compared(FACTS.replace(COMMIT, OTHER), FACTS, dict(FILES), dict(FILES))
    (version, pin) = comparison.changes
    assert (version.severity, version.location and version.location.line) == (Severity.BLOCK, 3)
    assert version.required == "a version above 1, because /spec/pins changed"
    assert pin.severity is Severity.INFO


def test_a_comment_means_nothing() -> None:
    assert compared("# more\n" + FACTS, FACTS, dict(FILES), dict(FILES)).changes == ()


def test_an_invariant_that_is_gone_is_a_warning() -> None:
    now = FACTS.replace("    - {id: whole, check: pins.full-length}\n", "").replace("version: 1", "version: 2")
    (gone,) = compared(now, FACTS, dict(FILES), dict(FILES)).changes
    assert (gone.severity, gone.required) == (Severity.WARN, "the invariants whole")


def test_a_fact_that_changed_is_told_where_it_stands() -> None:
    files = {**FILES, "builder/pins.json": FILES["builder/pins.json"].replace(b"256\n", b"512\n")}
    assert told(compared(FACTS, FACTS, files, dict(FILES))) == [("info", "builder/pins.json:6", "512 (an integer)")]


def test_a_new_contract_and_a_broken_one_are_compared_as_far_as_they_go() -> None:
    files = {**FILES, "builder/pins.json": FILES["builder/pins.json"].replace(b"256\n", b"512\n")}
    for before in (None, "kind: Contract\n"):
        comparison = compared(FACTS, before, files, dict(FILES))
        assert [severity for severity, *_ in told(comparison)] == ["info", "info"]
        assert comparison.introduced == 1


def git(folder: Path, *arguments: str) -> None:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, env={**os.environ, **identity})


def test_a_revision_is_read_from_git_below_the_root_that_is_asked_for(tmp_path: Path) -> None:
    root = tmp_path / "parts" / "serving"
    for path, data in {**FILES, "contract.yaml": FACTS.encode()}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    profile = root / "profiles" / "one.yaml"
    profile.write_bytes(profile.read_bytes().replace(COMMIT.encode(), OTHER.encode()))
    judged = judge(root / "contract.yaml", root, "HEAD")
    assert judged.compared
    assert (judged.compared.changes, judged.compared.introduced, judged.compared.fixed) == ((), 1, 0)
    assert judged.exit is ExitCode.NO
    (root / "contract.yaml").write_text(FACTS.replace("id: agree", "id: agrees"))
    profile.write_bytes(FILES["profiles/one.yaml"])
    judged = judge(root / "contract.yaml", root, "HEAD")
    assert judged.verdict.exit is ExitCode.YES
    assert judged.exit is ExitCode.NO
    assert [finding.location and finding.location.line for finding in judged.findings] == [3, 23]
