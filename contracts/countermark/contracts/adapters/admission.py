"""Whether a record lets its own result be used: its status word, and the flags `deployable` and `qualified` beside it."""

from typing import Final

from countermark.attestations.codes import Outcome
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.notes import Notes
from countermark.contracts.adapters.tables import Meaning

WORDS: Final = {"qualified": Meaning.PASS, "research-only": Meaning.RESEARCH, "rejected": Meaning.FAIL, "unsupported": Meaning.NONE}
"""The status words of the research records."""


def lowered(notes: Notes, root: Field, meaning: Meaning) -> bool:
    """Whether no more than research-only may be claimed: one of status, `qualified` and `deployable` that refuses is enough.

    The flags may not say more than the status does.
    """
    flags = [root["admission"][name] for name in ("deployable", "qualified")]
    for flag in flags:
        if meaning is not Meaning.PASS:
            notes.hold(
                flag.flag is not True if flag.present else None,
                flag,
                "status.not-deployable",
                required=f"false under status {shown(root['status'].value)}",
                observed=shown(flag.value),
                fix="qualify the image in a new record; a flag does not",
            )
    return meaning is not Meaning.PASS or any(flag.flag is not True for flag in flags)


def reported(notes: Notes, status: Field) -> Meaning | None:
    """What the status word stands for; refused where it stands in no table."""
    found = WORDS.get(status.text or "")
    if found is None:
        notes.refuse(status, f"{shown(status.value)} is no status word of this adapter")
    return found


def outcome_of(meaning: Meaning) -> Outcome:
    """The outcome that a status word reports."""
    return Outcome.FAIL if meaning is Meaning.FAIL else Outcome.PASS
