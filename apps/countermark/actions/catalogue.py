"""The capability catalogue that comes with the program."""

from importlib import resources

from countermark.attestations.documents import load_document
from countermark.contracts.catalogue import Catalogue


def shipped_catalogue() -> bytes:
    """Its bytes, whose digest every decision names."""
    return (resources.files("countermark.contracts") / "catalogue.yaml").read_bytes()


def load_catalogue() -> Catalogue:
    """Its capabilities."""
    return Catalogue.of(load_document(shipped_catalogue(), "catalogue.yaml", "CapabilityCatalog"))
