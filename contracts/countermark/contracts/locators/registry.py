"""The locators of this version, by the name that a place in a contract gives."""

from collections.abc import Mapping

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import Locator
from countermark.contracts.locators.markdown import Markdown
from countermark.contracts.locators.structured import JsonPointers, YamlPointers

LOCATORS: Mapping[str, Locator] = {locator.name: locator for locator in (JsonPointers(), YamlPointers(), Markdown())}
NOT_BUILT = ("toml", "env", "args", "compose", "compose-args", "dockerfile", "sums", "text")
"""Locators that the schema knows and this version cannot follow. A place with one of them is an error, never a pass."""


def locator_for(name: str, argument: str, at: Location) -> Locator:
    """The locator of a place; `InputError` (UNSUPPORTED) for one that this version cannot follow."""
    locator = LOCATORS.get(name)
    reason = locator.unsupported(argument) if locator else f"locator {name!r} is not built in this version"
    if locator is None or reason:
        raise InputError(Code.UNSUPPORTED, reason or "", at=at, fix=f"use one of {', '.join(LOCATORS)}, or a newer version of countermark")
    return locator
