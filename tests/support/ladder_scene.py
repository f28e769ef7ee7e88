"""The ladder on the CUDA device, in a process whose driver is the fake one; one JSON document on standard output.

usage: ladder_scene.py FOLDER
"""

import json
import os
import sys
from pathlib import Path

from qualifying import BUNDLED, RUN, store

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.schema import problems
from countermark.attestations.times import Instant
from countermark.cuda_restore.ladder import qualify
from countermark.cuda_restore.receipts import Basis, derive_receipts
from countermark.cuda_restore.restore_run import Engine, restore_run


def main(folder: Path) -> None:
    stored = store(folder)
    ranks = [{"rank": rank, "manifest": str(one.path), "chunks": "chunks", "device": "cuda:0"} for rank, one in enumerate(stored.loaded)]
    found = qualify(stored.plan(ranks=ranks), stored.signed, shape=BUNDLED)
    run = restore_run(found, Engine(Digest(DigestKind.GIT_COMMIT, "0a" * 20), "0.1.0"))
    instant = Instant.parse("2026-12-01T00:00:00Z")
    receipts = derive_receipts(found, Basis(RUN, Outcome.PASS, instant, instant))
    problem = [str(one) for one in problems("restore-run", run)]
    json.dump({"run": run, "receipts": list(receipts), "problems": problem}, sys.stdout)


if __name__ == "__main__":
    os.environ["XDG_CACHE_HOME"] = sys.argv[1]
    main(Path(sys.argv[1]))
