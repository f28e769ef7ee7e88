"""What an audit calls what it sees: the tamper cases of the ledger study that concern a ledger file, by their numbers there."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import Box, make_box, raw

from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.attestations.errors import CannotTellError, RefusedError
from countermark.attestations.keys import PublicKey, Signer, generate_pem
from countermark.ledger.audit import audit
from countermark.ledger.audit_report import AuditReport, name_entries, write_record
from countermark.ledger.leaf import EntryKind, Leaf
from countermark.ledger.merkle import leaf_hash
from countermark.ledger.note import CheckpointSigner
from countermark.ledger.schema import COLUMNS
from countermark.ledger.submission import WITHHOLD_TYPE, Submission, leaf_signature

SEVEN = "(SELECT payload_sha256 FROM entry WHERE idx = 7)"


def _leaf(box: Box, index: int) -> bytes:
    connection = raw(box.path)
    (leaf,) = connection.execute("SELECT leaf FROM entry WHERE idx = ?", (index,)).fetchone()
    connection.close()
    assert isinstance(leaf, bytes)
    return leaf


def _codes(report: AuditReport) -> set[Code]:
    return {finding.code for finding in report.findings}


def _named(report: AuditReport) -> set[str]:
    return {str(finding.subject) for finding in report.findings if finding.subject}


@pytest.mark.parametrize(
    ("case", "change", "entry"),
    [
        (1, f"UPDATE payload SET data = zeroblob(length(data)) WHERE sha256 = {SEVEN}", 7),
        (2, f"UPDATE payload SET data = (SELECT data FROM payload WHERE sha256 <> {SEVEN} LIMIT 1) WHERE sha256 = {SEVEN}", 7),
        (3, "UPDATE entry SET payload_sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 4) WHERE idx = 7", 7),
        (4, "UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 8) WHERE idx = 7", 7),
        (11, "DELETE FROM entry WHERE idx = 4", 4),
        (39, "DELETE FROM subject WHERE idx = 5", 5),
        (39, "UPDATE subject SET idx = 6, pos = 9 WHERE idx = 5", 5),
        (39, "INSERT INTO subject VALUES (6, 9, 'oci-config', zeroblob(32), 'subject', NULL)", 6),
        (39, "INSERT INTO statement VALUES (99, 'x')", 99),
        (39, "UPDATE statement SET predicate_type = 'x' WHERE idx = 5", 5),
        (39, "UPDATE signature SET outcome = 'OK' WHERE idx = 6 AND pos = 1", 6),
        (39, "DELETE FROM signature WHERE idx = 6 AND pos = 0", 6),
        (39, "UPDATE key_event SET role = 'approver'", 1),
        (52, "UPDATE payload SET size = size + 1", 0),
    ],
)
def test_what_was_changed_is_named(small: Box, case: int, change: str, entry: int) -> None:
    small.forget()
    small.edit(change)
    report = small.audit()
    assert report.exit is ExitCode.TAMPERED, case
    assert any(str(entry) in name for name in _named(report)), report.findings


@pytest.mark.parametrize(
    ("case", "change"),
    [
        (5, "UPDATE entry SET leaf = ?, leaf_hash = ? WHERE idx = 6"),
        (15, "UPDATE entry SET idx = CASE idx WHEN 6 THEN -7 ELSE -6 END WHERE idx IN (6, 7); UPDATE entry SET idx = -idx WHERE idx < 0"),
        (12, "DELETE FROM entry WHERE idx = 7; UPDATE entry SET idx = 7 WHERE idx = 8"),
        (13, "DELETE FROM entry WHERE idx = 8"),
        (22, "UPDATE head SET frontier = zeroblob(length(frontier))"),
        (60, "UPDATE ledger SET origin = 'other.example/log'"),
        (60, "UPDATE ledger SET incarnation = zeroblob(16)"),
    ],
)
def test_what_the_tree_or_the_genesis_contradicts_is_tampering(small: Box, case: int, change: str) -> None:
    small.forget()
    leaf = _leaf(small, 6)
    changed = replace(Leaf.decode(leaf), payload_type="text/plain").encode()
    for statement in change.split("; "):
        small.edit(statement, values=(changed, leaf_hash(changed)) if "?" in statement else ())
    assert small.audit().exit is ExitCode.TAMPERED, case


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE tile SET hashes = zeroblob(8192)", Code.TAMPERED),
        ("UPDATE tile SET root = zeroblob(32)", Code.TAMPERED),
        ("UPDATE tile SET hashes = zeroblob(8191)", Code.MALFORMED),
        ("DELETE FROM tile", Code.INCOMPLETE),
        ("INSERT INTO tile SELECT 0, 1, hashes, root FROM tile", Code.TAMPERED),
        ("INSERT INTO tile SELECT 1, 0, hashes, root FROM tile", Code.TAMPERED),
    ],
)
def test_tiles_are_built_again(large: Box, change: str, code: Code) -> None:
    """Cases 19, 20, 21."""
    large.forget()
    large.edit(change)
    report = large.audit()
    assert code in _codes(report)
    assert report.exit is not ExitCode.YES


def test_a_payload_that_is_gone_is_incomplete_and_one_that_was_withheld_is_not(small: Box) -> None:
    """Cases 51, 52."""
    small.append(small.passed(50))
    with small.reader() as reader:
        digest = reader.entry(9).digest
    small.edit(f"DELETE FROM payload WHERE sha256 = x'{digest.hex}'")
    report = small.audit()
    assert (report.exit, _codes(report), _named(report)) == (ExitCode.CANNOT_TELL, {Code.INCOMPLETE}, {"entry 9"})
    payload = json.dumps({"payload": str(digest), "reason": "personal data"}).encode()
    small.append(Submission.sign(EntryKind.WITHHOLD, WITHHOLD_TYPE, payload, small.operator))
    report = small.audit()
    assert [(finding.code, finding.severity, finding.subject) for finding in report.findings] == [(Code.WITHHELD, Severity.INFO, "entry 9")]


def test_a_bundle_that_is_gone_or_changed_is_seen(small: Box) -> None:
    with small.reader() as reader:
        bundle = reader.entry(7).leaf.bundle_sha256.hex()
    small.edit(f"UPDATE payload SET data = zeroblob(3), size = 3 WHERE sha256 = x'{bundle}'")
    assert small.audit().exit is ExitCode.TAMPERED
    small.edit(f"DELETE FROM payload WHERE sha256 = x'{bundle}'")
    assert _codes(small.audit()) == {Code.INCOMPLETE}


def test_a_payload_that_no_entry_names_is_seen(small: Box) -> None:
    small.edit("INSERT INTO payload VALUES (zeroblob(32), 1, x'00')")
    assert small.audit().exit is ExitCode.TAMPERED


def test_a_signature_that_does_not_hold_is_untrusted_though_well_logged(small: Box) -> None:
    """Case 10."""
    bad = replace(small.passed(70), signatures=(leaf_signature(small.operator, b"other bytes"),))
    (index,) = small.append(bad)
    report = small.audit()
    assert (report.exit, _codes(report), _named(report)) == (ExitCode.NO, {Code.UNTRUSTED}, {f"entry {index}"})


def test_a_key_that_is_not_known_is_untrusted_at_each_of_its_entries(small: Box) -> None:
    stranger = Signer.from_pem(generate_pem()[0], "stranger")
    places = small.append(*(replace(small.passed(n), signatures=(leaf_signature(stranger, b"x"),)) for n in (71, 72)))
    report = small.audit()
    assert (report.exit, _named(report)) == (ExitCode.NO, {f"entries {places[0]}-{places[1]}"})


def test_without_keys_nobody_can_tell(small: Box) -> None:
    report = audit(small.path, {}, anchor=small.anchor)
    assert (report.exit, _codes(report)) == (ExitCode.CANNOT_TELL, {Code.INCOMPLETE})
    assert audit(small.path, {}, anchor=small.anchor, signatures=False).exit is ExitCode.YES


def test_the_key_inside_a_bundle_counts_when_the_auditor_trusts_it(small: Box) -> None:
    stranger = Signer.from_pem(generate_pem()[0], "keyless")
    passed = small.passed(73)
    signed = b"DSSEv1 %d %s %d %s" % (len(passed.payload_type), passed.payload_type.encode(), len(passed.payload), passed.payload)
    small.append(replace(passed, signatures=(leaf_signature(stranger, signed),), bundle=b"{}"))

    def key(bundle: bytes) -> PublicKey | None:
        return stranger.public if bundle == b"{}" else None

    assert small.audit().exit is ExitCode.NO
    assert audit(small.path, small.keys, anchor=small.anchor, bundle_key=key).exit is ExitCode.YES


def test_another_log_key_than_the_auditors_is_untrusted(small: Box) -> None:
    """Case 29."""
    other = CheckpointSigner(small.log.vkey.name, Ed25519PrivateKey.generate()).vkey
    report = audit(small.path, small.keys, other, small.anchor)
    assert (report.exit, _codes(report)) == (ExitCode.NO, {Code.UNTRUSTED})
    assert audit(small.path, small.keys, small.log.vkey, small.anchor).exit is ExitCode.YES


def test_a_history_that_was_rewritten_and_signed_again_shows_against_a_note_held_elsewhere(small: Box, tmp_path: Path) -> None:
    """Cases 7, 8, 13, 14."""
    other = small.copy(tmp_path / "other")
    small.append(small.passed(1))
    held = small.head.note
    short = audit(other.path, other.keys, anchor=other.anchor, held={"alice": held})
    assert (short.exit, _codes(short)) == (ExitCode.TAMPERED, {Code.ROLLBACK})
    other.append(other.passed(2), other.passed(3))
    assert other.audit().exit is ExitCode.YES
    report = audit(other.path, other.keys, anchor=other.anchor, held={"alice": held})
    assert (report.exit, _codes(report)) == (ExitCode.TAMPERED, {Code.SPLIT_VIEW})
    small.append(small.passed(4))
    good = audit(small.path, small.keys, anchor=small.anchor, held={"alice": held})
    assert (good.exit, good.protected_to, good.held_by) == (ExitCode.YES, 10, ("alice",))


def test_a_checkpoint_signed_over_another_tree_is_a_split_view(small: Box, tmp_path: Path) -> None:
    other = small.copy(tmp_path / "other")
    other.append(other.passed(2))
    connection = raw(other.path)
    row = connection.execute("SELECT * FROM checkpoint WHERE size = 10").fetchone()
    connection.close()
    small.append(small.passed(1))
    small.edit("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", values=row)
    assert Code.SPLIT_VIEW in _codes(small.audit())


@pytest.mark.parametrize(
    ("change", "code"),
    [(lambda leaf: b"\2" + leaf[1:], Code.UNSUPPORTED), (lambda leaf: leaf + b"\0", Code.MALFORMED), (lambda leaf: b"", Code.MALFORMED)],
)
def test_a_leaf_of_another_form_is_never_skipped(small: Box, change: Any, code: Code) -> None:
    """Cases 61, 62."""
    leaf = change(_leaf(small, 6))
    small.edit("UPDATE entry SET leaf = ?, leaf_hash = ? WHERE idx = 6", values=(leaf, leaf_hash(leaf)))
    report = small.audit()
    assert code in _codes(report)
    assert report.evaluated == report.of - 1


def test_one_finding_hides_no_other(small: Box) -> None:
    small.edit(
        "UPDATE payload SET data = x'00' WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 4)",
        "DELETE FROM subject WHERE idx = 5",
        "UPDATE head SET admitted_ms = 0",
        "DELETE FROM checkpoint WHERE size = 1",
        "UPDATE ledger SET trust_digest = ''",
    )
    checkers = {finding.checker for finding in small.audit().findings}
    assert checkers >= {f"ledger.{name}" for name in ("payload", "derived", "index-digest", "head", "checkpoints", "genesis")}


@pytest.mark.parametrize(
    "table", ["subject", "statement", "tile", "checkpoint", "cosignature", "head", "ledger", "payload", "index_digest"]
)
def test_a_table_that_is_gone_is_tampering(small: Box, table: str) -> None:
    connection = raw(small.path)
    connection.execute(f"DROP TABLE {table}")
    connection.close()
    report = small.audit()
    assert report.exit is ExitCode.TAMPERED
    assert table in " ".join(str(finding.observed) for finding in report.findings)


def _loosened(box: Box, table: str) -> None:
    """Make a table again without STRICT, keys or NOT NULL, so that it takes anything."""
    connection = raw(box.path)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,)).fetchall()
    connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM old_{table}")
    connection.execute(f"DROP TABLE old_{table}")
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()


GARBAGE = [None, b"text \xff", 1.5, "text", -1, 2**62, b""]


@pytest.mark.parametrize("table", sorted(COLUMNS.keys() - {"quarantine", "cosignature", "tile"}))
@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_of_any_type_is_a_finding_and_no_crash(small: Box, table: str, garbage: object) -> None:
    _fill_with(garbage, small, table)
    assert small.audit().exit is ExitCode.TAMPERED


def test_garbage_in_a_tile_is_a_finding_and_no_crash(large: Box, tmp_path: Path) -> None:
    for number, garbage in enumerate(GARBAGE):
        box = large.copy(tmp_path / str(number))
        _fill_with(garbage, box, "tile")
        assert box.audit().exit in (ExitCode.TAMPERED, ExitCode.INVALID)


def _fill_with(garbage: object, box: Box, table: str) -> None:
    box.forget()
    _loosened(box, table)
    value = "CAST(? AS TEXT)" if garbage == b"text \xff" else "?"
    for column in COLUMNS[table]:
        box.edit(f"UPDATE {table} SET {column} = {value} WHERE rowid = (SELECT max(rowid) FROM {table})", values=(garbage,))


def test_pages_that_are_damaged_are_a_finding_and_no_crash(large: Box) -> None:
    data = bytearray(large.path.read_bytes())
    for at in range(5 * 8192, len(data) - 8192, 7 * 8192):
        data[at : at + 64] = bytes(64)
    large.path.write_bytes(data)
    try:
        report = large.audit()
    except CannotTellError:
        return
    assert report.exit in (ExitCode.TAMPERED, ExitCode.CANNOT_TELL)


def test_an_index_that_lacks_a_row_is_seen(small: Box) -> None:
    connection = raw(small.path)
    connection.execute("PRAGMA writable_schema = ON")
    sql = "UPDATE sqlite_master SET sql = replace(sql, '(digest)', '(name)') WHERE name = 'subject_digest'"
    connection.execute(sql)
    connection.close()
    report = small.audit()
    assert report.exit is ExitCode.TAMPERED
    assert {finding.checker for finding in report.findings} >= {"ledger.indexes", "ledger.schema"}


def test_progress_ends_with_all_of_all(large: Box) -> None:
    seen: list[tuple[int, int]] = []
    report = audit(large.path, large.keys, anchor=large.anchor, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (report.of, report.of)
    assert seen == sorted(seen)


def test_a_log_that_only_began_is_one_of_one(tmp_path: Path) -> None:
    box = make_box(tmp_path / "new")
    report = box.audit()
    assert (report.exit, report.evaluated, report.of, report.notices) == (ExitCode.YES, 1, 1, 1)


def test_an_audit_of_nothing_is_no_yes(small: Box) -> None:
    small.forget()
    small.edit(*(f"DELETE FROM {table}" for table in ("entry", "payload", "checkpoint", "head", "ledger", "index_digest")))
    small.edit(*(f"DELETE FROM {table}" for table in ("subject", "signature", "statement", "key_event")))
    assert small.audit().exit is not ExitCode.YES


def test_a_whole_audit_is_put_on_record_and_no_other(small: Box) -> None:
    report = small.audit()
    path = write_record(report, small.path, "alice", 7)
    fields = json.loads(path.read_bytes())
    assert path.name == "countermark.audit"
    assert fields == {"origin": report.origin, "size": 9, "root": report.root.hex(), "audited": "1970-01-01T00:00:00.007Z", "by": "alice"}
    with pytest.raises(RefusedError):
        write_record(replace(report, evaluated=8), small.path, "alice", 7)
    with pytest.raises(CannotTellError):
        write_record(report, small.path / "x.db", "alice", 7)


@pytest.mark.parametrize(
    ("indices", "text"), [([17], "entry 17"), ([5, 6, 7], "entries 5-7"), ([9, 3, 5, 6, 3], "entries 3, 5-6, 9"), ([1, 3], "entries 1, 3")]
)
def test_entries_are_named_in_ranges(indices: list[int], text: str) -> None:
    assert name_entries(indices) == text
