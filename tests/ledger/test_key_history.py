"""What the key events of a log take from keys: by index, for ever, and only if those say so who may."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ledger_box import Box, make_box
from signing import public
from trusting import ALICE, BOB, STRANGER, trust_policy

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.keys import Signer
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.audit import audit
from countermark.ledger.audit_report import AuditReport
from countermark.ledger.key_event import Event, KeyEvent
from countermark.ledger.key_history import KEY_EVENT, KeyHistory
from countermark.ledger.leaf import EntryKind
from countermark.ledger.submission import Submission

ALICES, BOBS, STRANGERS = (Signer(key.sign, public(key)) for key in (ALICE, BOB, STRANGER))
BOTH = {"builder": {"any_of": ["alice"]}, "approver": {"threshold": {"k": 2, "of": ["alice", "bob"]}}}


@dataclass
class Log:
    """A ledger that alice and bob write to, under a policy that lets one approver speak of keys."""

    box: Box
    folder: Path

    def policy(self, **changes: Any) -> TrustPolicy:
        lone = {"builder": {"any_of": ["alice", "bob"]}, "approver": {"any_of": ["alice"]}}
        return trust_policy(self.folder, **{"roles": lone, **changes})

    def tell(self, event: Event, about: Signer, *by: Signer, principal: str = "bob", **more: Any) -> int:
        return self.put(KeyEvent(event, principal, "any", about.public.spki, reason="test", **more).sign(*by))

    def say(self, by: Signer, number: int = 0) -> int:
        made = self.box.passed(number)
        return self.put(Submission.sign(EntryKind.ATTESTATION, made.payload_type, made.payload, by))

    def put(self, submission: Submission) -> int:
        (index,) = self.box.append(submission)
        return index

    def history(self, **changes: Any) -> KeyHistory:
        with self.box.reader() as reader:
            return KeyHistory(reader.notices(), self.policy(**changes))

    def audit(self) -> AuditReport:
        policy = self.policy()
        return audit(self.box.path, {**self.box.keys, **policy.keys()}, anchor=self.box.anchor, policy=policy)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(make_box(tmp_path / "box"), tmp_path)


def standings(log: Log, key: Signer, *indices: int, **changes: Any) -> list[Code]:
    history = log.history(**changes)
    return [history.standing(key.public.fingerprint.raw, index) for index in indices]


def test_a_retired_key_is_good_for_what_came_before(log: Log) -> None:
    before, event, after = log.say(BOBS), log.tell("retire", BOBS, ALICES), log.say(BOBS, 1)
    assert standings(log, BOBS, before, event, after) == [Code.OK, Code.OK, Code.KEY_REVOKED]
    assert standings(log, ALICES, before, event, after) == [Code.OK] * 3


@pytest.mark.parametrize(("since", "expected"), [(None, [Code.SUSPECT, Code.SUSPECT]), (1, [Code.OK, Code.SUSPECT])])
def test_a_revoked_key_makes_suspect_what_its_thief_may_have_signed(log: Log, since: int | None, expected: list[Code]) -> None:
    first, second = log.say(BOBS), log.say(BOBS, 1)
    log.tell("revoke", BOBS, ALICES, since_index=None if since is None else second)
    assert standings(log, BOBS, first, second, log.say(BOBS, 2)) == [*expected, Code.KEY_REVOKED]


def test_of_two_revocations_the_wider_counts_and_the_earlier_ends_it(log: Log) -> None:
    first, second = log.say(BOBS), log.say(BOBS, 1)
    log.tell("retire", BOBS, ALICES)
    late = log.say(BOBS, 2)
    log.tell("revoke", BOBS, ALICES, since_index=late)
    log.tell("revoke", BOBS, ALICES, since_index=second)
    log.tell("revoke", BOBS, ALICES, since_index=late + 1)
    assert standings(log, BOBS, first, second, late) == [Code.OK, Code.SUSPECT, Code.KEY_REVOKED]


@pytest.mark.parametrize("event", ["retire", "revoke"])
def test_a_key_may_be_taken_away_by_itself_and_by_no_other_of_no_role(log: Log, event: Event) -> None:
    log.tell(event, BOBS, BOBS)
    assert log.history().ended.keys() == {BOBS.public.fingerprint.raw}
    refused = log.tell(event, ALICES, STRANGERS, principal="alice")
    also = log.tell(event, STRANGERS, log.box.second, principal="stranger")
    assert [(told.index, told.code) for told in log.history().told[-2:]] == [
        (refused, Code.SIG_UNVERIFIABLE),
        (also, Code.SIG_UNVERIFIABLE),
    ]
    assert log.history().ended.keys() == {BOBS.public.fingerprint.raw}


def test_a_builder_takes_no_key_of_another(log: Log) -> None:
    log.tell("revoke", ALICES, BOBS, principal="alice")
    history = log.history()
    assert (history.told[-1].code, dict(history.ended)) == (Code.SIGNER_UNTRUSTED, {})


def test_makes_may_give_the_right_to_another_role_and_so_takes_it_from_the_approver(log: Log) -> None:
    log.tell("retire", ALICES, BOBS, principal="alice")
    makes = {"builder": [KEY_EVENT], "approver": []}
    roles = {"builder": {"any_of": ["bob"]}, "approver": {"any_of": ["alice"]}}
    assert ALICES.public.fingerprint.raw in log.history(makes=makes, roles=roles).ended
    assert ALICES.public.fingerprint.raw not in log.history(roles=roles).ended


class TestThreshold:
    """Two approvers must say it of a third's key."""

    def told(self, log: Log, about: Signer, *signers: list[Signer]) -> list[Code]:
        for by in signers:
            log.tell("revoke", about, *by, principal="operator")
        return [told.code for told in log.history(roles=BOTH).told[-len(signers) :]]

    def test_together_and_one_after_the_other(self, log: Log) -> None:
        target = log.box.operator
        assert self.told(log, target, [ALICES]) == [Code.THRESHOLD]
        assert target.public.fingerprint.raw not in log.history(roles=BOTH).ended
        assert self.told(log, target, [BOBS]) == [Code.OK]
        assert target.public.fingerprint.raw in log.history(roles=BOTH).ended
        assert self.told(log, log.box.second, [ALICES, BOBS]) == [Code.OK]

    def test_one_of_them_twice_is_one(self, log: Log) -> None:
        assert self.told(log, log.box.operator, [ALICES], [ALICES, STRANGERS]) == [Code.THRESHOLD, Code.THRESHOLD]

    def test_a_signer_whose_key_was_lost_since_does_not_count_any_more(self, log: Log) -> None:
        self.told(log, log.box.operator, [ALICES])
        log.tell("revoke", ALICES, ALICES, principal="alice")
        assert self.told(log, log.box.operator, [BOBS]) == [Code.THRESHOLD]


