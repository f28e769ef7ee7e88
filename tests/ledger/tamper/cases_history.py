"""Cases 7, 8, 10, 13, 14, 46 to 48, 50, 57, 58, 64: histories rewritten, cut off or forked, and entries that were admitted wrongly."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from insider import leaf_of, replace_leaf, sign_again
from ledger_box import Box, raw
from signing import public
from trusting import ALICE, BOB, STRANGER, trust_policy

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.keys import Signer
from countermark.ledger import append, prepare, write
from countermark.ledger.anchor import Anchor
from countermark.ledger.append import LogState
from countermark.ledger.audit import audit
from countermark.ledger.derive import derive
from countermark.ledger.export import export
from countermark.ledger.export_audit import ExportOptions, audit_export
from countermark.ledger.incarnation import Incarnation
from countermark.ledger.key_event import Event, KeyEvent
from countermark.ledger.leaf import NO_HASH, EntryKind, Leaf
from countermark.ledger.note import Checkpoint
from countermark.ledger.submission import Submission, leaf_signature

from .lab import Lab, Look, Seen, all_of, asked, audited, case, of_report

ALICES, BOBS, STRANGERS = (Signer(key.sign, public(key)) for key in (ALICE, BOB, STRANGER))


def _rewritten(box: Box) -> Box:
    """Another time in the newest leaf, and everything signed again by the log's owner."""
    leaf = Leaf.decode(leaf_of(box, 8))
    replace_leaf(box, 8, replace(leaf, admitted_ms=leaf.admitted_ms + 1).encode())
    sign_again(box)
    return box


@case(Code.SPLIT_VIEW, "entries 0-8", "at 9 entries the ledger has the root ")
def case_07_everything_rehashed_and_signed_again_while_somebody_holds_a_note(lab: Lab) -> Look:
    box = lab.small()
    held = box.head.note
    return audited(_rewritten(box), held={"alice": held})


@case(Code.SPLIT_VIEW, "entries 0-8", "ledger.anchor: at 9 entries the ledger has the root ")
def case_07_everything_rehashed_and_signed_again_while_the_anchor_remembers(lab: Lab) -> Look:
    return audited(_rewritten(lab.small()), anchor=True)


@case(Code.SPLIT_VIEW, "entry 0", "the checkpoint at 1 was signed over another root than the entries had")
def case_07_an_older_note_of_the_ledger_itself_tells_of_another_history(lab: Lab) -> Look:
    box = lab.small()
    with box.reader() as reader:
        first = str(reader.row("SELECT note FROM checkpoint WHERE size = 1")[0])  # type: ignore[index]  # there is one
    leaf = Leaf.decode(leaf_of(box, 0))
    replace_leaf(box, 0, replace(leaf, admitted_ms=leaf.admitted_ms - 1).encode())
    sign_again(box, {1: first})
    return audited(box)


@case(Code.OK)
def case_08_everything_rehashed_and_signed_again_and_nobody_holds_a_note(lab: Lab) -> Look:
    """It cannot be seen; that nobody holds a checkpoint is said with every answer, which `test_the_horizon` asks for."""
    return audited(_rewritten(lab.small()))


@case(Code.UNTRUSTED, "entry 9", "a signature does not hold")
def case_10_a_signature_that_does_not_hold_was_admitted(lab: Lab) -> Look:
    box = lab.small()
    box.append(replace(box.passed(70), signatures=(leaf_signature(box.operator, b"other bytes"),)))
    return audited(box)


@case(Code.UNTRUSTED, "entry 9", "a signature does not hold")
def case_10_a_signature_of_another_algorithm_than_it_says(lab: Lab) -> Look:
    box = lab.small()
    box.append(box.passed(70))
    leaf = Leaf.decode(leaf_of(box, 9))
    replace_leaf(box, 9, replace(leaf, signatures=(replace(leaf.signatures[0], algorithm=2),)).encode())
    box.edit("UPDATE signature SET algorithm = 2 WHERE idx = 9")
    sign_again(box)
    return audited(box)


@case(Code.INCOMPLETE, "", "no keys are given, so no signature was verified")
def case_10_an_auditor_without_keys(lab: Lab) -> Look:
    return audited(lab.small(), keys={})


@case(Code.UNTRUSTED, "entries 0-7", "signed by a key that is not trusted here: ")
def case_10_a_key_that_the_auditor_does_not_know(lab: Lab) -> Look:
    box = lab.small()
    return audited(box, keys={box.second.public.fingerprint.raw: box.second.public})


def _older(lab: Lab) -> tuple[Box, Path]:
    """A ledger, and a copy of its folder from before its last two entries."""
    box = lab.small()
    copy = lab.space() / "older"
    shutil.copytree(box.folder, copy)
    box.append(box.passed(1), box.passed(2))
    return box, copy


