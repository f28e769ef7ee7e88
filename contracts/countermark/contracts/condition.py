"""The `when` of a requirement: a few comparisons with the profile, and no expression language.

Over absent data an expression language answers "true" to many a question. Here a field that the profile does not state is an error,
unless `exists` asks for just that.
"""

from collections.abc import Callable, Mapping
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.contracts.profile import Profile

_ORDER: Final[dict[str, Callable[[int, int], bool]]] = {
    "gt": lambda value, bound: value > bound,
    "ge": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "le": lambda value, bound: value <= bound,
}


def unmet(when: Mapping[str, Mapping[str, JsonValue]], profile: Profile | None, at: Callable[[str], Location]) -> str | None:
    """Why the conditions are not met by the profile, in words; None when all are. `at` gives the place of a condition.

    Raises `InputError` when there is no profile to ask, it has no such field, or does not state the one that is compared.
    """
    for name, tests in when.items():
        if profile is None:
            message = f"the policy asks for {name}, and there is no profile"
            raise InputError(Code.UNKNOWN_NAME, message, at=at(name), fix="give --profile FILE")
        for test, wanted in sorted(tests.items(), key=lambda item: item[0] != "exists"):
            value = profile.stated(name.removeprefix("profile."), at(name))
            if not _holds(test, value, wanted, name, at(name)):
                return f"{name} is {'not stated' if value is None else value}, required {test} {wanted}"
    return None


def _holds(test: str, value: JsonValue, wanted: JsonValue, name: str, at: Location) -> bool:
    if test == "exists":
        return (value is not None) is wanted
    if value is None:
        message = f"the profile does not state {name}"
        raise InputError(Code.UNKNOWN_NAME, message, at=at, fix=f"add {name.removeprefix('profile.')} to it, or ask with exists first")
    if test in _ORDER:
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(Code.SCHEMA_INVALID, f"{name} is {value!r}, which has no order", at=at, fix="use eq, ne or in")
        return isinstance(wanted, int) and _ORDER[test](value, wanted)
    allowed = wanted if isinstance(wanted, list) else [wanted]
    return any(_same(value, item) for item in allowed) is (test != "ne")


def _same(value: JsonValue, wanted: JsonValue) -> bool:
    """Equality that does not take true for 1."""
    return value == wanted and isinstance(value, bool) is isinstance(wanted, bool)
