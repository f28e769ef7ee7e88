"""Check a recorded image against bytes, or against what docker reports."""

from collections.abc import Iterator
from pathlib import Path

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CountermarkError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.recorders.image import proven_facts, reported_facts
from countermark.recorders.image_source import choose, choose_reported, images_in, open_source
from countermark.recorders.recording import Checked, Progress, silent
from countermark.recorders.shape import Node


def check_image(subject: Digest, predicate: JsonValue, path: Path, *, source: str = "predicate", progress: Progress = silent) -> Checked:
    """Compare a recorded `image/v1` about `subject` with the bytes (or the inspect output) at `path`.

    An image that is not there is a finding; a place that cannot be read is an error.
    """
    recorded = Node(predicate, source)
    try:
        found = _found_again(subject, recorded, path, progress)
    except CountermarkError as error:
        if error.code not in (Code.SUBJECT_UNKNOWN, Code.SUBJECT_KIND):
            raise
        fix = "give the bytes of the image that was recorded"
        absent = Finding(Code.SUBJECT_MISMATCH, Outcome.FAIL, fix, location=error.at, required=str(subject), observed=error.message)
        return Checked(1, (absent,))
    compared = list(_compare(recorded, found))
    return Checked(len(compared) + 1, tuple(finding for finding in compared if finding))


def _found_again(subject: Digest, recorded: Node, path: Path, progress: Progress) -> dict[str, JsonValue]:
    place = open_source(path, progress)
    if isinstance(place, Node):
        return reported_facts(choose_reported(place, subject))
    images = images_in(place)
    matching = [image for image in images if subject in image.digests]
    on_platform = [image for image in matching if image.platform == recorded["platform"].value]
    return proven_facts(*choose(place, (on_platform or matching)[:1] or images, subject, None))


def _compare(recorded: Node, found: dict[str, JsonValue]) -> Iterator[Finding | None]:
    """One element a fact. A fact that docker only reports is compared where both sides state it."""
    from_bytes = recorded["verified"].value is True and found["verified"] is True
    for name in ("level", "platform", "layers", "labels"):
        stated = recorded[name]
        if from_bytes or (stated.value and found[name]):
            yield _difference(stated, stated.value, found[name])
    if from_bytes:
        here = [alias["digest"].value for alias in Node(found["aliases"], "bytes").items() if alias["proven"].value is True]
        for alias in recorded["aliases"].items():
            if alias["proven"].value is True and alias["digest"].value not in here:
                yield _difference(alias["digest"], alias["digest"].value, None)


def _difference(recorded: Node, stated: JsonValue, found: JsonValue) -> Finding | None:
    if stated == found:
        return None
    return Finding(
        Code.RECORD_CONTRADICTED,
        Outcome.FAIL,
        fix="record the image again from its bytes; do not use this record",
        checker="image.recomputed",
        location=recorded.at,
        required=str(stated),
        observed="not proven by these bytes" if found is None else str(found),
    )
