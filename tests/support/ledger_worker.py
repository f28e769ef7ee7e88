"""A writer in a process of its own: `ledger_worker.py FOLDER FIRST COUNT` appends COUNT entries one by one and prints each index."""

import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import Box, Clock

from countermark.attestations.keys import Signer
from countermark.ledger.note import CheckpointSigner
from countermark.ledger.write import LedgerWriter

LOG_KEY, OPERATOR_KEY = "log.raw", "operator.pem"


def main(folder: Path, first: int, count: int) -> None:
    """Append and acknowledge."""
    log = CheckpointSigner((folder / "origin").read_text(), Ed25519PrivateKey.from_private_bytes((folder / LOG_KEY).read_bytes()))
    operator = Signer.from_pem((folder / OPERATOR_KEY).read_bytes(), OPERATOR_KEY)
    box = Box(folder, log, operator, operator, Clock())
    with LedgerWriter.open(box.path, log, box.anchor) as writer:
        for number in range(first, first + count):
            (receipt,) = writer.append([box.passed(number)])
            sys.stdout.write(f"{number} {receipt.index}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
