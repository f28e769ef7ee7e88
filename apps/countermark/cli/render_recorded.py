"""The report of commands that append one statement."""

from countermark.actions.appending import Recorded
from countermark.cli.report import Report


def recorded_report(done: Recorded) -> Report:
    """What was said, of what, and where it stands."""
    subjects = [str(digest) for subject in done.statement.subjects for digest in subject.typed]
    lines = [*subjects, f"  {done.statement.predicate_type}", f"  {done.receipt.payload}"]
    lines.append(f"  entry {done.receipt.index}" + (", where it stood before" if done.receipt.duplicate else ""))
    lines[1:1] = [f"  proven from bytes: {alias}" for alias in done.proven_aliases]
    lines.extend(f"  note: {note}" for note in done.notes)
    return Report(
        evaluated=1,
        of=1,
        ledger=done.head.to_json(),
        text="\n".join(lines),
        extra={
            "recorded": [done.receipt.to_json()],
            "subjects": subjects,
            "statement": done.statement.predicate,
            "notes": list(done.notes),
        },
    )
