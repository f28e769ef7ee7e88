"""The demo's restores: one that holds, one with a changed byte, and one that every digest calls good and that means something else.

The snapshot is the bundled oracle's own cache, so it is known which word a restore of it must answer.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from countermark.actions.appending import Recorded, record
from countermark.actions.gate import Asked, gate
from countermark.actions.new_files import write_new
from countermark.actions.restore.qualify import Qualified, qualify
from countermark.actions.restore.run import Asked as RunAsked
from countermark.actions.restore.run import run_restore
from countermark.actions.restore.snapshot_root import read_snapshot
from countermark.actions.restore.write import Written, plan_text, write_oracle
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.contracts.explain_text import explain
from countermark.cuda_restore.oracle import Oracle
from countermark.cuda_restore.oracle_prompt import SPARK, OracleShape, write_prompt
from countermark.cuda_restore.oracle_snapshot import publish_caches
from countermark.cuda_restore.result import RestoreOutcome
from countermark.cuda_restore.store import CHUNKS

STORED: Final = OracleShape(ranks=2, tokens=512)
CONTROLS: Final = OracleShape(layers=2, ranks=2, tokens=512)
"""A small oracle for the faults that must be caught, so that the demo stays short."""

OBJECT_BYTES: Final = 100_000
REQUIRE: Final = "restore.structural@tp=2,dcp=1,context_tokens=512"


@dataclass(slots=True)
class Restores:
    """Tells the restores in the demo's folder; each part yields what came out otherwise than the story says."""

    workspace: Workspace
    folder: Path
    tell: Callable[[str], None]

    def run(self, image: Digest, policy: Path) -> Iterator[str]:
        """All of it; `policy` is the serving policy that the gate is asked under."""
        self.tell("7. A KV-cache snapshot, made on the spot: its root signed, then restored under attestation on the CPU")
        written = write_oracle(self.folder / "snapshot", STORED, "red", object_bytes=OBJECT_BYTES)
        yield from self._holds(written, image)
        yield from self._gate(image, policy)
        self.tell("8. The same snapshot with one byte changed on the disk")
        yield from self._corrupt(written)
        self.tell("9. Two pages of every layer exchanged, every digest made right again, and the root signed anew")
        yield from self._misordered()

    def _holds(self, written: Written, image: Digest) -> Iterator[str]:
        done = self._qualify(written, "plan.yaml", image)
        if done.run["outcome"] != "verified" or len(done.appended) != 2:
            yield f"the restore of an untouched snapshot came out as {done.run['outcome']}"

    def _gate(self, image: Digest, policy: Path) -> Iterator[str]:
        (decision,) = gate(self.workspace, Asked((str(image),), policy, (REQUIRE,))).decisions
        self.tell("   may it serve? a receipt of a CPU shows that the engine works, and nothing about a GPU")
        self.tell("\n".join(f"   {line}" for line in explain(decision).rstrip().splitlines()))
        code = decision.requirements[0].code
        if (decision.verdict, code) != ("DENY", Code.CAP_UNQUALIFIED):
            yield f"the gate said {decision.verdict} {code} about a receipt of a CPU"

    def _corrupt(self, written: Written) -> Iterator[str]:
        folder = self.folder / "corrupt"
        shutil.copytree(self.folder / "snapshot", folder)
        first = written.manifests[0]
        path = folder / CHUNKS / first.manifest.objects[2].file_name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        ran = run_restore(RunAsked(manifests=tuple(one.path for one in written.manifests), chunks=folder / CHUNKS))
        for run in ran.runs:
            failure = run.result.failure
            told = f", failed at object {failure.object} [{failure.cause}]" if failure else ""
            self.tell(f"   rank {run.result.rank}  {run.result.outcome}{told}")
        self.tell(f"   all ranks: {ran.outcome}; what had been placed is overwritten on every rank")
        if ran.outcome is not RestoreOutcome.RECOMPUTE:
            yield "a changed byte was restored"

    def _misordered(self) -> Iterator[str]:
        prompt = write_prompt(STORED, "red")
        caches = [np.ascontiguousarray(cache) for cache in Oracle(STORED).prefill(prompt)]
        for cache in caches:
            cache[:, :, [2, 5]] = cache[:, :, [5, 2]].copy()
        (self.folder / "misordered").mkdir()
        manifests = publish_caches(self.folder / "misordered", STORED, prompt, caches, object_bytes=OBJECT_BYTES)
        done = self._qualify(Written(manifests, self.folder / "misordered" / CHUNKS), "misordered.yaml", None)
        said = done.run["answer"]["raw"] == str(Digest.of(DigestKind.RESPONSE_RAW, SPARK.encode()))
        self.tell(f"   the oracle answers {SPARK!r}: structure cannot see meaning" if said else "   the oracle answers something else")
        if not said or {rank["structural"] for rank in done.run["ranks"]} != {"pass"} or len(done.appended) != 1:
            yield f"a mis-ordered snapshot came out as {done.run['outcome']}"

    def _qualify(self, written: Written, plan: str, image: Digest | None) -> Qualified:
        root = self._record(written)
        self.tell(f"   entry {root.receipt.index}  the signed root of {len(written.manifests)} ranks  {root.receipt.payload}")
        write_new(self.folder / plan, plan_text(self.folder, written.manifests, written.chunks, image=image))
        done = qualify(self.workspace, self.folder / plan, None, shape=CONTROLS)
        for name, rung in done.run["rungs"].items():
            held = sum(control["outcome"] == "pass" for control in rung["controls"])
            faults = f", {held} of {len(rung['controls'])} faults caught" if rung["controls"] else ""
            self.tell(f"   {name:<14} {rung['outcome']}{faults}{'  ' + rung['reason'] if 'reason' in rung else ''}")
        entry, *receipts = (item.receipt.index for item in done.appended)
        derived = f"its receipt entry {receipts[0]}" if receipts else "and nothing derived: the plan names no image"
        self.tell(f"   the answer {done.run['answer']['required']!r}: {done.run['answer']['outcome']}")
        self.tell(f"   {done.run['outcome']}; the run is entry {entry}, {derived}")
        return done

    def _record(self, written: Written) -> Recorded:
        return record(self.workspace, read_snapshot([one.path for one in written.manifests]), "builder", None)
