"""The report of commands that append one statement."""

from countermark.actions.appending import Recorded
from countermark.attestations.located import JsonValue
from countermark.cli.report import Report


def recorded_report(done: Recorded) -> Report:
    """What was said, of what, and where it stands."""
    subjects = [str(digest) for subject in done.statement.subjects for digest in subject.typed]
    lines = [*subjects, f"  {done.statement.predicate_type}", f"  {done.receipt.payload}"]
    lines.append(f"  entry {done.receipt.index}" + (", where it stood before" if done.receipt.duplicate else ""))
    lines[1:1] = [f"  proven from bytes: {alias}" for alias in _proven(done.statement.predicate)]
    lines.extend(f"  note: {note}" for note in done.notes)
    receipt = {"index": done.receipt.index, "payload": str(done.receipt.payload), "duplicate": done.receipt.duplicate}
    return Report(
        evaluated=1,
        of=1,
        ledger=done.head.to_json(),
        text="\n".join(lines),
        extra={"recorded": [receipt], "subjects": subjects, "statement": done.statement.predicate, "notes": list(done.notes)},
    )


def _proven(predicate: JsonValue) -> list[str]:
    """The other digests of an image that its bytes prove."""
    aliases = predicate.get("aliases") if isinstance(predicate, dict) else None
    items = aliases if isinstance(aliases, list) else []
    return [str(item["digest"]) for item in items if isinstance(item, dict) and item.get("proven")]