@case(Code.ROLLBACK, "entries 9-10", "ledger.anchor: the ledger has 9 entries; a checkpoint held outside it says 11")
def case_13_an_older_copy_put_in_the_place_of_the_newer_one(lab: Lab) -> Look:
    box, older = _older(lab)
    shutil.copy(older / box.path.name, box.path)
    for name in ("-wal", "-shm"):
        box.path.with_name(box.path.name + name).unlink(missing_ok=True)
    return audited(box, anchor=True)


@case(Code.ROLLBACK, "entries 9-10", "ledger.held: the ledger has 9 entries; a checkpoint held outside it says 11")
def case_13_an_older_copy_with_its_anchor_while_somebody_holds_a_note(lab: Lab) -> Look:
    box, older = _older(lab)
    return audited(replace(box, folder=older), anchor=True, held={"alice": box.head.note})


@case(Code.INCOMPLETE, "", "an older copy of this ledger could not be told from the newest", exits=ExitCode.YES)
def case_13_nothing_outside_remembers(lab: Lab) -> Look:
    """It may be a new machine: no failure, and never silent."""
    box = lab.small()
    box.forget()

    def look() -> Seen:
        report = audit(box.path, box.keys, anchor=box.anchor)
        return Seen(report.exit, tuple((item.code, item.subject or "", str(item.observed)) for item in report.findings))

    return look


@case(Code.ROLLBACK, "entry 9", "ledger.incarnation: ")
def case_13_a_restore_that_went_on_as_a_new_incarnation(lab: Lab) -> Look:
    box, older = _older(lab)
    fork = replace(box, folder=older)
    lost = Checkpoint(box.log.vkey.name, box.head.size, box.head.root)
    fork.append(Incarnation.make(9, lost, box.head.note, "the disk is gone").sign(box.operator))
    return audited(fork)


@case(Code.ROLLBACK, "", "the ledger has 9 entries, and had 11 when the anchor was written")
def case_13_nothing_is_appended_to_an_older_copy(lab: Lab) -> Look:
    box, older = _older(lab)
    shutil.copy(box.anchor, older / "state" / box.anchor.name)
    fork = replace(box, folder=older)
    return asked(lambda: fork.append(fork.passed(3)))


@case(Code.ROLLBACK, "", "the ledger has 9 entries, and had 11 when the anchor was written")
def case_13_nothing_is_read_from_an_older_copy(lab: Lab) -> Look:
    box, older = _older(lab)
    shutil.copy(box.anchor, older / "state" / box.anchor.name)
    return asked(replace(box, folder=older).reader)


@case(Code.SPLIT_VIEW, "entries 0-10", "at 11 entries the ledger has the root ")
def case_14_a_tail_cut_off_and_another_signed_in_its_place(lab: Lab) -> Look:
    box, older = _older(lab)
    fork = replace(box, folder=older)
    fork.append(fork.passed(3), fork.passed(4), fork.passed(5))
    return audited(fork, held={"alice": box.head.note})


def told(lab: Lab, say: Callable[[Box, Callable[..., None]], None], **policy: object) -> Look:
    """A ledger in which alice and bob say things, and its export, audited under a policy of theirs."""
    box, folder = lab.small(), lab.space()

    def tell(event: Event, *by: Signer, **more: int) -> None:
        box.append(KeyEvent(event, "bob", "any", BOBS.public.spki, reason="test", **more).sign(*by))

    say(box, tell)
    trust = trust_policy(folder, **policy)
    keys = {**box.keys, **trust.keys()}
    with box.reader() as reader:
        export(reader, folder / "out")
    options = ExportOptions(keys, trust=trust)
    return all_of(audited(box, keys=keys, policy=trust), lambda: of_report(audit_export(folder / "out", box.log.vkey, options)))


def by(signer: Signer, box: Box, number: int) -> Submission:
    made = box.passed(number)
    return Submission.sign(EntryKind.ATTESTATION, made.payload_type, made.payload, signer)


LONE = {"roles": {"builder": {"any_of": ["alice", "bob"]}, "approver": {"any_of": ["alice"]}}}


@case(Code.UNTRUSTED, "entry 11", "after it was taken away")
def case_46_a_key_that_signs_after_it_was_retired(lab: Lab) -> Look:
    def say(box: Box, tell: Callable[..., None]) -> None:
        box.append(by(BOBS, box, 1))
        tell("retire", ALICES)
        box.append(by(BOBS, box, 2))

    return told(lab, say, **LONE)


@case(Code.SUSPECT, "entry 10", "which was revoked since")
def case_47_a_key_that_was_lost_before_it_signed(lab: Lab) -> Look:
    def say(box: Box, tell: Callable[..., None]) -> None:
        box.append(by(BOBS, box, 1))
        box.append(by(BOBS, box, 2))
        tell("revoke", ALICES, since_index=10)

    return told(lab, say, **LONE)


@case(Code.UNTRUSTED, "entries 1, 9", "nobody who may signed this key event")
def case_48_a_key_event_by_somebody_who_may_not_tell(lab: Lab) -> Look:
    def say(box: Box, tell: Callable[..., None]) -> None:
        tell("retire", box.second)

    return told(lab, say, **LONE)


