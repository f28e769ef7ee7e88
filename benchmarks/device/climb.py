"""The qualification ladder on the device, over a small snapshot of the bundled oracle. Nothing is signed: it is asked, not recorded."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.cuda_restore.ladder import qualify
from countermark.cuda_restore.oracle import Oracle
from countermark.cuda_restore.oracle_prompt import OracleShape, write_prompt
from countermark.cuda_restore.oracle_snapshot import publish_caches
from countermark.cuda_restore.qualified_ranks import SignedRoot
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.restore_plan import RestorePlan
from countermark.cuda_restore.root import SnapshotRoot

STORED = OracleShape(ranks=2, tokens=512)
BUNDLED = OracleShape(layers=2, ranks=2, tokens=512)


@dataclass(frozen=True, slots=True)
class Ladder:
    """What each rung said and why, how many faults were injected, and those that went unnoticed."""

    rungs: dict[str, str]
    controls: int
    missed: list[str]


def climb(folder: Path, device: str) -> Ladder:
    """Rungs 1 to 4 on `device` with every fault injected; rung 5 needs a served model and is not run."""
    folder.mkdir()
    prompt = write_prompt(STORED)
    caches = [np.ascontiguousarray(cache) for cache in Oracle(STORED).prefill(prompt)]
    loaded = publish_caches(folder, STORED, prompt, caches, object_bytes=100_000)
    root = SignedRoot(SnapshotRoot.of(loaded), Digest.of(DigestKind.PAYLOAD, b"device-check"))
    found = qualify(_plan(folder, loaded, device), root, shape=BUNDLED)
    controls = [control for report in found.rungs.values() for control in report.controls]
    return Ladder(
        {str(rung): f"{report.outcome}{f' ({report.why})' if report.why else ''}" for rung, report in found.rungs.items()},
        len(controls),
        [control.fault for control in controls if control.outcome is not Outcome.PASS],
    )


def _plan(folder: Path, loaded: tuple[LoadedManifest, ...], device: str) -> RestorePlan:
    ranks = [{"rank": rank, "manifest": str(one.path), "chunks": "chunks", "device": device} for rank, one in enumerate(loaded)]
    first = loaded[0].manifest
    spec = {
        "image": str(Digest.of(DigestKind.OCI_CONFIG, b"device-check")),
        "context_digest": first.context_digest,
        "committed_tokens": first.committed_tokens,
        "ranks": ranks,
    }
    path = folder / "plan.json"
    named = {"apiVersion": "countermark.dev/v1", "kind": "RestorePlan", "metadata": {"id": "device-check", "version": 1}, "spec": spec}
    path.write_text(json.dumps(named))
    return RestorePlan.load(path)
