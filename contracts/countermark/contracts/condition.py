"""The `when` of a requirement: a few comparisons with the profile, and no expression language.

Over absent data an expression language answers "true" to many a question. Here a field that the profile does not state is an error,
unless `exists` asks for just that.
"""

from collections.abc import Callable, Mapping
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.contracts.pins import same
from countermark.contracts.profile import Profile

_ORDER: Final[dict[str, Callable[[int, int], bool]]] = {
    "gt": lambda value, bound: value > bound,
    "ge": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "le": lambda value, bound: value <= bound,
}
_EQUALITY: Final = ("eq", "ne", "in")


def unmet(when: Mapping[str, Mapping[str, JsonValue]], profile: Profile | None, at: Callable[[str], Location]) -> str | None:
    """Why the conditions are not met by the profile, in words; None when all are. `at` gives the place of a condition.

    Raises `InputError` when there is no profile to ask, it has no such field, does not state the one that is compared, or states a value
    of another type than it is compared with: that is never true, and the requirement would silently never apply.
    """
    if profile is None:
        for name in when:
            message = f"the policy asks for {name}, and there is no profile"
            raise InputError(Code.UNKNOWN_NAME, message, at=at(name), fix="give --profile FILE")
        return None
    for name, tests in when.items():
        _check_types(tests, profile.stated(name.removeprefix("profile."), at(name)), name, at(name))
    for name, tests in when.items():
        for test, wanted in sorted(tests.items(), key=lambda item: item[0] != "exists"):
            value = profile.stated(name.removeprefix("profile."), at(name))
            if not _holds(test, value, wanted, name, at(name)):
                return f"{name} is {'not stated' if value is None else value}, required {test} {wanted}"
    return None


def _check_types(tests: Mapping[str, JsonValue], value: JsonValue, name: str, at: Location) -> None:
    for wanted in (tests[test] for test in _EQUALITY if test in tests and value is not None):
        if type(value) not in map(type, _choices(wanted)):
            message = f"{name} is {value!r}, and {wanted!r} is a value of another type"
            raise InputError(Code.SCHEMA_INVALID, message, at=at, fix="write the value as the profile writes it")


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
    return any(same(value, item) for item in _choices(wanted)) is (test != "ne")


def _choices(wanted: JsonValue) -> list[JsonValue]:
    return wanted if isinstance(wanted, list) else [wanted]
