"""Cases 30, 33 and 57: what a witness is asked to cosign, and the state in which it remembers what it has."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ledger_box import Box

from countermark.attestations.codes import Code, ExitCode
from countermark.ledger.cosigned import note_at
from countermark.ledger.proof_file import GrowthFile
from countermark.ledger.witness import STATE_FILE, Witness, begin_state

from .cases_outside import TIME_S, WITNESSES
from .lab import Lab, Look, asked, case, refused

ONE = WITNESSES[0]


def growth(box: Box, old: int) -> GrowthFile:
    """The request to a witness that cosigned `old` entries last."""
    with box.reader() as reader:
        return GrowthFile(old, reader.prove_growth(old), note_at(reader, reader.head.size))


class Bystander:
    """A witness that has cosigned a ledger at eleven entries, that ledger with twelve, and a twin that went another way after nine."""

    def __init__(self, lab: Lab) -> None:
        self.folder, self.box = lab.space(), lab.small()
        self.twin = self.box.copy(lab.space())
        self.twin.forget()
        self.twin.append(self.twin.passed(7), self.twin.passed(8))
        self.box.append(self.box.passed(1), self.box.passed(2))
        begin_state(self.folder)
        self.cosign(growth(self.box, 0), TIME_S)
        self.box.append(self.box.passed(3))

    def cosign(self, request: GrowthFile, time_s: int = TIME_S + 1) -> str:
        return Witness(self.folder, {self.box.log.vkey.name: self.box.log.vkey}).cosign(request, ONE, time_s)

    def ask(self, request: GrowthFile, time_s: int = TIME_S + 1) -> Callable[[], object]:
        """A question that leaves the witness as it was."""

        def question() -> str:
            before = (self.folder / STATE_FILE).read_bytes()
            try:
                return self.cosign(request, time_s)
            finally:
                (self.folder / STATE_FILE).write_bytes(before)

        return question

    def edit(self, statement: str, *values: object) -> None:
        db = sqlite3.connect(self.folder / STATE_FILE, isolation_level=None)
        db.execute(statement, values)
        db.close()


@case(Code.OK)
def case_57_a_witness_is_asked_about_what_continues(lab: Lab) -> Look:
    known = Bystander(lab)
    return asked(known.ask(growth(known.box, 11)))


@case(Code.STALE, "", "the request begins at 5 entries, and 11 were cosigned last", exits=ExitCode.NO)
def case_57_a_witness_is_asked_from_where_it_is_not(lab: Lab) -> Look:
    known = Bystander(lab)
    sizes = (5, 0, 12)
    return refused(*((known.ask(growth(known.box, old)), f"begins at {old} entries, and 11 were cosigned last") for old in sizes))


@case(Code.SPLIT_VIEW, "", "the log has signed two roots at 11 entries")
def case_57_a_witness_is_shown_another_history(lab: Lab) -> Look:
    """One that ends where the one that it knows ended, and one that goes on from there."""
    known = Bystander(lab)
    same = growth(known.twin, 11)
    known.twin.append(known.twin.passed(9))
    longer = growth(known.twin, 11)
    return refused(
        (known.ask(same), "the log has signed two roots at 11 entries"),
        (known.ask(longer), "is not the beginning of the tree of 12"),
    )


@case(Code.UNTRUSTED, "", "this witness does not know the log 'countermark.local/test/0a1b2c3d'")
def case_57_a_witness_is_asked_about_a_log_that_it_does_not_know(lab: Lab) -> Look:
    known = Bystander(lab)
    request = growth(known.box, 11)
    spoilt = replace(request, note=request.note.replace("\n12\n", "\n13\n"))
    return refused(
        (partial(Witness(known.folder, {}).cosign, request, ONE, TIME_S + 1), "this witness does not know the log"),
        (known.ask(spoilt), "bears a bad signature in the name of"),
    )


@case(Code.MALFORMED, "", "a checkpoint of 12 entries cannot grow from 13")
def case_36_a_witness_is_asked_about_what_cannot_be(lab: Lab) -> Look:
    known, new = Bystander(lab), lab.space()
    begin_state(new)
    beginner = Witness(new, {known.box.log.vkey.name: known.box.log.vkey})
    request = growth(known.box, 0)
    return refused(
        (known.ask(replace(request, old=13)), "a checkpoint of 12 entries cannot grow from 13"),
        (partial(beginner.cosign, replace(request, hashes=(bytes(32),)), ONE, TIME_S), "a proof from nothing is empty"),
    )


@case(Code.CLOCK, "", "the clock is 1 s behind the last cosignature")
def case_33_a_witness_whose_clock_was_put_back(lab: Lab) -> Look:
    known = Bystander(lab)
    return asked(known.ask(growth(known.box, 11), TIME_S - 1))


@case(Code.UNREADABLE, "", "the witness's state", exits=ExitCode.CANNOT_TELL)
def case_57_a_witness_whose_memory_was_changed(lab: Lab) -> Look:
    """It is gone, is no database, holds what no head can be or what the log did not say, lacks a row, or does not change any more."""
    gone, other, cut, moved, lacking, stuck = (Bystander(lab) for _ in range(6))
    request = growth(gone.box, 11)
    (gone.folder / STATE_FILE).unlink()
    (other.folder / STATE_FILE).write_bytes(b"not a database, but long enough to be looked at" * 20)
    cut.edit("UPDATE seen SET root = x'00'")
    moved.edit("UPDATE seen SET origin = 'other.example/log'")
    moved.edit("UPDATE seen SET size = 9")
    _forget_in_the_index(lacking)
    stuck.edit("CREATE TRIGGER stuck BEFORE UPDATE ON seen BEGIN SELECT RAISE(IGNORE); END")
    return refused(
        (partial(gone.cosign, request), "the witness's state: unable to open database file"),
        (other.ask(request), "the witness's state: file is not a database"),
        (cut.ask(request), "the witness's state: countermark.local/test/0a1b2c3d: '00' cannot be the root"),
        (moved.ask(request), "the witness's state: other.example/log: the size and root are not those of the note"),
        (lacking.ask(request), "the witness's state: *** in database main"),
        (stuck.ask(request), "the state changed while it was locked"),
    )


def _forget_in_the_index(known: Bystander) -> None:
    """The index by which a log is found loses its one entry, and the row stays."""
    db = sqlite3.connect(known.folder / STATE_FILE, isolation_level=None)
    (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    data = bytearray((known.folder / STATE_FILE).read_bytes())
    data[(page - 1) * size + 3 : (page - 1) * size + 5] = bytes(2)  # the number of its cells
    (known.folder / STATE_FILE).write_bytes(data)


@case(Code.UNREADABLE, "", "a witness stands here", exits=ExitCode.INVALID)
def case_57_a_witness_that_is_to_forget(lab: Lab) -> Look:
    """A new state over an old one would let it sign the other history."""
    known = Bystander(lab)
    return asked(partial(begin_state, known.folder))
