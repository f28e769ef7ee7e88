"""Writers in processes of their own.

`ledger_worker.py FOLDER FIRST COUNT` appends COUNT entries one by one, and tells of each, once it is acknowledged, its number, its index
and the head after it. It ends as the program does: with the exit code of the error that it met.

`ledger_worker.py FOLDER FIRST COUNT WRITERS` is as many of these at once, the numbers of each beginning 1,000 after those of the last.

`ledger_worker.py FOLDER` forks such a writer for each line `FIRST COUNT` of its input, which is quicker than to start one: it tells the
process id, what the writer tells, and `end`.
"""

import os
import sys
from pathlib import Path
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import Box, Clock

from countermark.attestations.errors import CountermarkError
from countermark.attestations.keys import Signer
from countermark.ledger.note import CheckpointSigner
from countermark.ledger.write import LedgerWriter

LOG_KEY, OPERATOR_KEY = "log.raw", "operator.pem"


def make_shared(folder: Path) -> Box:
    """A new ledger whose keys lie in files beside it, so that other processes can write to it."""
    from countermark.attestations.keys import generate_pem

    private, (pem, _) = Ed25519PrivateKey.generate(), generate_pem()
    (folder / LOG_KEY).write_bytes(private.private_bytes_raw())
    (folder / OPERATOR_KEY).write_bytes(pem)
    (folder / "origin").write_text("countermark.local/shared/00000001")
    box = shared(folder)
    box.create()
    return box


def shared(folder: Path) -> Box:
    """The ledger in a folder, with the keys beside it."""
    log = CheckpointSigner((folder / "origin").read_text(), Ed25519PrivateKey.from_private_bytes((folder / LOG_KEY).read_bytes()))
    operator = Signer.from_pem((folder / OPERATOR_KEY).read_bytes(), OPERATOR_KEY)
    return Box(folder, log, operator, operator, Clock())


def write(folder: Path, first: int, count: int) -> None:
    """Append and acknowledge."""
    box = shared(folder)
    with LedgerWriter.open(box.path, box.log, box.anchor) as writer:
        for number in range(first, first + count):
            (receipt,) = writer.append([box.passed(number)])
            head = writer._known
            assert head is not None
            sys.stdout.write(f"{number} {receipt.index} {head.size} {head.root.hex()}\n")
            sys.stdout.flush()


def run(folder: Path, first: int, count: int) -> NoReturn:
    """Write, and end as the program ends."""
    try:
        write(folder, first, count)
    except CountermarkError as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(error.exit)
    os._exit(0)


def together(folder: Path, first: int, count: int, writers: int) -> NoReturn:
    """Several writers at once; the highest of their exit codes."""
    children = []
    for number in range(writers):
        child = os.fork()
        if not child:
            run(folder, first + 1000 * number, count)
        children.append(child)
    os._exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))


def serve(folder: Path) -> None:
    """Fork a writer for each line of the input."""
    for line in sys.stdin:
        first, count = map(int, line.split())
        child = os.fork()
        if not child:
            # The child says who it is itself: said by its parent, it could come after the child's first answer.
            sys.stdout.write(f"pid {os.getpid()}\n")
            sys.stdout.flush()
            run(folder, first, count)
        os.waitpid(child, 0)
        sys.stdout.write("end\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(Path(sys.argv[1]))
    elif len(sys.argv) == 5:
        together(Path(sys.argv[1]), *map(int, sys.argv[2:]))
    else:
        run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
