"""Cases 18, 33, 50 and 56: what a clock shows, for an auditor who brings one; and warnings, for one who takes them as failures."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ledger_box import START_MS, Box, raw

from countermark.actions.proofs import check_proof
from countermark.attestations.codes import Code, ExitCode
from countermark.ledger.cosignature import Cosigner
from countermark.ledger.cosignature_rows import add_cosignatures
from countermark.ledger.export import export
from countermark.ledger.export_audit import ExportOptions, audit_export
from countermark.ledger.freshness import FAR_MS, Freshness
from countermark.ledger.proof_file import GrowthFile
from countermark.ledger.signed_note import SignedNote

from .cases_outside import TIME_S, WITNESSES, head_of, logs_only, note_with, policy_of, proof_of
from .lab import Lab, Look, Seen, all_of, asked, audited, case, of_report

DAY_S = 86_400
DAY_MS = 1000 * DAY_S
LATER = Freshness(START_MS + 31 * DAY_MS, 30 * DAY_MS)
"""An auditor of a month later, who takes nothing that is older than 30 days."""
_FAR_S = FAR_MS // 1000
_BOTH = (WITNESSES[0], WITNESSES[1])


def _cosigned(box: Box, times: Iterable[tuple[Cosigner, int]]) -> None:
    """Bring cosignatures of these times over the head into the ledger."""
    head = head_of(box)
    for witness, time_s in times:
        note = SignedNote.parse(note_with(box, witness.sign(head, time_s)))
        add_cosignatures(box.path, head, list(witness.vkey.cosignatures(note)))


def _all_looks(lab: Lab, box: Box, times: Iterable[tuple[Cosigner, int]], fresh: Freshness | None, *, quorum: str = "all") -> list[Look]:
    """The ledger, an export of it with and without hashes alone, and the proof of its newest entry, under a policy of both witnesses."""
    times = tuple(times)
    _cosigned(box, times)
    policy, head = policy_of(box, quorum), head_of(box)
    note = note_with(box, *(witness.sign(head, time_s) for witness, time_s in times))
    folder = lab.space() / "out"
    with box.reader() as reader:
        export(reader, folder, note)
    options = [ExportOptions(box.keys, policy=policy, hash_only=only, fresh=fresh) for only in (False, True)]
    looks: list[Look] = [audited(box, witnesses=policy, fresh=fresh)]
    looks += [partial(_exported, box, folder, each) for each in options]
    path = proof_of(lab, box, head.size - 1, lambda proof: type(proof)(proof.index, proof.hashes, note, proof.extra))
    return [*looks, asked(partial(check_proof, path, policy, fresh=fresh))]


def _exported(box: Box, folder: Any, options: ExportOptions) -> Seen:
    return of_report(audit_export(folder, box.log.vkey, options))


def _without_witnesses(lab: Lab, box: Box, fresh: Freshness) -> list[Look]:
    folder = lab.space() / "out"
    with box.reader() as reader:
        export(reader, folder)
    looks: list[Look] = [partial(_exported, box, folder, ExportOptions(box.keys, hash_only=only, fresh=fresh)) for only in (False, True)]
    path = proof_of(lab, box, box.head.size - 1, lambda proof: proof)
    return [audited(box, fresh=fresh), *looks, asked(partial(check_proof, path, logs_only(box), fresh=fresh))]


@case(Code.STALE, "", "the newest time given by the log is 2026-11-30T00:53:20.011Z, longer ago than is allowed")
def case_56_a_head_whose_newest_entry_is_too_old(lab: Lab) -> Look:
    return all_of(*_without_witnesses(lab, _at_start(lab), LATER))


@case(Code.OK)
def case_56_a_head_as_old_as_is_allowed(lab: Lab) -> Look:
    box = _at_start(lab)
    return all_of(*_without_witnesses(lab, box, Freshness(START_MS + 11 + 30 * DAY_MS, 30 * DAY_MS)))


def _at_start(lab: Lab) -> Box:
    """A ledger whose newest entry is 11 ms younger than the first."""
    box = lab.small()
    box.clock.now = START_MS + 10
    box.append(box.passed(1))
    return box


@case(Code.STALE, "", "the newest time given by a quorum of witnesses is 2026-11-30T00:55:00Z, longer ago than is allowed")
def case_56_a_head_that_the_witnesses_saw_long_ago(lab: Lab) -> Look:
    return all_of(*_all_looks(lab, lab.small(), ((each, TIME_S) for each in _BOTH), LATER))


@case(Code.STALE, "", "the newest time given by a quorum of witnesses is 2026-11-30T00:55:00Z")
def case_56_one_witness_who_saw_it_lately_is_no_quorum(lab: Lab) -> Look:
    times = ((WITNESSES[0], TIME_S), (WITNESSES[1], TIME_S + 30 * DAY_S))
    return all_of(*_all_looks(lab, lab.small(), times, LATER))


@case(Code.OK)
def case_56_one_witness_who_saw_it_lately_is_enough_where_any_is(lab: Lab) -> Look:
    times = ((WITNESSES[0], TIME_S), (WITNESSES[1], TIME_S + 30 * DAY_S))
    return all_of(*_all_looks(lab, lab.small(), times, LATER, quorum="any"))


@case(Code.STALE, "", "the newest time given by a quorum of witnesses is 2026-11-30T00:55:00Z")
def case_56_new_entries_that_no_witness_has_seen(lab: Lab) -> Look:
    """The log's own word does not count where the auditor asks for witnesses."""
    box = lab.small()
    _cosigned(box, ((each, TIME_S) for each in _BOTH))
    box.clock.now += 31 * DAY_MS
    box.append(box.passed(1))
    return audited(box, witnesses=policy_of(box), fresh=LATER)


