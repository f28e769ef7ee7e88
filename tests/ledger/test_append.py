"""Appending: all or nothing, once and not twice, one checkpoint a transaction, and never on top of something altered."""

import sqlite3
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import START_MS, Box, raw
from sqlalchemy import text

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, RefusedError, TamperError
from countermark.attestations.keys import Algorithm, Signer, generate_pem
from countermark.ledger.leaf import EntryKind
from countermark.ledger.merkle import Frontier, leaf_hash
from countermark.ledger.note import CheckpointSigner, open_checkpoint
from countermark.ledger.prepare import Prepared
from countermark.ledger.submission import GENESIS_TYPE, Refusal, Submission, leaf_signature
from countermark.ledger.write import LedgerWriter, initialise


def _rows(box: Box, sql: str) -> list[Any]:
    connection = raw(box.path)
    found = connection.execute(sql).fetchall()
    connection.close()
    return found


def test_receipts_name_the_places_in_order(small: Box) -> None:
    size = small.head.size
    with small.writer() as writer:
        receipts = writer.append([small.passed(1), small.passed(2)])
    assert [(receipt.index, receipt.duplicate) for receipt in receipts] == [(size, False), (size + 1, False)]
    with small.reader() as reader:
        assert [reader.entry(receipt.index).digest for receipt in receipts] == [receipt.payload for receipt in receipts]


def test_the_same_again_is_answered_with_the_first_place(small: Box) -> None:
    one, two = small.passed(1), small.passed(2)
    with small.writer() as writer:
        first = writer.append([one, two, one])
        head = small.head
        again = writer.append([two, one])
    assert [receipt.duplicate for receipt in first] == [False, False, True]
    assert [(receipt.index, receipt.duplicate) for receipt in again] == [(first[1].index, True), (first[0].index, True)]
    assert small.head == head


def test_signing_again_with_a_key_that_signs_differently_each_time_is_still_the_same(small: Box) -> None:
    signer = Signer.from_pem(generate_pem(Algorithm.ECDSA_P256_SHA256)[0], "p256")
    one, two = (Submission.sign(EntryKind.POLICY, "text/plain", b"same", signer) for _ in range(2))
    assert one.signatures != two.signatures
    assert small.append(one) == small.append(two)


def test_another_signer_of_the_same_payload_is_another_entry_and_one_payload(small: Box) -> None:
    one = small.passed(1)
    two = replace(one, signatures=(leaf_signature(small.second, b"whatever was signed"),))
    places = small.append(one, two)
    assert places[1] == places[0] + 1
    with small.reader() as reader:
        assert reader.find_payload(sha256(one.payload).digest()) == tuple(places)
    assert len(_rows(small, f"SELECT 1 FROM payload WHERE data = x'{one.payload.hex()}'")) == 1


def test_nothing_is_admitted_without_a_verified_signature(small: Box) -> None:
    with pytest.raises(RefusedError):
        small.append(replace(small.passed(1), signatures=()))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET dedup = ? WHERE idx = 6",
        "UPDATE entry SET dedup = ?, leaf = (SELECT leaf FROM entry WHERE idx = 3) WHERE idx = 6",
        "UPDATE entry SET dedup = ?, leaf = x'00' WHERE idx = 6",
    ],
)
def test_a_planted_duplicate_does_not_swallow_a_rejection(small: Box, change: str) -> None:
    rejection = small.rejection("cd" * 32)
    small.edit(change, values=(Prepared.of(rejection).dedup,))
    with pytest.raises(TamperError, match="entry 6"):
        small.append(rejection)


def test_one_bad_submission_keeps_the_whole_batch_out(small: Box) -> None:
    head = small.head
    with pytest.raises(CountermarkError):
        small.append(small.passed(1), replace(small.passed(2), payload_type="x" * 300))
    assert small.head == head


def test_nobody_writes_a_second_genesis(small: Box) -> None:
    with pytest.raises(InputError):
        small.append(Submission.sign(EntryKind.POLICY, GENESIS_TYPE, b"{}", small.operator))
    with pytest.raises(InputError):
        initialise(small.path, small.log, small.operator, "x", small.anchor)


def test_a_second_log_of_the_same_name_is_refused(small: Box, tmp_path: Path) -> None:
    small.path.unlink()
    with pytest.raises(TamperError) as caught:
        small.create()
    assert caught.value.code is Code.ROLLBACK


def test_an_empty_append_is_no_transaction(small: Box) -> None:
    head = small.head
    assert small.append() == []
    assert small.head == head


def test_one_checkpoint_a_transaction_and_every_one_kept(small: Box) -> None:
    small.append(small.passed(1), small.passed(2), small.passed(3))
    small.append(small.passed(4))
    notes = _rows(small, "SELECT size, root, note FROM checkpoint ORDER BY size")
    opened = [open_checkpoint(note, small.log.vkey) for _, _, note in notes]
    assert [(item.size, item.root) for item in opened] == [(size, root) for size, root, _ in notes]
    assert [size for size, _, _ in notes] == [1, 9, 12, 13]
    assert small.head.note == notes[-1][2]


