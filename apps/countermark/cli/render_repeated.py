"""The report of `explain DECISION`."""

import json
from collections.abc import Mapping, Sequence

from countermark.actions.repeat import Repeated
from countermark.cli.report import Report
from countermark.contracts.explain_text import explain


def repeated_report(repeated: Sequence[Repeated], pages: Mapping[str, str], written: Sequence[str] = ()) -> Report:
    """Each decision made again, and at which pointers it differs from the recorded one; `written` are lines about files."""
    return Report(
        evaluated=len(repeated),
        of=len(repeated),
        text="\n".join([*map(repeated_text, repeated), *written]),
        forms=pages,
        extra={"decisions": [repeated_json(item) for item in repeated]},
    )


def repeated_text(item: Repeated) -> str:
    """A decision made again, for people."""
    record = item.past.record
    lines = [f"decision {item.id}, entry {record.index}, signed by {', '.join(record.signers)}", explain(item.again).rstrip()]
    if not item.differences:
        lines.append("the recorded inputs give the recorded decision again, byte for byte")
    lines += [f"differs from the recorded decision at {pointer}" for pointer in item.differences]
    return "\n".join(lines)


def repeated_json(item: Repeated) -> dict[str, object]:
    """A decision made again, in JSON."""
    return {
        "id": item.id,
        "entry": item.past.record.index,
        "payload": str(item.past.record.payload),
        "core": item.past.core,
        "again": json.loads(item.again.core_bytes),
        "differences": list(item.differences),
    }
