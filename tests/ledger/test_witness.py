"""A witness never signs two roots at one size and never goes back; its cosignatures come back, and say how far the ledger is protected."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey
from ledger_box import Box

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, RefusedError, TamperError
from countermark.ledger.audit import audit
from countermark.ledger.cosignature import Cosigner
from countermark.ledger.cosignature_rows import add_cosignatures
from countermark.ledger.cosigned import check_own, newest_witnessed, note_at
from countermark.ledger.note import Checkpoint, open_checkpoint
from countermark.ledger.proof_file import GrowthFile
from countermark.ledger.signed_note import SignedNote
from countermark.ledger.witness import STATE_FILE, Witness, begin_state
from countermark.ledger.witness_policy import WitnessPolicy

NOW_S = 1_796_000_000
ONE = Cosigner("witness.example/one", Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32))
TWO = Cosigner("witness.example/two", MLDSA44PrivateKey.from_seed_bytes(bytes([2]) * 32))


def growth(box: Box, old: int, size: int | None = None) -> GrowthFile:
    with box.reader() as reader:
        note = note_at(reader, size or reader.head.size)
        if size:
            reader.rewind(size)
        return GrowthFile(old, reader.prove_growth(old), note)


def make_witness(box: Box, folder: Path) -> Witness:
    folder.mkdir()
    begin_state(folder)
    return Witness(folder, {box.log.vkey.name: box.log.vkey})


@pytest.fixture
def witness(small: Box, tmp_path: Path) -> Witness:
    return make_witness(small, tmp_path / "witness")


def policy_of(box: Box, rule: str) -> WitnessPolicy:
    return WitnessPolicy.parse(f"log {box.log.vkey}\nwitness one {ONE.vkey}\nwitness two {TWO.vkey}\n{rule}\n".encode(), "policy")


def add(box: Box, note: str) -> int:
    with box.reader() as reader:
        signed = check_own(reader, note)
    found = [item for witness in (ONE, TWO) for item in witness.vkey.cosignatures(signed)]
    return add_cosignatures(box.path, Checkpoint.parse(signed.text), found)


@pytest.mark.parametrize("cosigner", [ONE, TWO])
def test_it_cosigns_what_continues(small: Box, witness: Witness, cosigner: Cosigner) -> None:
    first = witness.cosign(growth(small, 0), cosigner, NOW_S)
    assert open_checkpoint(first, small.log.vkey).size == 9
    assert [item.time_s for item in cosigner.vkey.cosignatures(SignedNote.parse(first))] == [NOW_S]
    small.append(small.passed(1), small.passed(2))
    second = witness.cosign(growth(small, 9), cosigner, NOW_S + 1)
    assert open_checkpoint(second, small.log.vkey).size == 11
    again = witness.cosign(growth(small, 11), cosigner, NOW_S + 1)
    assert again == second or cosigner is TWO
    assert [(seen.checkpoint.size, seen.time_s) for seen in witness.seen()] == [(11, NOW_S + 1)]


def test_it_names_the_size_that_it_has_seen(small: Box, witness: Witness) -> None:
    """The 409 of the protocol."""
    witness.cosign(growth(small, 0), ONE, NOW_S)
    small.append(small.passed(1))
    for old in (0, 5, 10):
        with pytest.raises(RefusedError, match="--from 9") as caught:
            witness.cosign(growth(small, old), ONE, NOW_S)
        assert caught.value.code is Code.STALE


def test_it_never_goes_back(small: Box, witness: Witness) -> None:
    old = growth(small, 0)
    small.append(small.passed(1))
    witness.cosign(growth(small, 0), ONE, NOW_S)
    for request in (old, GrowthFile(9, (), old.note), GrowthFile(10, (), old.note)):
        with pytest.raises(CountermarkError):
            witness.cosign(request, ONE, NOW_S)
    with pytest.raises(CannotTellError) as caught:
        witness.cosign(growth(small, 10), ONE, NOW_S - 1)
    assert caught.value.code is Code.CLOCK
    assert [seen.checkpoint.size for seen in witness.seen()] == [10]


def fork(box: Box, folder: Path, number: int) -> Box:
    other = box.copy(folder)
    other.forget()
    other.append(other.passed(number))
    return other


def test_two_histories_are_kept_as_evidence(small: Box, witness: Witness, tmp_path: Path) -> None:
    other = fork(small, tmp_path / "fork", 5)
    small.append(small.passed(1))
    cosigned = witness.cosign(growth(small, 0), ONE, NOW_S)
    with pytest.raises(TamperError) as caught:
        witness.cosign(growth(other, 0), ONE, NOW_S)
    assert caught.value.code is Code.SPLIT_VIEW
    other.append(other.passed(6))
    with pytest.raises(TamperError):
        witness.cosign(growth(other, 10), ONE, NOW_S)
    kept = [path.read_text() for path in sorted((tmp_path / "witness").glob("evidence-*.txt"))]
    assert len(kept) == 2
    for text in kept:
        first, _, second = text.partition("\nold ")
        assert open_checkpoint(first, small.log.vkey) == open_checkpoint(cosigned, small.log.vkey)
        assert open_checkpoint(GrowthFile.parse(f"old {second}".encode()).note, small.log.vkey).size in (10, 11)


def test_what_it_does_not_take(small: Box, witness: Witness, tmp_path: Path) -> None:
    request = growth(small, 0)
    with pytest.raises(RefusedError):
        Witness(tmp_path / "witness", {}).cosign(request, ONE, NOW_S)
    with pytest.raises(RefusedError):
        witness.cosign(GrowthFile(0, (), request.note.replace("\n9\n", "\n8\n")), ONE, NOW_S)
    for bad in (GrowthFile(0, (bytes(32),), request.note), GrowthFile(10, (), request.note)):
        with pytest.raises(InputError):
            witness.cosign(bad, ONE, NOW_S)
    assert witness.seen() == []
    with pytest.raises(InputError):
        begin_state(tmp_path / "witness")
    (tmp_path / "witness" / STATE_FILE).write_bytes(b"not a database at all, but long enough to be looked at")
    with pytest.raises(CannotTellError):
        witness.cosign(request, ONE, NOW_S)
    (tmp_path / "witness" / STATE_FILE).unlink()
    with pytest.raises(CannotTellError):
        witness.cosign(request, ONE, NOW_S)
    assert not (tmp_path / "witness" / STATE_FILE).exists()


def test_many_at_once_sign_one_history(small: Box, witness: Witness, tmp_path: Path) -> None:
    """Eight askers, each with another history after the common beginning: one of them is cosigned."""
    witness.cosign(growth(small, 0), ONE, NOW_S)
    requests = [growth(fork(small, tmp_path / f"fork{number}", number), 9) for number in range(8)]

    def ask(request: GrowthFile) -> Checkpoint | None:
        try:
            return open_checkpoint(witness.cosign(request, ONE, NOW_S), small.log.vkey)
        except (TamperError, RefusedError):
            return None

    with ThreadPoolExecutor(8) as pool:
        signed = [found for found in pool.map(ask, requests * 3) if found]
    assert {found.size for found in signed} == {10}
    assert len({found.root for found in signed}) == 1


def test_no_cosignature_without_a_state_on_the_disk(small: Box, witness: Witness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When signing fails after the state changed, the same head can be asked for again; when the state fails, nothing is signed."""
    request = growth(small, 0)

    def fail(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(Cosigner, "sign", fail)
        with pytest.raises(RuntimeError):
            witness.cosign(request, ONE, NOW_S)
    assert [seen.checkpoint.size for seen in witness.seen()] == [9]
    assert witness.cosign(growth(small, 9), ONE, NOW_S)
    holder = sqlite3.connect(tmp_path / "witness" / STATE_FILE, isolation_level=None)
    monkeypatch.setattr("countermark.ledger.witness._BUSY_S", 0.05)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(CannotTellError):
        witness.cosign(growth(small, 9), ONE, NOW_S)
    holder.close()


def test_cosignatures_come_back(small: Box, witness: Witness, tmp_path: Path) -> None:
    note = witness.cosign(growth(small, 0), ONE, NOW_S)
    assert (add(small, note), add(small, note)) == (1, 0)
    other = make_witness(small, tmp_path / "other")
    small.append(small.passed(1))
    assert add(small, other.cosign(growth(small, 0), TWO, NOW_S + 5)) == 1
    with small.reader() as reader:
        assert len(SignedNote.parse(note_at(reader, 9)).lines) == len(SignedNote.parse(note_at(reader, 10)).lines) == 2
        found = {
            rule: newest_witnessed(reader, policy_of(small, rule)) for rule in ("quorum one", "quorum two", "group g all one two\nquorum g")
        }
    assert [item and item[1].checkpoint.size for item in found.values()] == [9, 10, None]
    assert small.audit().findings == ()


@pytest.mark.parametrize(
    ("rule", "protected", "names"),
    [
        ("quorum one", 9, ("witness.example/one",)),
        ("quorum two", 10, ("witness.example/two",)),
        ("group g any one two\nquorum g", 10, ("witness.example/two",)),
        ("group g all one two\nquorum g", None, ()),
        ("quorum none", 10, ("witness.example/two",)),
    ],
)
def test_the_horizon(small: Box, tmp_path: Path, rule: str, protected: int | None, names: tuple[str, ...]) -> None:
    add(small, make_witness(small, tmp_path / "one").cosign(growth(small, 0), ONE, NOW_S))
    small.append(small.passed(1))
    add(small, make_witness(small, tmp_path / "two").cosign(growth(small, 0), TWO, NOW_S))
    small.append(small.passed(2))
    report = audit(small.path, small.keys, anchor=small.anchor, witnesses=policy_of(small, rule))
    assert (report.exit, report.protected_to, report.held_by) == (ExitCode.YES, protected, names)
    assert small.audit().protected_to is None


def test_a_false_cosignature_is_found(small: Box, witness: Witness) -> None:
    """Tamper case 30: a line that is well made, over another checkpoint."""
    line = ONE.sign(Checkpoint("log.example/other", 9, bytes(32)), NOW_S)
    small.edit(
        "INSERT INTO cosignature VALUES (9, (SELECT root FROM head), ?, ?, ?, ?)",
        values=(line.name, line.key_id, NOW_S, str(line)),
    )
    report = audit(small.path, small.keys, anchor=small.anchor, witnesses=policy_of(small, "quorum one"))
    assert (report.exit, report.protected_to) == (ExitCode.NO, None)
    assert [finding.code for finding in report.findings] == [Code.UNTRUSTED]


def test_a_foreign_note_is_not_taken(small: Box, witness: Witness, tmp_path: Path) -> None:
    other = fork(small, tmp_path / "fork", 5)
    small.append(small.passed(1))
    with small.reader() as reader, pytest.raises(TamperError):
        check_own(reader, other.head.note)
    assert witness.seen() == []