@case(Code.UNTRUSTED, "entry 9", "more must sign this key event before it counts")
def case_48_a_key_event_that_too_few_have_signed(lab: Lab) -> Look:
    """It takes nothing away yet, and that is said."""

    def say(box: Box, tell: Callable[..., None]) -> None:
        tell("retire", ALICES)
        box.append(by(BOBS, box, 1))

    return told(lab, say, roles={"builder": {"any_of": ["alice", "bob"]}, "approver": {"all_of": ["alice", "bob"]}})


@case(Code.UNTRUSTED, "entry 10", "signed by a key that is not trusted here: ")
def case_48_a_key_that_an_event_alone_brought(lab: Lab) -> Look:
    """An event gives nothing: who may be believed is the trust policy's to say."""

    def say(box: Box, tell: Callable[..., None]) -> None:
        tell("add", ALICES)
        box.append(by(STRANGERS, box, 1))

    return told(lab, say, **LONE)


@case(Code.CLOCK, "entry 9", "the entry was admitted before its predecessor")
def case_50_a_time_that_runs_backwards(lab: Lab) -> Look:
    """The writer refuses it; somebody who has the log's key made it believe that there was no time before."""
    box = lab.small()
    box.clock.now -= 10_000
    append_believing(box, admitted_ms=0)
    return audited(box)


@case(Code.CLOCK, "", "behind the newest entry")
def case_50_a_clock_that_was_put_back(lab: Lab) -> Look:
    box = lab.small()
    box.clock.now -= 3_600_000
    return asked(lambda: box.append(box.passed(1)))


@case(Code.TAMPERED, "", "the time is not that of the newest entry")
def case_50_the_time_of_the_head(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE head SET admitted_ms = admitted_ms + 1")
    return audited(box)


@case(Code.TAMPERED, "entry 9", "the notice flag is not what the payload calls for")
def case_64_a_rejection_that_was_not_flagged(lab: Lab) -> Look:
    """The gate would not find it by the chain; somebody who has the log's key had it admitted so."""
    box = lab.small()
    rejection_without_flag(box)
    return audited(box)


def rejection_without_flag(box: Box) -> None:
    """Admit a rejection that is no notice."""
    with patch.object(prepare, "derive", lambda *arguments: replace(derive(*arguments), notice=False)):
        box.append(box.rejection("cd" * 32))


@case(Code.TAMPERED, "entry 9", "the leaf does not name the newest notice before it")
def case_64_a_chain_of_notices_that_leaves_one_out(lab: Lab) -> Look:
    box = lab.small()
    append_believing(box, last_notice=NO_HASH)
    return audited(box)


def append_believing(box: Box, **changes: object) -> None:
    """Append one entry by a writer that believes something else of the head."""

    def read(*arguments: object) -> LogState:
        return replace(append.read_head(*arguments), **changes)  # type: ignore[arg-type]  # as the writer calls it

    with patch.object(write, "read_head", read):
        box.append(box.passed(1))


@case(Code.SPLIT_VIEW, "", "at 10 entries the ledger now has another root than the one it signed")
def case_57_the_second_of_two_copies_that_both_append(lab: Lab) -> Look:
    """Both have the key, and one anchor: the machine's."""
    box, copy = lab.small(), lab.space() / "copy"
    shutil.copytree(box.folder, copy)
    fork = replace(box, folder=copy)
    fork.append(fork.passed(1))
    fork.forget()
    box.append(box.passed(2))
    shutil.copy(box.anchor, fork.anchor)
    return asked(lambda: fork.append(fork.passed(3)))


@case(Code.ROLLBACK, "entries 9-11", "ledger.anchor: the ledger has 9 entries; a checkpoint held outside it says 12")
def case_58_a_database_copied_without_its_wal(lab: Lab) -> Look:
    box, copy = lab.small(), lab.space()
    db = raw(box.path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with box.writer() as writer:
        writer.append([box.passed(number) for number in (1, 2, 3)])
        shutil.copy(box.path, copy / box.path.name)
        shutil.copytree(box.anchor.parent, copy / "state")
    db.close()
    return audited(replace(box, folder=copy), anchor=True)


@case(Code.MALFORMED, "", "ledger.anchor: the anchor: its fields are not those of its note")
def case_58_an_anchor_that_says_more_than_its_note(lab: Lab) -> Look:
    box = lab.small()
    anchor = Anchor.read(box.anchor)
    assert anchor is not None
    box.anchor.write_bytes(replace(anchor, size=99).encode())
    return audited(box, anchor=True)


@case(Code.MALFORMED, "", "ledger.anchor: the anchor: its note does not verify")
def case_58_an_anchor_that_the_log_did_not_sign(lab: Lab) -> Look:
    box = lab.small()
    anchor = Anchor.read(box.anchor)
    assert anchor is not None
    box.anchor.write_bytes(replace(anchor, note=anchor.note.replace("\n9\n", "\n8\n"), size=8).encode())
    return audited(box, anchor=True)
