"""No byte of a file that leaves a ledger can change without its verifier saying so, but for those that are named here.

Every byte in the extended run, and some in each run. `test_proof_file` does the same with proofs of inclusion, `test_tamper_bits` with the
rows of the ledger itself.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from ledger_box import Box, raw

from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.attestations.errors import CannotTellError, CountermarkError, TamperError
from countermark.ledger.anchor import Anchor
from countermark.ledger.audit import audit
from countermark.ledger.backup import Manifest, back_up, manifest_path
from countermark.ledger.export import export
from countermark.ledger.export_audit import ExportOptions, audit_export
from countermark.ledger.merkle import check_consistency
from countermark.ledger.note import open_checkpoint
from countermark.ledger.proof_file import GrowthFile
from countermark.ledger.restore import candidate
from countermark.ledger.schema import COLUMNS
from countermark.ledger.signed_note import SignedNote
from countermark.ledger.witness import STATE_FILE, Witness
from countermark.ledger.witness_policy import WitnessPolicy

from .test_backup import WRITTEN_MS, lose
from .test_witness import NOW_S, ONE, TWO, growth, make_witness, policy_of

SOME = 97
"""In each run every so manieth byte; a prime, so that lines and rows of equal length are met at all their places."""


def flipped(data: bytes, step: int) -> Iterator[tuple[int, bytes]]:
    """The data with one byte changed: a bit of it, its case, its highest bit, or a newline in its place."""
    random = Random(20261202)
    for at in range(random.randrange(step), len(data), step):
        for value in {data[at] ^ 1 << random.randrange(8), data[at] ^ 0x20, data[at] ^ 0x80, 0x0A}.difference({data[at]}):
            yield at, data[:at] + bytes((value,)) + data[at + 1 :]


def refused(data: bytes, verify: Callable[[bytes], object], step: int) -> None:
    """Whatever byte is changed, the file is not verified."""
    verify(data)
    for at, changed in flipped(data, step):
        with pytest.raises(CountermarkError):
            pytest.fail(f"byte {at}: {verify(changed)}")


STEPS = pytest.mark.parametrize("step", [SOME, pytest.param(1, marks=pytest.mark.slow)])


def cosigned(box: Box, folder: Path) -> str:
    """The head, cosigned by both witnesses: one of each sort of key."""
    notes = [make_witness(box, folder / name).cosign(growth(box, 0), who, NOW_S) for name, who in (("w1", ONE), ("w2", TWO))]
    first, second = map(SignedNote.parse, notes)
    return str(SignedNote(first.text, (*first.lines, second.lines[-1])))


@STEPS
def test_a_note_with_cosignatures(small: Box, tmp_path: Path, step: int) -> None:
    policy = policy_of(small, "group both all one two\nquorum both")
    refused(cosigned(small, tmp_path).encode(), policy.open, step)


@STEPS
def test_a_line_that_no_policy_knows_is_not_authenticated(small: Box, tmp_path: Path, step: int) -> None:
    """The one exception in a note: a line in the name of nobody who is known counts for nothing, whatever stands in it."""
    note, policy = cosigned(small, tmp_path), policy_of(small, "group either any one two\nquorum either")
    known = WitnessPolicy(policy.logs, {b"one": ONE.vkey}, {}, b"one", "policy")
    start = note.encode().rindex("\N{EM DASH}".encode())
    for at, changed in flipped(note.encode(), step):
        try:
            opened = known.open(changed)
        except CountermarkError:
            continue
        assert at >= start
        assert opened == known.open(note)


@STEPS
def test_a_proof_of_growth(small: Box, step: int) -> None:
    held = open_checkpoint(small.head.note, small.log.vkey)
    small.append(*(small.passed(number) for number in range(3)))
    with small.reader() as reader:
        data = GrowthFile(held.size, reader.prove_growth(held.size), reader.head.note).encode()

    def verify(changed: bytes) -> None:
        proof = GrowthFile.parse(changed)
        new = open_checkpoint(proof.note, small.log.vkey)
        if proof.old != held.size:
            raise TamperError(Code.SUBJECT_MISMATCH, "another size than the checkpoint that is held", fix="")
        check_consistency(held.size, new.size, held.root, new.root, proof.hashes)

    refused(data, verify, step)


@STEPS
def test_the_files_of_an_export(small: Box, tmp_path: Path, step: int) -> None:
    """Payloads, bundles of entries, tiles, those of an earlier head too, the checkpoint and the schema."""
    out = tmp_path / "out"
    for more in ((), (small.passed(1),)):
        small.append(*more)
        with small.reader() as reader:
            export(reader, out)
    options = ExportOptions(small.keys)
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        data = path.read_bytes()
        for at, changed in list(flipped(data, step))[:: 4 if step > 1 else 5]:
            path.write_bytes(changed)
            report = audit_export(out, small.log.vkey, options)
            assert report.exit not in (ExitCode.YES, ExitCode.NOTHING), (path, at)
            assert any(finding.severity is Severity.BLOCK for finding in report.findings)
        path.write_bytes(data)
    assert audit_export(out, small.log.vkey, options).findings == ()


@STEPS
def test_the_manifest_of_a_backup(small: Box, tmp_path: Path, step: int) -> None:
    """Not authenticated: when it was written, and white space between its fields."""
    backup = tmp_path / "one.bak"
    back_up(small.path, backup, small.head, WRITTEN_MS)
    lose(small)
    whole, path = Manifest.read(backup), manifest_path(backup)
    for at, changed in flipped(path.read_bytes(), step):
        path.write_bytes(changed)
        with suppress(CountermarkError), candidate(backup, small.path, small.log.vkey, (), small.anchor) as found:
            assert replace(found.manifest, written=whole.written) == whole, at
            assert found.lost is None


def test_a_backup(small: Box, tmp_path: Path) -> None:
    """Its digest is in the manifest, so that few places tell as much as all."""
    backup = tmp_path / "one.bak"
    back_up(small.path, backup, small.head, WRITTEN_MS)
    lose(small)

    def verify(changed: bytes) -> None:
        backup.write_bytes(changed)
        with candidate(backup, small.path, small.log.vkey, (), small.anchor):
            pass

    refused(backup.read_bytes(), verify, 40_009)


@STEPS
def test_an_anchor(small: Box, step: int) -> None:
    """Not authenticated: when it was written, and white space, with which it is filled up."""
    data = small.anchor.read_bytes()
    whole = Anchor.decode(data, "anchor")
    for at, changed in flipped(data.rstrip(b" \n"), step):
        with suppress(CountermarkError):
            found = Anchor.decode(changed, "anchor")
            found.check_note(small.log.vkey)
            assert replace(found, written=whole.written) == whole, at


@pytest.mark.parametrize("step", [997, pytest.param(1, marks=pytest.mark.slow)])
def test_the_state_of_a_witness(small: Box, tmp_path: Path, step: int) -> None:
    """Whatever becomes of its memory, it signs no other history, and accuses no log that has one. Not authenticated: the time."""
    twin = small.copy(tmp_path / "twin")
    twin.forget()
    twin.append(twin.passed(7))
    small.append(small.passed(1))
    state = tmp_path / "witness" / STATE_FILE
    make_witness(small, state.parent).cosign(growth(small, 0), ONE, NOW_S)
    honest, others = growth(small, 10), (growth(twin, 0), growth(twin, 9), growth(twin, 10))
    data = state.read_bytes()
    used = [(at, changed) for at, changed in flipped(data, step) if data[at] or at % SOME == 0]
    for at, changed in used[:: 1 if step > 1 else 2]:
        for request in (honest, *others):
            state.write_bytes(changed)
            cosigns(Witness(state.parent, {small.log.vkey.name: small.log.vkey}), request, at, allowed=request is honest)


def cosigns(witness: Witness, request: GrowthFile, at: int, *, allowed: bool) -> None:
    try:
        witness.cosign(request, ONE, NOW_S + 1)
    except CannotTellError:
        return
    except CountermarkError:
        assert not allowed, at
    else:
        assert allowed, at


@pytest.mark.parametrize("step", [20_011, pytest.param(307, marks=pytest.mark.slow)])
def test_the_file_of_a_ledger(small: Box, step: int) -> None:
    """Below its rows: a strict audit finds the byte, or it is SQLite's own and every row reads as before. The program never stumbles."""
    with closing(raw(small.path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data, rows = small.path.read_bytes(), rows_of(small)
    for at, changed in flipped(data, step):
        for end in ("-wal", "-shm"):
            small.path.with_name(small.path.name + end).unlink(missing_ok=True)
        small.path.write_bytes(changed)
        with suppress(CountermarkError):
            report = audit(small.path, small.keys, anchor=small.anchor, strict=True)
            assert report.exit is not ExitCode.YES or rows_of(small) == rows, at


def rows_of(box: Box) -> list[object]:
    with closing(raw(box.path)) as db:
        return [db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in COLUMNS if table != "quarantine"]
