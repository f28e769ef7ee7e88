"""Cases 39, 40, 51, 52: the rows by which entries are found, and payloads that were erased."""

import json

from insider import rebuild_digests
from ledger_box import Box, raw

from countermark.attestations.codes import Code
from countermark.ledger.leaf import EntryKind
from countermark.ledger.submission import WITHHOLD_TYPE, Submission

from .lab import Lab, Look, audited, case, loosened, spoilt


@case(Code.TAMPERED, "entry 5", "the rows of table subject are not what the payload calls for")
def case_39_a_subject_row_is_gone(lab: Lab) -> Look:
    box = lab.small()
    box.edit("DELETE FROM subject WHERE idx = 5")
    rebuild_digests(box)
    return audited(box)


@case(Code.TAMPERED, "entry 6", "the rows of table subject are not what the payload calls for")
def case_39_a_subject_row_is_added(lab: Lab) -> Look:
    box = lab.small()
    box.edit("INSERT INTO subject VALUES (6, 9, 'oci-config', zeroblob(32), 'subject', NULL)")
    rebuild_digests(box)
    return audited(box)


@case(Code.TAMPERED, "entry 5", "the rows of table statement are not what the payload calls for")
def case_39_a_statement_row_is_edited(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE statement SET predicate_type = 'x' WHERE idx = 5")
    rebuild_digests(box)
    return audited(box)


@case(Code.TAMPERED, "entry 6", "a signature that is not in the leaf is called OK")
def case_39_a_signature_that_did_not_verify_is_called_ok(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE signature SET outcome = 'OK' WHERE idx = 6 AND pos = 1")
    rebuild_digests(box)
    return audited(box)


@case(Code.TAMPERED, "entries 0-8", "the derived rows do not hash to their index digest")
def case_39_a_row_that_nothing_else_vouches_for(lab: Lab) -> Look:
    return spoilt(lab.small(), "UPDATE signature SET keyid = 'somebody else' WHERE idx = 6 AND pos = 1")


@case(Code.TAMPERED, "entries 0-8", "the index digest is missing")
def case_39_an_index_digest_is_gone(lab: Lab) -> Look:
    return spoilt(lab.small(), "DELETE FROM index_digest")


@case(Code.TAMPERED, "", "an index digest is about no entries")
def case_39_an_index_digest_too_many(lab: Lab) -> Look:
    return spoilt(lab.small(), "INSERT INTO index_digest VALUES (1, zeroblob(32))")


@case(Code.TAMPERED, "entry 99", "a row of table statement belongs to no entry")
def case_39_a_row_of_no_entry(lab: Lab) -> Look:
    return spoilt(lab.small(), "INSERT INTO statement VALUES (99, 'x')")


@case(Code.TAMPERED, "entry -3", "a row of table statement belongs to no entry")
def case_39_a_row_before_the_first_entry(lab: Lab) -> Look:
    return spoilt(lab.small(), "INSERT INTO statement VALUES (-3, 'x')")


@case(Code.TAMPERED, "", "SQLite says: ")
def case_39_an_index_that_lacks_a_row(lab: Lab) -> Look:
    """The rows are all there, and no look-up finds the rejection."""
    box = lab.small()
    db = raw(box.path)
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = replace(sql, '(digest)', '(name)') WHERE name = 'subject_digest'")
    db.close()
    return audited(box)


@case(Code.TAMPERED, "entry 5", "the rows of table subject are not what the payload calls for")
def case_40_a_digest_as_text(lab: Lab) -> Look:
    box = loosened(lab.small(), "subject")
    box.edit("UPDATE subject SET digest = CAST(digest AS TEXT) WHERE idx = 5")
    return audited(box)


@case(Code.TAMPERED, "", "an entry has the key 8 and a leaf that is str")
def case_40_a_leaf_as_text(lab: Lab) -> Look:
    box = loosened(lab.small(), "entry")
    return spoilt(box, "UPDATE entry SET leaf = CAST(leaf AS TEXT) WHERE idx = 8")


@case(Code.TAMPERED, "", "a row of table statement has the index 'five'")
def case_40_an_index_as_text(lab: Lab) -> Look:
    return spoilt(loosened(lab.small(), "statement"), "UPDATE statement SET idx = 'five' WHERE idx = 5")


def _erased(box: Box, index: int) -> str:
    with box.reader() as reader:
        digest = str(reader.entry(index).digest)
    box.edit(f"DELETE FROM payload WHERE sha256 = x'{digest.removeprefix('payload:sha256:')}'")
    return digest


@case(Code.WITHHELD, "entry 4", "the payload was withheld")
def case_51_a_payload_that_a_signed_notice_withholds(lab: Lab) -> Look:
    box = lab.small()
    payload = json.dumps({"payload": _erased(box, 4), "reason": "personal data"}).encode()
    box.append(Submission.sign(EntryKind.WITHHOLD, WITHHOLD_TYPE, payload, box.operator))
    return audited(box)


@case(Code.INCOMPLETE, "entries 4, 6, 8", "the payload or bundle is missing")
def case_52_payloads_that_nobody_withheld(lab: Lab) -> Look:
    box = lab.small()
    _erased(box, 4)
    _erased(box, 6)
    return audited(box)


@case(Code.INCOMPLETE, "entry 7", "the payload or bundle is missing")
def case_52_a_bundle_that_nobody_withheld(lab: Lab) -> Look:
    return spoilt(lab.small(), "DELETE FROM payload WHERE CAST(data AS TEXT) LIKE '%sigstore.bundle%'")
