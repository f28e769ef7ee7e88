"""The first real gate on real repositories: allow, drift, deny; and nothing that is deleted turns a no into a yes."""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from countermark.actions.appending import record
from countermark.actions.demo import example
from countermark.actions.gate import Asked, gate
from countermark.actions.init import initialise
from countermark.actions.verify_contract import judge_commit
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CountermarkError
from countermark.recorders.image import record_image

POLICY = """\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {id: release, version: 1}
spec:
  channel: staging
  subject: {kinds: [oci-manifest]}
  trust: trust.yaml
  requires: [{id: pins, contract: engine-pins}]
  waivable: []
  never_waive: [IMAGE_REJECTED, SIG_INVALID, LEDGER_TAMPERED, SUBJECT_UNKNOWN, SCHEMA_INVALID]
  waiver_max_days: 14
"""


@dataclass
class World:
    """A ledger, an engine, the repository that pins it, and an image built from it."""

    workspace: Workspace
    folder: Path
    commit: str
    image: Digest

    def ask(self, ledger: Path | None = None) -> tuple[str, Code]:
        """Verdict and code of the one requirement."""
        workspace = Workspace.at(str(ledger), self.workspace.trust_file) if ledger else self.workspace
        (decision,) = gate(workspace, Asked((str(self.image),), self.folder / "box" / "policy2.yaml")).decisions
        return str(decision.verdict), decision.requirements[0].code

    def judge(self) -> None:
        judge_commit(self.folder / "release" / "contract.yaml", None, self.workspace, None)

    def record_image(self, *components: str) -> None:
        record(self.workspace, record_image(self.folder / "image", components=components), "builder", None)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = initialise(tmp_path / "box").workspace
    (tmp_path / "box" / "policy2.yaml").write_text(POLICY)
    commit, tree = example.make_engine(tmp_path / "engine")
    example.make_release(tmp_path / "release", commit, tree)
    example.make_image(tmp_path / "image")
    image = record_image(tmp_path / "image").subjects[0].typed[0]
    return World(workspace, tmp_path, commit, image)


def test_allow_then_drift_then_deny_then_mended(world: World) -> None:
    assert world.ask() == ("DENY", Code.SUBJECT_UNKNOWN)
    world.record_image(f"engine={world.commit}")
    assert world.ask() == ("DENY", Code.CONTRACT_NOT_EVALUATED)
    world.judge()
    assert world.ask() == ("ALLOW", Code.OK)
    other = world.commit[:-1] + ("0" if world.commit[-1] != "0" else "1")
    example.commit_change(world.folder / "release", "resolver/input.json", world.commit, other)
    world.judge()
    (decision,) = gate(world.workspace, Asked((str(world.image),), world.folder / "box" / "policy2.yaml")).decisions
    assert decision.requirements[0].code is Code.CONTRACT_VIOLATED
    assert "resolver/input.json:5" in decision.requirements[0].observed
    example.commit_change(world.folder / "release", "resolver/input.json", other, world.commit)
    world.judge()
    assert world.ask() == ("ALLOW", Code.OK)


def test_an_image_built_from_another_commit(world: World) -> None:
    world.record_image(f"engine={'ab' * 20}")
    world.judge()
    assert world.ask() == ("DENY", Code.PIN_MISMATCH)


def test_an_image_without_components(world: World) -> None:
    world.record_image()
    world.judge()
    assert world.ask() == ("DENY", Code.PIN_MISMATCH)


def test_a_second_recording_that_disagrees_denies(world: World) -> None:
    world.record_image(f"engine={world.commit}")
    world.judge()
    assert world.ask() == ("ALLOW", Code.OK)
    world.record_image(f"engine={'ab' * 20}")
    assert world.ask() == ("DENY", Code.PIN_MISMATCH)


def test_the_config_of_the_image_is_another_kind(world: World) -> None:
    world.record_image(f"engine={world.commit}")
    world.judge()
    aliases = record_image(world.folder / "image").predicate["aliases"]
    assert isinstance(aliases, list)
    config = next(Digest.parse(str(item["digest"])) for item in aliases if isinstance(item, dict) and "config" in str(item["digest"]))
    assert config.kind is DigestKind.OCI_CONFIG
    world.image = config
    assert world.ask() == ("DENY", Code.SUBJECT_KIND)


