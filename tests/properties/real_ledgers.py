"""Ledgers on disk that a test may fork, change and ask, and the entries of one as they are imported into another."""

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds import NOW, World

from countermark.actions.gate import Asked, gate
from countermark.actions.importing import ImportResult, import_files
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.times import Instant
from countermark.contracts.decision import Decision
from countermark.ledger.leaf import EntryKind

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
STATE = "XDG_STATE_HOME"


@contextmanager
def in_state(folder: Path) -> Iterator[None]:
    """A folder of its own for what a ledger remembers outside itself: two forks of one log must not share it."""
    before = os.environ.get(STATE)
    os.environ[STATE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[STATE]
        else:
            os.environ[STATE] = before


@contextmanager
def forked(world: World) -> Iterator[World]:
    """A copy of a world, with its keys and its memory, that goes on by itself and is gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(world.folder, folder / "box")
        shutil.copytree(os.environ[STATE], folder / "state")
        with in_state(folder / "state"):
            yield World(Workspace.at(str(folder / "box" / world.workspace.ledger.name)), folder / "box", dict(world.at))


def ask(workspace: Workspace, image: object, policy: Path | None = None, *requires: str, at: Instant | None = NOW) -> Decision:
    """The gate's decision about one image, for a fixed time unless `at` is none."""
    (decision,) = gate(workspace, Asked((str(image),), policy, requires, effective_time=at)).decisions
    return decision


def answer(decision: Decision) -> tuple[str, str]:
    """The verdict, and the code of the one requirement."""
    (result,) = decision.requirements
    return str(decision.verdict), str(result.code)


@dataclass(frozen=True)
class Signed:
    """A statement of a ledger as the envelope that was admitted."""

    predicate_type: str
    line: str


def envelopes(workspace: Workspace) -> list[Signed]:
    """The statements of a ledger in its order; kept files and documents are not among them."""
    with open_reader(workspace) as reader:
        entries = [reader.entry(index) for index in range(reader.head.size)]
    found = [entry for entry in entries if entry.leaf.kind is EntryKind.ATTESTATION and entry.leaf.payload_type.endswith("in-toto+json")]
    return [Signed(str(json.loads(entry.payload)["predicateType"]), _envelope(entry.leaf.payload_type, entry)) for entry in found]


def _envelope(payload_type: str, entry: Any) -> str:
    signatures = [{"keyid": "", "sig": base64.b64encode(item.signature).decode()} for item in entry.leaf.signatures]
    payload = base64.b64encode(entry.payload).decode()
    return json.dumps({"payload": payload, "payloadType": payload_type, "signatures": signatures})


def take(world: World, lines: Sequence[str]) -> ImportResult:
    """Import envelopes in this order, as `countermark import` does."""
    path = world.folder / "all.intoto.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return import_files(world.workspace, [str(path)], lambda done: None)


def without_places(decision: Decision) -> dict[str, Any]:
    """The core without what depends on where in the log the evidence stands: the head, and the order of what was weighed."""
    core = decision.core()
    core["ledger"] = None
    core["notes"] = [note for note in core["notes"] if not note.startswith("UNPROTECTED_TAIL")]
    for result in core["requirements"]:
        result["evidence"] = sorted(result["evidence"], key=lambda item: str(item["payload"]))
    return core
