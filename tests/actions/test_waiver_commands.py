"""`waiver new|approve|list|check` over real, signed entries: through the command line, as people use it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from worlds import IMAGE, OTHER, World

from countermark.actions.appending import append, judged_submission, sign
from countermark.actions.keyring import generate
from countermark.attestations.keys import Signer
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.times import Instant
from countermark.attestations.verifier import PolicyTrust, Verifier
from countermark.cli.app import run

POLICY = """\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {id: lab, version: 1}
spec:
  channel: lab
  subject: {kinds: [oci-config, oci-manifest]}
  trust: trust.yaml
  evidence: {basis: [measured, reported], max_age: none}
  requires:
    - {id: startup, capability: service.startup, evidence: {max_age: 1h}}
    - {id: restore, capability: restore.correctness, scope: {topology: TP4/DCP1, context_tokens: 131072, concurrency: 1}}
  waivable: [startup]
  never_waive: [IMAGE_REJECTED]
  waiver_max_days: 14
"""
Asked = Callable[..., Any]


@pytest.fixture
def rig(world: World) -> World:
    """An image whose restore is qualified and whose start was observed too long ago; alice and bob approve."""
    generate(world.folder / "keys" / "bob.pem")
    bob = {"keys": [{"file": "keys/bob.pub", "spki_sha256": world.fingerprint("bob").hex}]}
    world.trust(principals={**world.people(), "bob": bob}, roles={**world.roles(), "approver": {"any_of": ["alice", "bob"]}})
    world.image(IMAGE)
    world.receipt()
    world.receipt(capability="service.startup")
    (world.folder / "policy.yaml").write_text(POLICY)
    return world


@pytest.fixture
def ask(rig: World, capsys: pytest.CaptureFixture[str]) -> Asked:
    """Runs a command over the ledger; its exit code and its JSON report."""

    def act(*arguments: object) -> tuple[int, Any]:
        capsys.readouterr()
        code = run([*map(str, arguments), "--ledger", str(rig.workspace.ledger), "-o", "json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    return act


def time_from_now(days: int) -> str:
    from countermark.actions.clock import now

    return str(Instant(now().whole_seconds().ns + days * 24 * 3600 * 10**9))


def new(rig: World, ask: Asked, name: str = "w.yaml", **changes: object) -> tuple[int, Any, Path]:
    path = rig.folder / name
    given = {
        "requirement": "startup",
        "code": "EVIDENCE_EXPIRED",
        "reason": "rig down",
        "ticket": "OPS-77",
        "requested-by": "lab",
        "approver": "alice",
        "expires": time_from_now(5),
        **changes,
    }
    options = [part for option, value in given.items() for part in (f"--{option}", value)]
    code, report = ask("waiver", "new", changes.pop("image", IMAGE), "--policy", rig.folder / "policy.yaml", "--write", path, *options)
    return code, report, path


def gate(rig: World, ask: Asked, *more: object) -> tuple[int, dict[str, Any]]:
    code, report = ask("gate", IMAGE, "--policy", rig.folder / "policy.yaml", *more)
    core: dict[str, Any] = report["decisions"][0]["core"]
    return code, core


def told(core: dict[str, Any]) -> str:
    return "\n".join(str(item.get("why")) for item in core.get("waivers", []))


def plant(rig: World, document: dict[str, Any], *people: str, about: Any = IMAGE) -> None:
    """Put a waiver into the ledger as a program would that checks nothing but signatures."""
    statement = Statement((Subject.of(about),), PredicateName.WAIVER.uri, document)
    for person in people:
        envelope = sign(statement, Signer.load(str(rig.key(person))))
        results = Verifier(PolicyTrust(rig.workspace.trust())).judge_signatures(envelope, None)
        append(rig.workspace, [judged_submission(envelope.payload_type, envelope.payload, results)])


def drafted(path: Path, **spec: Any) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    document["spec"].update(spec)
    return document


def test_from_draft_to_release(rig: World, ask: Asked) -> None:
    policy = rig.folder / "policy.yaml"
    assert gate(rig, ask)[0] == 1
    code, _, path = new(rig, ask)
    assert code == 0
    assert gate(rig, ask)[0] == 1, "a draft waives nothing"
    code, report = ask("waiver", "check", path, "--policy", policy)
    assert (code, report["findings"][0]["code"]) == (1, "THRESHOLD")
    assert "not approved by alice" in report["findings"][0]["observed"]
    assert ask("waiver", "approve", path, "--key", rig.key("alice"))[0] == 0
    code, core = gate(rig, ask)
    assert (code, core["verdict"], core["evaluated"], core["satisfied"]) == (0, "ALLOW", 2, 1)
    (startup, _), (waiver,) = core["requirements"], core["waivers"]
    assert (startup["outcome"], startup["waived_by"]) == ("fail", f"{waiver['id']}@1")
    assert (waiver["used"], waiver["approved_by"], waiver["requested_by"]) == (True, ["alice"], "lab")
    code, report = ask("waiver", "check", path, "--policy", policy)
    assert (code, report["verdict"], report["details"]["decision"]) == (0, "OK", "ALLOW")
    code, report = ask(
        "gate", IMAGE, "--policy", policy, "--record", "--key", rig.key("release-gate"), "-o", f"vsa={rig.folder / 'vsa.json'}"
    )
    assert code == 0
    vsa = _predicate(rig.folder / "vsa.json")
    assert (vsa["verificationResult"], vsa["verifiedLevels"]) == ("PASSED", ["QUALIFIED:restore.correctness"])
    (decision,) = report["decisions"]
    code, report = ask("explain", decision["id"])
    assert (code, report["decisions"][0]["differences"]) == (0, [])


def _predicate(path: Path) -> Any:
    import base64

    return json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))["predicate"]


@pytest.mark.parametrize(
    ("changes", "exit_code"),
    [
        ({"expires": "2030-01-01T00:00:00"}, 3),
        ({"expires": "tomorrow"}, 3),
        ({"expires": "9999-12-31T23:59:59Z"}, 1),
        ({"expires": "2020-01-01T00:00:00Z"}, 1),
        ({"requested-by": "alice"}, 1),
        ({"approver": "lab"}, 1),
        ({"requirement": "restore"}, 1),
        ({"requirement": "nothing"}, 1),
        ({"code": "IMAGE_REJECTED"}, 1),
        ({"code": "EVERYTHING"}, 3),
    ],
)
def test_a_draft_that_could_never_count_is_not_written(rig: World, ask: Asked, changes: dict[str, str], exit_code: int) -> None:
    code, report, path = new(rig, ask, **changes)
    assert code == exit_code, report
    assert report["findings"][0]["observed"]
    assert not path.exists()


def test_who_asks_or_is_not_named_cannot_approve(rig: World, ask: Asked) -> None:
    _, _, path = new(rig, ask)
    for person, code in (("bob", "ROLE"), ("lab", "SEPARATION"), ("ci", "ROLE")):
        exit_code, report = ask("waiver", "approve", path, "--key", rig.key(person))
        assert (exit_code, report["findings"][0]["code"]) == (1, code)
    path.write_text(path.read_text().replace("requested_by: lab", "requested_by: alice"))
    exit_code, report = ask("waiver", "approve", path, "--key", rig.key("alice"))
    assert (exit_code, report["findings"][0]["code"]) == (1, "SEPARATION")
    assert gate(rig, ask)[0] == 1


def test_two_of_two_sign_the_same_bytes_each_in_an_entry(rig: World, ask: Asked) -> None:
    rig.trust(roles={**rig.roles(), "approver": {"threshold": {"k": 2, "of": ["alice", "bob"]}}})
    _, _, path = new(rig, ask)
    document = drafted(path, approved_by=["alice", "bob"])
    path.write_text(yaml.safe_dump(document))
    assert ask("waiver", "approve", path, "--key", rig.key("alice"))[0] == 0
    code, core = gate(rig, ask)
    assert (code, "not approved by bob; role approver needs 2 of 2 principals, 1 approve" in told(core)) == (1, True)
    assert ask("waiver", "approve", path, "--key", rig.key("bob"))[0] == 0
    assert gate(rig, ask)[0] == 0


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"subject": str(OTHER)}, "it names oci-config:"),
        ({"requirement": "restore"}, "does not let restore be waived"),
        ({"requirement": "gone"}, "has no requirement gone"),
        ({"policy": "gone"}, "it is for policy gone"),
        ({"codes": ["CAP_SCOPE"]}, "it covers CAP_SCOPE, and startup fails with EVIDENCE_EXPIRED"),
        ({"requested_by": "alice"}, "alice asks and approves"),
        ({"not_before": "2020-01-01T00:00:00Z", "expires": "2020-01-02T00:00:00Z"}, "it ended at 2020-01-02T00:00:00Z"),
        ({"expires": "2030-01-01T00:00:00"}, "it is no whole waiver"),
        ({"expires": "9999-12-31T23:59:59Z"}, "longer than the 14 days"),
    ],
)
def test_a_bad_waiver_in_the_ledger_changes_nothing_and_is_told(rig: World, ask: Asked, spec: dict[str, Any], why: str) -> None:
    _, before = gate(rig, ask)
    _, _, path = new(rig, ask)
    plant(rig, drafted(path, **spec), "alice")
    code, core = gate(rig, ask)
    assert (code, core["verdict"], core["requirements"]) == (1, "DENY", before["requirements"])
    assert why in told(core)
    assert core["inputs"]["waivers"] == []
    code, report = ask("waiver", "list", "--all", "--policy", rig.folder / "policy.yaml")
    assert (code, len(report["rows"])) == (0, 1)
    assert report["rows"][0]["state"] != "in force" or spec.get("codes") or spec.get("subject")


def test_attest_refuses_what_is_no_waiver(rig: World, ask: Asked) -> None:
    _, _, path = new(rig, ask)
    predicate = rig.folder / "predicate.json"
    predicate.write_text(json.dumps(drafted(path, expires="2030-01-01T00:00:00")))
    code, _ = ask("attest", "--subject", IMAGE, "--type", "waiver", "--predicate", predicate, "--key", rig.key("alice"))
    assert code == 3


def test_the_list_says_who_asked_who_approved_when_it_ends_and_what_is_orphaned(rig: World, ask: Asked) -> None:
    _, _, path = new(rig, ask)
    ask("waiver", "approve", path, "--key", rig.key("alice"))
    good = drafted(path)
    past = {"not_before": "2020-01-01T00:00:00Z", "expires": "2020-01-02T00:00:00Z"}
    for name, spec in (("orphan", {"requirement": "gone"}), ("stranger", {"subject": str(OTHER)}), ("past", past)):
        document = {**good, "metadata": {"id": name, "version": 1}, "spec": {**good["spec"], **spec}}
        plant(rig, document, "alice", about=OTHER if name == "stranger" else IMAGE)
    policy = ("--policy", rig.folder / "policy.yaml")
    _, report = ask("waiver", "list", *policy)
    (row,) = report["rows"]
    assert (row["state"], row["requested_by"], row["approved_by"], row["requirement"]) == ("in force", "lab", ["alice"], "startup")
    assert any("--all shows them" in note for note in report["notes"])
    for command in (("waiver", "list"), ("query", "waivers")):
        _, report = ask(*command, "--all", *policy)
        states = {row["name"].split("@")[0]: row["state"] for row in report["rows"]}
        assert (states["orphan"], states["stranger"], states["past"]) == ("orphaned", "orphaned", "expired")
    _, report = ask("waiver", "list", "--all")
    assert {row["state"] for row in report["rows"]} == {"orphaned", "expired"}, "no policy is known here"


def test_a_waiver_that_is_taken_back_waives_nothing_and_hiding_that_does_not_help(rig: World, ask: Asked) -> None:
    _, _, path = new(rig, ask)
    _, report = ask("waiver", "approve", path, "--key", rig.key("alice"))
    payload = report["recorded"][0]["payload"]
    assert gate(rig, ask)[0] == 0
    code, report = ask("retract", payload, "--reason", "the canary failed", "--key", rig.key("bob"))
    assert code == 0
    entry = report["recorded"][0]["index"]
    code, core = gate(rig, ask)
    assert (code, "taken back by bob" in told(core)) == (1, True)
    for table in ("subject", "statement", "signature"):
        rig.edit(f"DELETE FROM {table} WHERE idx = ?", entry)
    assert gate(rig, ask)[0] == 1, "a retraction is a notice, found by hash"
    rig.edit("DELETE FROM entry WHERE idx = ?", entry)
    assert ask("gate", IMAGE, "--policy", rig.folder / "policy.yaml")[0] == 6


def test_hiding_a_waiver_loses_a_yes_and_never_a_no(rig: World, ask: Asked) -> None:
    _, _, path = new(rig, ask)
    _, report = ask("waiver", "approve", path, "--key", rig.key("alice"))
    entry = report["recorded"][0]["index"]
    for table in ("subject", "statement"):
        rig.edit(f"DELETE FROM {table} WHERE idx = ?", entry)
    assert gate(rig, ask)[0] == 1


def test_queries_know_waivers(rig: World, ask: Asked) -> None:
    _, _, path = new(rig, ask)
    _, report = ask("waiver", "approve", path, "--key", rig.key("alice"))
    payload, policy = report["recorded"][0]["payload"], rig.folder / "policy.yaml"
    _, report = ask("query", "expiring", "--within", "30d", "--policy", policy)
    (row,) = [row for row in report["rows"] if row["requirement"] == "startup"]
    assert row["expires"]
    assert "waived by" in row["observed"]
    ask("gate", IMAGE, "--policy", policy, "--record", "--key", rig.key("release-gate"))
    _, report = ask("query", "impact", "--payload", payload)
    (image,) = [row for row in report["rows"] if "without" in row]
    assert (image["now"], image["without"], image["changes"], image["falls"]) == ("ALLOW", "DENY", True, ["startup"])
    assert {row["what"] for row in report["rows"] if "what" in row} >= {"waiver", "decision"}
    _, report = ask("query", "decisions")
    assert report["rows"][0]["waived"]
