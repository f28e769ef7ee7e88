"""`restore inspect`: what a manifest says, recomputed; no object is opened."""

from pathlib import Path

from countermark.actions.restore.beside import find_layout_for, read_layout
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.documents import read_file
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.cuda_restore.inspect import Inspection
from countermark.cuda_restore.manifest import MANIFEST_BYTES_MAX, Manifest


def inspect_manifest(path: Path, layout: Path | None) -> Inspection:
    """Describe a manifest, also an older one that cannot be restored. Without a layout, the one of its store is used if it is known.

    Raises `InputError` for a manifest that a restore would not read.
    """
    data = read_file(path, limit=MANIFEST_BYTES_MAX)
    found = Inspection.of(data, str(path), read_layout(layout) if layout else None)
    if layout or not isinstance(found.manifest, Manifest):
        return found
    own = find_layout_for(path, found.manifest.identity)
    return Inspection.of(data, str(path), own) if own else found


def arithmetic_findings(found: Inspection, path: Path) -> tuple[Finding, ...]:
    """Each number that the manifest states otherwise than it computes."""
    return tuple(
        Finding(
            Code.CONTRACT_VIOLATED,
            Outcome.FAIL,
            "publish the snapshot again",
            checker="manifest.objects-contiguous",
            location=Location(str(path)),
            subject=number.name,
            required=f"{number.rule} = {number.computed}",
            observed=str(number.stated),
        )
        for number in found.arithmetic
        if not number.holds
    )
