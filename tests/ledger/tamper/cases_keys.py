"""Cases 46 to 48: key events by those who may and may not tell, and what they take from keys."""

from collections.abc import Callable
from dataclasses import replace

from insider import leaf_of, replace_leaf, sign_again
from ledger_box import Box
from trusting import trust_policy

from countermark.attestations.codes import Code, ExitCode
from countermark.ledger.key_event import KeyEvent
from countermark.ledger.key_history import KEY_EVENT, KeyHistory
from countermark.ledger.leaf import EntryKind, Leaf
from countermark.ledger.submission import DOCUMENT_TYPE, Submission

from .cases_history import ALICES, BOBS, LONE, by, told
from .lab import Lab, Look, Seen, case

KEEPERS = {
    "roles": {"builder": {"any_of": ["bob"]}, "approver": {"any_of": ["alice"]}},
    "makes": {"builder": ["source", KEY_EVENT], "approver": ["waiver"]},
}
"""A policy that lets bob alone speak of keys, although alice approves."""


@case(Code.UNTRUSTED, "entry 10", "after it was taken away")
def case_46_a_key_that_its_owner_gave_up(lab: Lab) -> Look:
    """For that nobody else is needed."""

    def say(box: Box, tell: Callable[..., None]) -> None:
        tell("retire", BOBS)
        box.append(by(BOBS, box, 1))

    return told(lab, say, **LONE)


@case(Code.OK)
def case_46_a_key_that_was_added_is_not_taken_away(lab: Lab) -> Look:
    return _history(lab, lambda box: KeyEvent("add", "bob", "any", BOBS.public.spki, reason="test").sign(BOBS))


def _history(lab: Lab, made: Callable[[Box], Submission]) -> Look:
    """What the log says of keys once this is in it, as the gate reads it: a yes if it takes none away, and no event is refused."""
    box, folder = lab.small(), lab.space()
    box.append(made(box))
    trust = trust_policy(folder, **LONE)

    def look() -> Seen:
        with box.reader() as reader:
            history = KeyHistory(reader.notices(), trust)
        found = tuple((told.code, f"entry {told.index}", str(told)) for told in history.told if told.index > 1 and told.code is not Code.OK)
        return Seen(ExitCode.NO if found or history.ended else ExitCode.YES, found)

    return look


@case(Code.UNTRUSTED, "entry 9", "so that it does not count [SIGNER_UNTRUSTED]")
def case_48_a_key_event_by_an_approver_where_others_keep_the_keys(lab: Lab) -> Look:
    def say(box: Box, tell: Callable[..., None]) -> None:
        tell("retire", ALICES)
        box.append(by(BOBS, box, 1))

    return told(lab, say, **KEEPERS)


@case(Code.UNTRUSTED, "entry 10", "so that it does not count [KEY_REVOKED]")
def case_48_a_key_event_by_a_key_that_was_taken_away(lab: Lab) -> Look:
    def say(box: Box, tell: Callable[..., None]) -> None:
        box.append(KeyEvent("retire", "alice", "any", ALICES.public.spki, reason="test").sign(ALICES))
        tell("retire", ALICES)
        box.append(by(BOBS, box, 1))

    return told(lab, say, **LONE)


@case(Code.OK)
def case_48_a_document_that_reads_as_a_key_event(lab: Lab) -> Look:
    """Whoever may admit documents speaks of no keys."""
    payload = KeyEvent("retire", "bob", "any", BOBS.public.spki, reason="test").encode()
    return _history(lab, lambda box: Submission.sign(EntryKind.POLICY, DOCUMENT_TYPE, payload, ALICES))


@case(Code.OK)
def case_48_a_key_event_that_cannot_be_read(lab: Lab) -> Look:
    """It takes nothing away, and hides no other."""

    def spoil(box: Box) -> Submission:
        (index,) = box.append(box.document("not a key event"))
        replace_leaf(box, index, replace(Leaf.decode(leaf_of(box, index)), kind=EntryKind.KEY_EVENT).encode())
        sign_again(box)
        box.forget()
        return box.passed(1)

    return _history(lab, spoil)
