"""`verify vsa` believes the summary that `gate --record` wrote, of what it is about and of nothing else."""

import base64
import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from program import Program
from worlds import IMAGE, OTHER, World, make_world

from countermark.actions.appending import sign
from countermark.actions.clock import now
from countermark.actions.verify_vsa import ExpectedSummary, check_summary
from countermark.actions.workspace import open_reader
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CountermarkError
from countermark.attestations.keys import Signer
from countermark.attestations.statement import Statement
from countermark.attestations.verifier import PolicyTrust

LEVEL = "QUALIFIED:restore.correctness"


@dataclass(frozen=True)
class Box:
    """A world in which one image passed and another failed, and the summaries of both, written by the program."""

    world: World
    program: Program
    origin: str

    def verify(self, summary: str, about: Digest, *more: str, **other: str) -> int:
        """The exit of `verify vsa`; `other` are options that differ from what is true."""
        asked = {
            "subject_digest": f"sha256:{about.hex}",
            "verifier_id": self.origin,
            "resource_uri": f"{about}#lab",
            "verified_level": LEVEL,
            **other,
        }
        options = [part for name, value in asked.items() for part in (f"--{name.replace('_', '-')}", value)]
        return self.program("verify", "vsa", "--attestation-path", summary, *options, *more).code


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Box:
    world = make_world(tmp_path_factory.mktemp("summaries") / "box")
    world.policy()
    world.receipt()
    world.receipt(OTHER, outcome="fail")
    with open_reader(world.workspace) as reader:
        origin = reader.head.origin
    program = Program(world.folder, world.folder / "state")
    for name, image, code in (("passed.json", IMAGE, 0), ("failed.json", OTHER, 1)):
        key = ("--key", "keys/release-gate.pem")
        done = program("gate", str(image), "--policy", "lab.yaml", "--record", "-o", f"vsa={name}", *key)
        assert done.code == code, done.err
    return Box(world, program, origin)


def test_a_summary_that_passed_is_believed(box: Box) -> None:
    assert box.verify("passed.json", IMAGE) == 0
    assert box.verify("passed.json", IMAGE, "--public-key-path", "keys/release-gate.pub") == 0


def test_a_summary_that_failed_is_refused_whatever_is_asked(box: Box) -> None:
    assert box.verify("failed.json", OTHER) == 1
    asked = ["--subject-digest", f"sha256:{OTHER.hex}", "--verifier-id", box.origin, "--resource-uri", f"{OTHER}#lab"]
    done = box.program("verify", "vsa", "--attestation-path", "failed.json", *asked)
    assert done.code == 1
    assert "the result is FAILED" in done.err


@pytest.mark.parametrize(
    "other",
    [
        {"subject_digest": f"sha256:{OTHER.hex}"},
        {"verifier_id": "countermark.local/somebody/00000000"},
        {"resource_uri": f"{IMAGE}#production"},
        {"public_key_path": "keys/lab.pub"},
    ],
    ids=lambda other: " ".join(other),
)
def test_a_summary_of_something_else_is_refused(box: Box, other: dict[str, str]) -> None:
    assert box.verify("passed.json", IMAGE, **other) == 1


def exit_of(box: Box, path: Path, **other: Any) -> tuple[int, bytes]:
    """The exit for a file as `verify vsa` takes it, and the payload where it was believed; `other` is expected instead of what is true."""
    expected = replace(ExpectedSummary(IMAGE.hex, box.origin, f"{IMAGE}#lab", (LEVEL,)), **other)
    try:
        return 0, check_summary(str(path), expected, PolicyTrust(box.world.workspace.trust()), now()).payload
    except CountermarkError as error:
        return int(error.exit), b""


@pytest.mark.parametrize(
    "other",
    [
        {"subject_sha256": IMAGE.hex[:-1] + "0"},
        {"subject_sha256": ""},
        {"resource_uri": f"{OTHER}#lab"},
        {"resource_uri": ""},
        {"levels": ("QUALIFIED:restore.performance",)},
        {"levels": (LEVEL.lower(),)},
        {"levels": (LEVEL, "QUALIFIED:service.startup")},
    ],
    ids=str,
)
def test_nothing_else_is_read_into_it(box: Box, other: dict[str, Any]) -> None:
    passed = box.world.folder / "passed.json"
    assert (exit_of(box, passed)[0], exit_of(box, passed, levels=())[0]) == (0, 0)
    assert exit_of(box, passed, **other)[0] == 1


def test_no_file_and_no_summary_are_no_answer(box: Box) -> None:
    assert box.verify("nowhere.json", IMAGE) == 3
    (box.world.folder / "empty.json").write_text("")
    assert box.verify("empty.json", IMAGE) in (3, 5)


def test_no_bit_of_what_is_signed_can_be_changed(box: Box, tmp_path: Path) -> None:
    """Each is refused as bad (1) or unreadable (3); what is not signed, as the key id, changes nothing that is believed."""
    data = (box.world.folder / "passed.json").read_bytes()
    payload = base64.b64decode(json.loads(data)["payload"])
    positions = random.Random(7).sample(range(len(data) * 8), 400)
    path, believed = tmp_path / "flipped.json", 0
    for position in positions:
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        path.write_bytes(flipped)
        code, found = exit_of(box, path)
        assert code in (0, 1, 3)
        assert code or found == payload
        believed += not code
    assert believed < len(positions) / 4


@pytest.mark.parametrize("field", ["payload", "payloadType", "sig"])
def test_each_signed_field_counts(box: Box, tmp_path: Path, field: str) -> None:
    envelope: dict[str, Any] = json.loads((box.world.folder / "passed.json").read_text())
    place = envelope["signatures"][0] if field == "sig" else envelope
    raw = place[field] if field == "payloadType" else base64.b64decode(place[field])
    path = tmp_path / "changed.json"
    for number in range(0, len(raw), max(1, len(raw) // 40)):
        if isinstance(raw, str):
            place[field] = raw[:number] + "x" + raw[number + 1 :]
        else:
            place[field] = base64.b64encode(raw[:number] + bytes([raw[number] ^ 1]) + raw[number + 1 :]).decode()
        path.write_text(json.dumps(envelope))
        assert place[field] == raw or exit_of(box, path)[0] in (1, 3)


def test_a_summary_by_somebody_who_does_not_decide_is_refused(box: Box, tmp_path: Path) -> None:
    payload = base64.b64decode(json.loads((box.world.folder / "passed.json").read_text())["payload"])
    statement = Statement.parse(payload, "summary")
    for person, code in (("release-gate", 0), ("lab", 1), ("ci", 1), ("alice", 1)):
        path = tmp_path / f"{person}.json"
        path.write_text(sign(statement, Signer.load(str(box.world.key(person)))).to_json())
        assert exit_of(box, path)[0] == code


def test_a_warning_gate_writes_no_summary_that_passed(box: Box) -> None:
    key = ("--key", "keys/release-gate.pem")
    done = box.program("gate", str(IMAGE), "--policy", "lab.yaml", "--mode", "warn", "--record", "-o", "vsa=warned.json", *key)
    assert done.code == 0
    assert box.verify("warned.json", IMAGE) == 1
