"""Rules about receipts of starts and loads: what came first, and that what was hashed was used (catalogue ID-06, ID-11)."""

import re
from collections.abc import Iterator

from countermark.attestations.findings import Finding
from countermark.attestations.times import Instant
from countermark.contracts.checkers.parameters import operand, pointer
from countermark.contracts.checkers.records import Block, RecordChecker, integer, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import same, shown

_SHA256 = re.compile(r"(?:sha256:)?[0-9a-f]{64}")


class PrecedesContainer(RecordChecker):
    """Compares the time of a receipt with that of the container that it attests."""

    name = "evidence.precedes-container"
    rule = "A receipt is older than the container that it attests, and the container's label holds its hash."
    ids = ("ID-06",)
    parameters = record_fields(
        "receipt",
        "created",
        receipt=operand("when the receipt was made: a pointer, or a fact"),
        created=operand("when the container was created"),
        label=operand("the label of the container"),
        digest=operand("the hash of the receipt, which the label holds"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for the order, and one for the label."""
        receipt, created = block.operand("receipt"), block.operand("created")
        if Instant.parse(str(receipt.value), at=receipt.at) >= Instant.parse(str(created.value), at=created.at):
            required = f"before {created.value}, when the container was created"
            yield self.violation(
                receipt.at, required=required, observed=str(receipt.value), fix="attest the image first, then start a container of it"
            )
        if "label" in block.given and "digest" in block.given:
            label, digest = block.operand("label"), block.operand("digest")
            if not same(label.value, digest.value):
                required = f"{shown(digest.value)}, the hash of the receipt"
                yield self.violation(
                    label.at, required=required, observed=shown(label.value), fix="start the container with the receipt of its image"
                )


class SameDescriptor(RecordChecker):
    """Compares the file that was hashed with the file that was loaded."""

    name = "loader.same-descriptor"
    rule = "A library is loaded from the descriptor that it was hashed through, and its path is not opened again."
    ids = ("ID-11",)
    parameters = record_fields(
        "digest",
        "hashed",
        "loaded",
        "reopened",
        digest=pointer("the SHA-256 of the descriptor's bytes"),
        hashed=pointer("the inode that was hashed"),
        loaded=pointer("the inode that was loaded"),
        reopened=pointer("whether the path was opened again"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each way in which another file could have been loaded."""
        digest, reopened = block.one("digest"), block.one("reopened")
        if not _SHA256.fullmatch(str(digest.value)):
            yield self._other(digest, "the whole SHA-256")
        hashed, loaded = block.one("hashed"), block.one("loaded")
        if integer(hashed) != integer(loaded):
            yield self._other(loaded, f"{hashed.value}, the inode that was hashed")
        if reopened.value is not False:
            yield self._other(reopened, "false")

    def _other(self, found: Found, required: str) -> Finding:
        return self.violation(found.at, required=required, observed=shown(found.value), fix="load the library from the open descriptor")
