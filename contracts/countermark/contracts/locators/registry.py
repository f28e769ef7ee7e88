"""The locators of this version, by the name that a place in a contract gives."""

from collections.abc import Mapping

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import Locator
from countermark.contracts.locators.compose import ComposeArguments, ComposePointers
from countermark.contracts.locators.dockerfile import Dockerfile
from countermark.contracts.locators.env import EnvFile
from countermark.contracts.locators.markdown import Markdown
from countermark.contracts.locators.shell import Arguments
from countermark.contracts.locators.structured import JsonPointers, YamlPointers
from countermark.contracts.locators.sums import Sums
from countermark.contracts.locators.text import Text
from countermark.contracts.locators.toml import TomlPointers

LOCATORS: Mapping[str, Locator] = {
    locator.name: locator
    for locator in (
        JsonPointers(),
        YamlPointers(),
        TomlPointers(),
        EnvFile(),
        Arguments(),
        ComposePointers(),
        ComposeArguments(),
        Dockerfile(),
        Markdown(),
        Sums(),
        Text(),
    )
}


def locator_for(name: str, argument: str, at: Location) -> Locator:
    """The locator of a place; `InputError` (UNSUPPORTED) for an argument that it cannot follow."""
    locator = LOCATORS[name]
    reason = locator.unsupported(argument)
    if reason:
        raise InputError(Code.UNSUPPORTED, reason, at=at, fix=f"write what `{name}` can follow")
    return locator