def deny_pins_changed(world: World) -> None:
    """A newer passing verdict whose pins are not the image's."""
    world.record_image(f"engine={world.commit}")
    world.judge()
    shutil.rmtree(world.folder / "release")
    example.make_release(world.folder / "release", "cd" * 20, "ef" * 20)
    world.judge()


def deny_violated(world: World) -> None:
    """A newer failing verdict."""
    world.record_image(f"engine={world.commit}")
    world.judge()
    example.commit_change(world.folder / "release", "README.md", world.commit, "cd" * 20)
    world.judge()


def deny_disagreement(world: World) -> None:
    """A second image statement that names another source."""
    world.record_image(f"engine={world.commit}")
    world.judge()
    world.record_image(f"engine={'ab' * 20}")


@pytest.mark.parametrize("deny", [deny_pins_changed, deny_violated, deny_disagreement])
def test_deleting_any_row_never_turns_deny_into_allow(world: World, deny: Callable[[World], None], tmp_path: Path) -> None:
    deny(world)
    assert world.ask()[0] == "DENY"
    answers = [(where, answer_without(world, tmp_path / "copy.db", *where)) for where in every_row(world.workspace.ledger)]
    assert len(answers) > 20
    assert [where for where, answer in answers if answer not in ("DENY", "exit 4", "exit 6")] == []


def answer_without(world: World, copy: Path, table: str, keys: tuple[str, ...], values: tuple[object, ...]) -> str:
    """What the gate says of a copy of the ledger with one row deleted, past the triggers."""
    copy.unlink(missing_ok=True)
    source, target = sqlite3.connect(world.workspace.ledger), sqlite3.connect(copy)
    try:
        source.backup(target)
        target.execute("PRAGMA foreign_keys = OFF")
        for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            target.execute(f'DROP TRIGGER "{name}"')
        where = " AND ".join(f'"{key}" IS ?' for key in keys)
        assert target.execute(f'DELETE FROM "{table}" WHERE {where}', values).rowcount == 1
        target.commit()
    finally:
        source.close()
        target.close()
    try:
        return world.ask(copy)[0]
    except CountermarkError as error:
        return f"exit {int(error.exit)}"


def every_row(ledger: Path) -> list[tuple[str, tuple[str, ...], tuple[object, ...]]]:
    """Each row of each table, by its primary key."""
    db = sqlite3.connect(ledger)
    try:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        keyed = {table: tuple(row[1] for row in db.execute(f'PRAGMA table_info("{table}")') if row[5]) or ("rowid",) for table in tables}
        found = ((table, keys, db.execute(f'SELECT {", ".join(keys)} FROM "{table}"').fetchall()) for table, keys in keyed.items())
        return [(table, keys, values) for table, keys, rows in found for values in rows]
    finally:
        db.close()


def test_gate_of_a_ledger_that_was_changed_is_6(world: World) -> None:
    world.record_image(f"engine={world.commit}")
    world.judge()
    db = sqlite3.connect(world.workspace.ledger)
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f'DROP TRIGGER "{name}"')
    db.execute("UPDATE payload SET data = CAST(replace(CAST(data AS TEXT), '\"pass\"', '\"fail\"') AS BLOB)")
    db.commit()
    db.close()
    with pytest.raises(CountermarkError) as caught:
        world.ask()
    assert caught.value.exit == 6


def test_a_dirty_work_tree_is_not_recorded(world: World) -> None:
    (world.folder / "release" / "README.md").write_text("changed\n")
    with pytest.raises(CountermarkError) as caught:
        world.judge()
    assert caught.value.exit == 4


def test_git_is_asked_nothing_of_the_caller(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIT_DIR of a hook or another tool must not lead the recorder to another repository."""
    subprocess.run(["git", "init", "-q", str(world.folder / "other")], check=True)
    monkeypatch.setenv("GIT_DIR", str(world.folder / "other" / ".git"))
    world.record_image(f"engine={world.commit}")
    world.judge()
    assert world.ask() == ("ALLOW", Code.OK)
