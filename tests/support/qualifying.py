"""An oracle snapshot on disk, the plan that qualifies it, and the signed root that lists it, for tests of the ladder."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.outcomes import restore_outcome
from countermark.attestations.schema import problems
from countermark.attestations.times import Instant
from countermark.cuda_restore.ladder import Qualification, qualify
from countermark.cuda_restore.oracle import Cache, Oracle
from countermark.cuda_restore.oracle_prompt import OracleShape, Prompt, write_prompt
from countermark.cuda_restore.oracle_snapshot import publish_caches
from countermark.cuda_restore.qualified_ranks import SignedRoot
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.receipts import Basis, derive_receipts
from countermark.cuda_restore.restore_plan import RestorePlan
from countermark.cuda_restore.restore_run import Engine, restore_run
from countermark.cuda_restore.root import SnapshotRoot
from countermark.cuda_restore.rungs import Rung

STORED = OracleShape(ranks=2, tokens=512)
BUNDLED = OracleShape(layers=2, ranks=2, tokens=512)
IMAGE = f"oci-config:sha256:{'ab' * 32}"
RUN = Digest(DigestKind.PAYLOAD, "cd" * 32)
ROOT = Digest(DigestKind.PAYLOAD, "ef" * 32)
ENGINE = Engine(Digest(DigestKind.GIT_COMMIT, "0a" * 20), "0.1.0")
FROM, TO = Instant.parse("2026-12-01T00:00:00Z"), Instant.parse("2026-12-01T00:01:00Z")


@dataclass(frozen=True)
class Stored:
    """A snapshot of every rank and where it lies."""

    folder: Path
    loaded: tuple[LoadedManifest, ...]

    @property
    def signed(self) -> SignedRoot:
        return SignedRoot(SnapshotRoot.of(self.loaded), ROOT)

    def plan(self, **spec: Any) -> RestorePlan:
        """A plan for all ranks on the CPU, changed in some members of its spec; `None` leaves a member out."""
        manifest = self.loaded[0].manifest
        whole = {
            "image": IMAGE,
            "context_digest": manifest.context_digest,
            "committed_tokens": manifest.committed_tokens,
            "ranks": [
                {"rank": rank, "manifest": str(one.path), "chunks": "chunks", "device": "cpu"} for rank, one in enumerate(self.loaded)
            ],
        } | spec
        document = {
            "apiVersion": "countermark.dev/v1",
            "kind": "RestorePlan",
            "metadata": {"id": "oracle", "version": 1},
            "spec": {name: value for name, value in whole.items() if value is not None},
        }
        path = self.folder / "plan.json"
        path.write_text(json.dumps(document))
        return RestorePlan.load(path)

    def qualify(self, **spec: Any) -> Qualification:
        return qualify(self.plan(**spec), self.signed, shape=BUNDLED)


def store(folder: Path, change: Callable[[Sequence[Cache]], None] | None = None, prompt: Prompt | None = None) -> Stored:
    """Publish the oracle's caches of a prompt, changed before they are written: every digest is right, whatever they mean."""
    prompt = prompt or write_prompt(STORED)
    caches = Oracle(STORED).prefill(prompt)
    if change:
        change(caches)
    whole = [np.ascontiguousarray(cache) for cache in caches]
    return Stored(folder, publish_caches(folder, STORED, prompt, whole, object_bytes=100_000))


def signed_by_another(stored: Stored) -> SignedRoot:
    """A root that lists another manifest for rank 0."""
    root = stored.signed.root
    other = replace(root.ranks[0], manifest=Digest(DigestKind.FILE, "00" * 32))
    return SignedRoot(replace(root, ranks=(other, *root.ranks[1:])), ROOT)


def run_of(found: Qualification) -> dict[str, Any]:
    """The predicate of a climb, which must fit its schema."""
    run = restore_run(found, ENGINE)
    assert problems("restore-run", run) == []
    assert json.loads(json.dumps(run)) == run
    return run


def receipts_of(found: Qualification, **basis: Any) -> dict[str, dict[str, Any]]:
    """The receipts of a climb by capability, each of which must fit its schema."""
    rested = Basis(RUN, restore_outcome(run_of(found)), FROM, TO, **basis)
    derived = derive_receipts(found, rested)
    for receipt in derived:
        assert problems("qualification-receipt", receipt) == []
    return {str(receipt["capability"]): receipt for receipt in derived}


def outcomes(found: Qualification) -> list[str]:
    """The outcome of each rung, from the first."""
    return [str(found.rungs[rung].outcome) for rung in Rung]
