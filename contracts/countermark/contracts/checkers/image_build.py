"""Rules about what an image was built from and for (catalogue GC-05, GC-06)."""

import re
from collections.abc import Iterator

from countermark.attestations.findings import Finding
from countermark.contracts.checkers.parameters import many, operand, pointer, text, texts
from countermark.contracts.checkers.records import Block, RecordChecker, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import same, shown
from countermark.contracts.terms import lookup

_PLATFORM = re.compile(r"[a-z0-9]+/[a-z0-9_]+(?:/v[0-9]+)?")
_LEAVES = ("commit", "tree", "source_sha256")


class Platform(RecordChecker):
    """Compares the platform of a digest with the one that a profile serves on."""

    name = "image.platform"
    rule = "The platform of the image digest is the platform of the profile."
    ids = ("GC-05",)
    parameters = record_fields(
        "platform",
        "wanted",
        platform=pointer("the platform of the image, as os/arch"),
        wanted=operand("the platform of the profile: a pointer, or a fact"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a platform of another form, and one when the two differ."""
        platform, wanted = block.one("platform"), block.operand("wanted")
        for found in (platform, wanted):
            if not (isinstance(found.value, str) and _PLATFORM.fullmatch(found.value)):
                yield self.violation(
                    found.at, required="os/arch", observed=shown(found.value), fix="record the platform of this digest, not of its index"
                )
        if not same(platform.value, wanted.value):
            required = f"{shown(wanted.value)}, as at {wanted.at.file}:{wanted.at.line}"
            yield self.violation(platform.at, required=required, observed=shown(platform.value), fix="name the digest of this platform")


class BuiltFrom(RecordChecker):
    """Compares the components that an image was built from with the pins."""

    name = "image.built-from"
    rule = "An image names each pinned component that it was built from, with exactly the pinned revision."
    ids = ("GC-06",)
    parameters = record_fields(
        "components",
        "pins",
        components=pointer("the components of the image, by name"),
        pins=many("names of pins that are components of the image", text("a pin")),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each component that is missing, and one for each leaf that differs."""
        components = block.one("components")
        pins = block.case.terms.pins
        by_name = {
            name: {pin.leaf: pin for pin in pins.values() if pin.name.rpartition(".")[0] == name} for name in texts(block.given["pins"])
        }
        for name, leaves in by_name.items():
            if not leaves:
                lookup(name, {pin.rpartition(".")[0]: pin for pin in pins}, "pin", block.case.at)
            if not (isinstance(components.value, dict) and name in components.value):
                yield self.violation(
                    components.at, required=f"the component {name}", observed="none", fix=f"build from the pinned {name}, and record it"
                )
                continue
            for leaf in (leaf for leaf in _LEAVES if leaf in leaves):
                found = block.find(f"{block.given['components']}/{name}/{leaf}")
                if not found or str(found[0].value).rpartition(":")[2] != leaves[leaf].value:
                    yield self._differs(
                        found[0] if found else components, f"{shown(leaves[leaf].value)}, the pinned {leaf} of {name}", bool(found)
                    )

    def _differs(self, found: Found, required: str, is_there: bool) -> Finding:
        observed = shown(found.value) if is_there else "nothing"
        return self.violation(
            found.at, required=required, observed=observed, fix="build from the pinned revision, or pin what was built from"
        )
