"""What a restore reports: an element of a receipt that fits its schema, a rate, a finding, and a refusal."""

from pathlib import Path
from typing import Any

import pytest
from snapshots import bench, small_snapshot

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import RefusedError
from countermark.attestations.schema import problems
from countermark.cuda_restore.cpu_device import CpuDevice
from countermark.cuda_restore.device import Bytes
from countermark.cuda_restore.request import Interference
from countermark.cuda_restore.result import RestoreResult, StreamDigest
from countermark.cuda_restore.spans import SpanTable

RUNGS = ("1-signed-root", "2-coverage", "3-readback", "4-oracle", "5-live")


class Nothing:
    fault = "nothing-really"

    def disturb(self, index: int, payload: Bytes, spans: SpanTable) -> SpanTable:
        return spans


def restored(folder: Path, *, damage: bool = False, interference: Interference | None = None) -> RestoreResult:
    snapshot = small_snapshot(folder / "store")
    if damage:
        snapshot.object_path(5).write_bytes(b"\0" * 1024)
    with CpuDevice() as device, bench(snapshot, device) as ready:
        return ready.restore(interference=interference)


def receipt(result: RestoreResult, **rank: Any) -> dict[str, Any]:
    return {
        "engine": {"version": "0.1.0", "source": f"git-commit:{'0' * 40}", "kernel_source_sha256": "0" * 64},
        "device": {"kind": "cpu", "driver": "absent"},
        "tuple": {},
        "plan": f"file:sha256:{'0' * 64}",
        "ranks": [result.to_json(**rank)],
        "rungs": {rung: {"outcome": "not-run", "reason": "not asked for", "controls": []} for rung in RUNGS},
        "trace": {"events": len(result.trace.events), "digest": str(result.trace.digest)},
        "outcome": str(result.outcome),
    }


def test_a_verified_rank_fits_the_receipt(tmp_path: Path) -> None:
    result = restored(tmp_path)
    image = Digest.of(DigestKind.OCI_CONFIG, b"image")
    found = receipt(result, image=image, stream_digest=StreamDigest.VERIFIED)
    assert problems("restore-run", found) == []
    rank = found["ranks"][0]
    assert (rank["image"], rank["stream_digest"], rank["bytes"], rank["objects"]) == (str(image), "verified", 6651, 7)
    assert 1 <= rank["readers_max"] <= 4
    assert 1024 <= rank["retained_bytes_max"] <= 7 * 1024
    assert result.bytes_per_second == 6651 * 1_000_000 // result.timing.total
    result.demand_verified()
    assert result.finding() is None


def test_a_recomputed_rank_fits_it_too_and_implies_nothing(tmp_path: Path) -> None:
    result = restored(tmp_path, damage=True)
    found = receipt(result)
    assert problems("restore-run", found) == []
    rank = found["ranks"][0]
    assert (rank["structural"], rank["stream_digest"], rank["bytes"]) == ("fail", "waived", 0)
    assert rank["waiver"]
    assert result.bytes_per_second == 0
    with pytest.raises(RefusedError, match="object 5 has SHA-256") as caught:
        result.demand_verified()
    assert (caught.value.code, int(caught.value.exit)) == (Code.RECOMPUTE, 1)


def test_a_disturbed_run_is_refused_by_the_name_of_its_fault(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="nothing-really"):
        restored(tmp_path, interference=Nothing()).demand_verified()