def test_who_was_taken_away_takes_nobody_away(log: Log) -> None:
    log.tell("retire", ALICES, ALICES, principal="alice")
    log.tell("revoke", BOBS, ALICES)
    history = log.history()
    assert history.told[-1].code is Code.KEY_REVOKED
    assert history.ended.keys() == {ALICES.public.fingerprint.raw}


def test_what_was_told_stays_told_when_the_teller_is_lost(log: Log) -> None:
    """Or a thief could give a stolen key back by giving up another."""
    log.tell("revoke", BOBS, ALICES)
    log.tell("revoke", ALICES, ALICES, principal="alice")
    assert len(log.history().ended) == 2


def test_adding_gives_nothing_back(log: Log) -> None:
    log.tell("retire", BOBS, ALICES)
    log.tell("add", BOBS, ALICES)
    log.tell("add", BOBS, BOBS)
    assert standings(log, BOBS, log.say(BOBS)) == [Code.KEY_REVOKED]


def _forged(log: Log) -> None:
    made = KeyEvent("revoke", "bob", "any", BOBS.public.spki).sign(ALICES)
    bad = made.signatures[0].signature[:-1] + bytes([made.signatures[0].signature[-1] ^ 1])
    (signature,) = made.signatures
    log.put(Submission(made.kind, made.payload_type, made.payload, (type(signature)(signature.algorithm, signature.key_sha256, bad),)))


def test_a_forged_event_takes_nothing(log: Log) -> None:
    _forged(log)
    assert dict(log.history().ended) == {}


class TestAudit:
    """`verify ledger` tells each of these with its entries."""

    def codes(self, log: Log) -> list[tuple[Code, str | None]]:
        return [(found.code, found.subject) for found in log.audit().findings if found.checker in ("ledger.keys", "ledger.key-events")]

    def test_nothing_to_tell(self, log: Log) -> None:
        log.say(BOBS)
        assert (self.codes(log), log.audit().exit) == ([], ExitCode.YES)

    def test_a_retired_key_leaves_no_finding_until_it_signs_again(self, log: Log) -> None:
        log.say(BOBS)
        log.tell("retire", BOBS, ALICES)
        assert (self.codes(log), log.audit().exit) == ([], ExitCode.YES)
        late = log.say(BOBS, 1)
        assert (self.codes(log), log.audit().exit) == ([(Code.UNTRUSTED, f"entry {late}")], ExitCode.NO)

    def test_suspect_entries_are_named_together(self, log: Log) -> None:
        first, second = log.say(BOBS), log.say(BOBS, 1)
        log.tell("revoke", BOBS, ALICES)
        assert (self.codes(log), log.audit().exit) == ([(Code.SUSPECT, f"entries {first}-{second}")], ExitCode.NO)

    @pytest.mark.parametrize("make", [_forged, lambda log: log.tell("revoke", ALICES, BOBS, principal="alice")])
    def test_an_event_that_nobody_may_tell(self, log: Log, make: Callable[[Log], object]) -> None:
        make(log)
        event = log.box.head.size - 1
        assert (Code.UNTRUSTED, f"entry {event}") in self.codes(log)
        assert log.audit().exit is ExitCode.NO