@case(Code.INCOMPLETE, "", "nothing by a quorum of witnesses says when the checkpoint was made")
def case_56_a_head_that_no_witness_has_seen(lab: Lab) -> Look:
    box = lab.small()
    return audited(box, witnesses=policy_of(box), fresh=LATER)


@case(Code.INCOMPLETE, "", "nothing by the log says when the checkpoint was made")
def case_56_a_proof_of_growth_that_no_witness_vouches_for(lab: Lab) -> Look:
    box = lab.small()
    with box.reader() as reader:
        growth = GrowthFile(1, reader.prove_growth(1), reader.head.note)
        (old,) = reader.row("SELECT note FROM checkpoint WHERE size = 1") or ("",)
    folder = lab.space()
    (folder / "growth").write_bytes(growth.encode())
    (folder / "held").write_text(str(old))
    return asked(lambda: check_proof(folder / "growth", logs_only(box), held=folder / "held", fresh=LATER))


@case(Code.OK)
def case_56_nothing_is_too_old_for_an_auditor_without_a_clock(lab: Lab) -> Look:
    return all_of(*_all_looks(lab, lab.small(), ((each, TIME_S) for each in _BOTH), None))


@case(Code.UNTRUSTED, "", "the cosignature of witness.example/w2 is of 2026-12-31T01:53:21Z, which is yet to come")
def case_33_a_cosignature_of_a_time_to_come(lab: Lab) -> Look:
    """It would stay fresh for ever."""
    ahead = LATER.now_ms // 1000 + _FAR_S + 1
    return all_of(*_all_looks(lab, lab.small(), ((WITNESSES[0], TIME_S), (WITNESSES[1], ahead)), LATER, quorum="any"))


@case(Code.UNTRUSTED, "", "the cosignature of witness.example/w1 is of 9223372036854775807 s after 1970, which is yet to come")
def case_33_a_cosignature_of_the_last_time_there_is(lab: Lab) -> Look:
    return all_of(*_all_looks(lab, lab.small(), [(WITNESSES[0], 2**63 - 1)], LATER, quorum="any"))


def _backward(lab: Lab) -> Box:
    box = lab.small()
    _cosigned(box, [(WITNESSES[0], TIME_S)])
    box.append(box.passed(1))
    _cosigned(box, [(WITNESSES[0], TIME_S - 1), (WITNESSES[1], TIME_S - 1)])
    return box


@case(Code.CLOCK, "entry 9", "witness.example/w1 cosigned 10 entries before fewer of them", exits=ExitCode.YES)
def case_33_a_witness_that_went_back_in_time(lab: Lab) -> Look:
    """It speaks against the witness, and not against the log."""
    box = _backward(lab)
    return audited(box, witnesses=policy_of(box))


@case(Code.CLOCK, "entry 9", "witness.example/w1 cosigned 10 entries before fewer of them")
def case_33_a_witness_that_went_back_in_time_to_a_strict_auditor(lab: Lab) -> Look:
    box = _backward(lab)
    return audited(box, witnesses=policy_of(box), strict=True)


def _ahead(lab: Lab, by_ms: int, look: Callable[[Box], list[Look]]) -> Look:
    box = lab.small()
    box.clock.now = 1000 * TIME_S + FAR_MS + by_ms - 1
    box.append(box.passed(1))
    return all_of(*look(box))


@case(Code.CLOCK, "entry 9", "the entry claims 2026-11-30T01:55:00.001Z, and witness.example/w1 cosigned it at 2026-11-30T00:55:00Z")
def case_50_an_entry_long_ahead_of_the_witness_who_saw_it(lab: Lab) -> Look:
    return _ahead(lab, 1, lambda box: _all_looks(lab, box, ((each, TIME_S) for each in _BOTH), None)[:2])


@case(Code.OK)
def case_50_an_entry_ahead_of_the_witness_by_what_clocks_may_differ(lab: Lab) -> Look:
    return _ahead(lab, 0, lambda box: _all_looks(lab, box, ((each, TIME_S) for each in _BOTH), None))


@case(Code.CLOCK, "", "the newest time given by the log is 2026-11-30T00:53:20.011Z, which is yet to come")
def case_50_an_entry_of_a_time_to_come(lab: Lab) -> Look:
    return all_of(*_without_witnesses(lab, _at_start(lab), Freshness(START_MS + 10 - FAR_MS, DAY_MS)))


@case(Code.GUARD_MISSING, "", "guard entry_no_update is missing", exits=ExitCode.CANNOT_TELL)
def case_18_a_guard_is_gone_to_a_strict_auditor(lab: Lab) -> Look:
    box = lab.small()
    db = raw(box.path)
    db.execute("DROP TRIGGER entry_no_update")
    db.close()
    return audited(box, strict=True)


@case(Code.MALFORMED, "", "surplus.txt belongs to nothing that the checkpoint covers")
def case_18_a_file_too_many_in_an_export_to_a_strict_auditor(lab: Lab) -> Look:
    box, folder = lab.small(), lab.space() / "out"
    with box.reader() as reader:
        export(reader, folder)
    (folder / "surplus.txt").write_text("?")
    return partial(_exported, box, folder, ExportOptions(box.keys, strict=True))
