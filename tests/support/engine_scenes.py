"""The whole engine on the CUDA device, in a process whose driver is the fake one; one JSON document on standard output.

usage: engine_scenes.py SCENE FOLDER
"""

import ctypes
import json
import os
import sys
from pathlib import Path

from snapshots import Snapshot, small_snapshot

from countermark.attestations.errors import CountermarkError
from countermark.cuda_restore.cuda_device import CudaDevice
from countermark.cuda_restore.page_digest import page_digests
from countermark.cuda_restore.result import RestoreResult
from countermark.cuda_restore.session import RankSource, rank_session
from countermark.cuda_restore.slabs import Bounds
from countermark.cuda_restore.trace_rules import check_trace

Report = dict[str, object]


def restore(snapshot: Snapshot, cache: Path) -> Report:
    """Poison, restore through two slots, read back; the trace's findings beside what became of the bytes.

    With one reader, so that the number of calls is the same every time: each thread sets its context once.
    """
    source = RankSource(rank=0, manifest=snapshot.loaded.path, chunks=snapshot.chunks, bounds=Bounds(1, 3 * 1024))
    with CudaDevice(cache=cache) as device, rank_session(source, device) as session:
        if isinstance(session, RestoreResult):
            return described(session)
        session.poison()
        result = session.restore()
        if not result.read_back:
            return described(result)
        memory, wanted = session.memory(), snapshot.expected(session.request.arena, session.request.blocks)
        pages = session.request.read_back
        assert pages is not None
        same = (page_digests(wanted, pages, result.read_back.key) == result.read_back.digests).all()
        return described(result) | {"wrong_bytes": int((memory != wanted).sum()), "digests_agree": bool(same)}


def described(result: RestoreResult) -> Report:
    raised = ["", ""] if result.error is None else [type(result.error).__name__, str(getattr(result.error, "call", ""))]
    findings = [f"{finding.checker}: {finding.observed}" for finding in check_trace(result.trace)]
    return {"outcome": result.outcome, "raised": raised, "findings": findings}


def failures(snapshot: Snapshot, cache: Path) -> Report:
    """Every driver call of a restore fails once."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_cuda_calls.restype = ctypes.c_char_p
    restore(snapshot, cache)  # the first run compiles the kernels, and the compiler calls the driver too
    driver.fake_cuda_reset()
    restore(snapshot, cache)
    count = len(driver.fake_cuda_calls().split(b","))
    report = []
    for number in range(1, count + 1):
        driver.fake_cuda_reset()
        os.environ["FAKE_CUDA_FAIL"] = str(number)
        try:
            found = restore(snapshot, cache)
        except CountermarkError as error:
            found = {"outcome": "none", "raised": [type(error).__name__, str(getattr(error, "call", ""))], "findings": []}
        finally:
            del os.environ["FAKE_CUDA_FAIL"]
        call = driver.fake_cuda_calls().split(b",")[number - 1].decode()
        report.append(found | {"number": number, "call": call, "live": driver.fake_cuda_live()})
        driver.fake_cuda_forget()
    return {"calls": report}


def main(scene: str, folder: Path) -> None:
    store = folder / "store"
    snapshot = small_snapshot(store)
    report = {"restore": restore, "failures": failures}[scene](snapshot, folder / "cubins")
    json.dump(report | {"live": ctypes.CDLL("libcuda.so.1").fake_cuda_live()}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