def test_the_head_is_the_tree_over_the_leaves(large: Box) -> None:
    leaves = [row[0] for row in _rows(large, "SELECT leaf FROM entry ORDER BY idx")]
    frontier = Frontier()
    for leaf in leaves:
        frontier = frontier.push(leaf_hash(leaf))
    assert (large.head.size, large.head.root) == (frontier.size, frontier.root())
    assert len(_rows(large, "SELECT 1 FROM tile")) == 1


def test_time_never_runs_backwards(small: Box) -> None:
    small.clock.now -= 30_000
    small.append(small.passed(1))
    times = [row[0] for row in _rows(small, "SELECT admitted_ms FROM entry ORDER BY idx")]
    assert all(first <= second for first, second in pairwise(times))


def test_a_clock_that_is_far_behind_is_refused(small: Box) -> None:
    small.clock.now = START_MS - 61_000
    with pytest.raises(CannotTellError) as caught:
        small.append(small.passed(1))
    assert caught.value.code is Code.CLOCK


def test_another_key_than_the_logs_is_refused(small: Box) -> None:
    stranger = CheckpointSigner(small.log.vkey.name, Ed25519PrivateKey.generate())
    with pytest.raises(RefusedError) as caught:
        LedgerWriter.open(small.path, stranger, small.anchor)
    assert caught.value.code is Code.UNTRUSTED


def test_a_missing_ledger_is_not_made(tmp_path: Path, small: Box) -> None:
    with pytest.raises(CannotTellError) as caught:
        LedgerWriter.open(tmp_path / "typo.db", small.log)
    assert caught.value.code is Code.LEDGER_MISSING
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE head SET root = zeroblob(32)",
        "UPDATE head SET frontier = zeroblob(length(frontier))",
        "UPDATE head SET note = replace(note, 'countermark', 'countermarx')",
        "UPDATE head SET size = size - 1",
        "UPDATE head SET admitted_ms = admitted_ms - 1",
        "DELETE FROM head",
        "UPDATE entry SET leaf_hash = zeroblob(32) WHERE idx = 7",
        "UPDATE entry SET leaf = leaf_hash WHERE idx = 8",
        "DELETE FROM entry WHERE idx = 8",
    ],
)
def test_nothing_is_signed_on_top_of_something_altered(small: Box, change: str) -> None:
    small.edit(change)
    with pytest.raises(TamperError):
        small.append(small.passed(1))
    assert len(_rows(small, "SELECT 1 FROM checkpoint")) == 2


@pytest.mark.parametrize("change", ["UPDATE entry SET leaf_hash = zeroblob(32) WHERE idx = 100", "DELETE FROM entry WHERE idx = 100"])
def test_what_was_stored_is_read_back_before_a_tile_is_signed(small: Box, change: str) -> None:
    small.append(*(small.passed(number) for number in range(240)))
    with small.writer() as writer:
        writer.append([small.passed(300)])
        small.edit(change)
        with pytest.raises(TamperError):
            writer.append([small.passed(number) for number in range(301, 320)])


def test_after_a_commit_that_failed_the_writer_is_dead(small: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    with small.writer() as writer:

        def refuse(session: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patch:
            patch.setattr("countermark.ledger.store.Session.commit", refuse)
            with pytest.raises(CannotTellError) as caught:
                writer.append([small.passed(1)])
        assert caught.value.exit is ExitCode.CANNOT_TELL
        assert "note" not in str(caught.value)
        with pytest.raises(CannotTellError):
            writer.append([small.passed(2)])
    small.append(small.passed(1))
    assert small.audit().exit is ExitCode.YES


def test_a_ledger_that_lost_its_journal_mode_is_not_written_to(small: Box) -> None:
    connection = raw(small.path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    with pytest.raises(CannotTellError) as caught:
        small.writer()
    assert caught.value.code is Code.LEDGER_SCHEMA


def test_a_row_that_the_ledger_should_take_and_refuses_is_tampering(small: Box) -> None:
    connection = raw(small.path)
    connection.execute("CREATE TRIGGER sabotage BEFORE INSERT ON subject BEGIN SELECT RAISE(ABORT, 'no'); END")
    connection.close()
    with pytest.raises(TamperError, match="refuses a row"):
        small.append(small.passed(1))


def test_every_commit_reaches_the_disk(small: Box) -> None:
    with small.writer() as writer:
        asked = {name: writer._session.rows(text(f"PRAGMA {name}")) for name in ("synchronous", "recursive_triggers")}
        assert asked == {"synchronous": [(2,)], "recursive_triggers": [(1,)]}


def test_what_was_refused_is_kept_apart(small: Box) -> None:
    with small.writer() as writer:
        subjects = ("oci-config:sha256:aa", "file:sha256:bb")
        writer.quarantine([Refusal(Code.SIG_INVALID, "no key holds", bytes(32), subjects, "https://example.com/claim/v1")])
    with small.reader() as reader:
        (found,) = reader.quarantined("file:sha256:bb")
        assert (found.reason, found.predicate_type) == ("no key holds", "https://example.com/claim/v1")
        assert not reader.quarantined("file:sha256:cc")
    assert small.audit().exit is ExitCode.YES
