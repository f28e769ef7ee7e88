"""The report of `explain DECISION`."""

import json
from collections.abc import Sequence

from countermark.actions.history import Repeated
from countermark.cli.report import Report
from countermark.contracts.explain_text import explain


def repeated_report(repeated: Sequence[Repeated]) -> Report:
    """Each decision made again, and at which pointers it differs from the recorded one."""
    return Report(
        evaluated=len(repeated),
        of=len(repeated),
        text="\n".join(_text(item) for item in repeated),
        extra={"decisions": [_json(item) for item in repeated]},
    )


def _text(item: Repeated) -> str:
    signer = ", ".join(item.record.signers)
    lines = [f"decision {item.id}, entry {item.record.index}, signed by {signer}", explain(item.again).rstrip()]
    if not item.differences:
        lines.append("the recorded inputs give the recorded decision again, byte for byte")
    lines += [f"differs from the recorded decision at {pointer}" for pointer in item.differences]
    return "\n".join(lines)


def _json(item: Repeated) -> dict[str, object]:
    return {
        "id": item.id,
        "entry": item.record.index,
        "payload": str(item.record.payload),
        "core": item.core,
        "again": json.loads(item.again.core_bytes),
        "differences": list(item.differences),
    }
