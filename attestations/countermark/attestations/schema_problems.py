"""From a validator's errors to problems in words: what is wrong, where, and the action that mends it.

A validator reports a failed union as one error with the errors of every branch below it; a person needs those of the branch that
was meant.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong in a value. `pointer` (RFC 6901) says where; an unknown field is pointed at itself, a missing one at its object."""

    pointer: str
    message: str
    fix: str


_TYPES = {"object": "an object", "array": "a list", "string": "text", "integer": "an integer", "boolean": "true or false", "null": "null"}
_INSIDE = frozenset(
    ("required", "additionalProperties", "minItems", "maxItems", "uniqueItems", "minProperties", "minimum", "maximum", "minLength")
)
_LISTED = 16


def explain(error: "ValidationError") -> Iterator[Problem]:
    """The problems behind one error of a validator; the same problem may come more than once."""
    if "propertyNames" in error.relative_schema_path:
        fix = _meant(error.instance, _words([error])) or _write(error)
        yield _problem(error, f"unknown or malformed name {_shown(error.instance)}", fix, error.instance)
    elif error.validator in ("anyOf", "oneOf"):
        yield from _explain_union(error)
    else:
        yield from _EXPLANATIONS.get(str(error.validator), _not_allowed)(error)


def _explain_union(error: "ValidationError") -> Iterator[Problem]:
    branches = [branch for branch in _rule(error) if branch != {"type": "null"}]
    if all(set(branch) == {"required"} for branch in branches):
        yield _exactly_one(error, [branch["required"][0] for branch in branches])
        return
    failed = _branches(error)
    meant = [errors for errors in failed if all(map(_is_inside, errors))] or (failed if len(branches) == 1 else [])
    if meant:
        yield from (problem for each in min(meant, key=_distance) for problem in explain(each))
    else:
        near = _meant(error.instance, _words(each for errors in failed for each in errors))
        yield _problem(error, f"{_shown(error.instance)} has none of the forms allowed here", near or _write(error))


def _distance(errors: "Sequence[ValidationError]") -> tuple[int, int]:
    """How far a value is from a branch: first by the fields that are unknown or missing on its top level."""
    found = [(each, problem) for each in errors for problem in explain(each)]
    return sum(not each.relative_path for each, _ in found), len(found)


def _words(errors: "Iterable[ValidationError]") -> list[str]:
    """The words that failed enumerations would have taken."""
    listed = [_rule(each) if each.validator == "enum" else [_rule(each)] for each in errors if each.validator in ("enum", "const")]
    return [word for words in listed for word in words if isinstance(word, str)]


def _branches(error: "ValidationError") -> "list[list[ValidationError]]":
    """The errors of each branch of a union but the null one."""
    found = sorted(error.context or (), key=_branch_index)
    grouped = [(index, list(errors)) for index, errors in groupby(found, key=_branch_index)]
    return [errors for index, errors in grouped if _rule(error)[index] != {"type": "null"}]


def _branch_index(error: "ValidationError") -> int:
    return int(error.relative_schema_path[0])


def _is_inside(error: "ValidationError") -> bool:
    """Whether the value has the form that the branch describes, and something within it is wrong."""
    if error.relative_path or error.validator in _INSIDE:
        return True
    return error.validator in ("anyOf", "oneOf") and any(all(map(_is_inside, errors)) for errors in _branches(error))


def _exactly_one(error: "ValidationError", names: Sequence[str]) -> Problem:
    given = [name for name in names if name in _value(error)]
    found = f"it has {' and '.join(given)}" if given else "it has none"
    return _problem(
        error, f"exactly one of {', '.join(names)} is needed; {found}", "give one and remove the others" if given else "add one"
    )


def _unknown_fields(error: "ValidationError") -> Iterator[Problem]:
    given, allowed = _value(error), list(_schema(error).get("properties", {}))
    for name in given:
        if name not in allowed:
            fix = _meant(str(name), [other for other in allowed if other not in given])
            yield _problem(error, f"unknown field {_shown(name)}", fix or f"remove it; the fields here are {', '.join(allowed)}", name)


def _missing_fields(error: "ValidationError") -> Iterator[Problem]:
    for name in _rule(error):
        if name not in _value(error):
            meaning = _schema(error).get("properties", {}).get(name, {}).get("description", "")
            yield _problem(error, f"field '{name}' is missing", f"add '{name}'{': ' if meaning else ''}{meaning}")


def _wrong_type(error: "ValidationError") -> Iterator[Problem]:
    names = [_rule(error)] if isinstance(_rule(error), str) else _rule(error)
    expected = " or ".join(_TYPES[name] for name in names)
    says_so = _schema(error).get("description", "").startswith(expected)
    fix = _write(error) if says_so else _hint(error, f"write {expected}")
    yield _problem(error, f"expected {expected}, found {_kind(error.instance)}", fix)


def _wrong_word(error: "ValidationError") -> Iterator[Problem]:
    words = _rule(error) if error.validator == "enum" else [_rule(error)]
    choice = ("one of " if len(words) > 1 else "") + ", ".join(map(_shown, words[:_LISTED])) + (", …" if len(words) > _LISTED else "")
    yield _problem(error, f"{_shown(error.instance)} is not {choice}", _meant(error.instance, _words([error])) or f"write {choice}")


def _wrong_form(error: "ValidationError") -> Iterator[Problem]:
    yield _problem(error, f"{_shown(error.instance)} is not of the form wanted here", _write(error))


def _out_of_range(error: "ValidationError") -> Iterator[Problem]:
    yield _problem(error, f"{_shown(error.instance)} is out of range", _write(error))


def _wrong_size(error: "ValidationError") -> Iterator[Problem]:
    wanted = f"{'at least' if str(error.validator).startswith('min') else 'at most'} {_rule(error)}"
    yield _problem(error, f"{len(_value(error))} given, {wanted} needed", _hint(error, f"give {wanted}"))


def _repeated(error: "ValidationError") -> Iterator[Problem]:
    yield _problem(error, "the list holds something twice", "remove the repetition")


def _not_allowed(error: "ValidationError") -> Iterator[Problem]:
    yield _problem(error, "this field has no meaning here", "remove it")


_EXPLANATIONS: Mapping[str, "Callable[[ValidationError], Iterator[Problem]]"] = {
    "additionalProperties": _unknown_fields,
    "required": _missing_fields,
    "type": _wrong_type,
    "enum": _wrong_word,
    "const": _wrong_word,
    "pattern": _wrong_form,
    "format": _wrong_form,
    "minimum": _out_of_range,
    "maximum": _out_of_range,
    "minLength": _wrong_size,
    "minItems": _wrong_size,
    "maxItems": _wrong_size,
    "minProperties": _wrong_size,
    "uniqueItems": _repeated,
}


def _problem(error: "ValidationError", message: str, fix: str, *below: object) -> Problem:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in (*error.absolute_path, *below))
    return Problem("".join(f"/{part}" for part in parts), message, fix)


def _rule(error: "ValidationError") -> Any:  # noqa: ANN401  # JSON of any shape
    """The value of the keyword that failed; its type is the keyword's."""
    return error.validator_value


def _value(error: "ValidationError") -> Any:  # noqa: ANN401  # JSON of any shape
    """The JSON value that failed."""
    return error.instance


def _schema(error: "ValidationError") -> Mapping[str, Any]:
    """The schema object that holds the keyword; none where the schema is `false`."""
    return error.schema if isinstance(error.schema, Mapping) else {}


def _write(error: "ValidationError") -> str:
    """For schemas whose description names a form."""
    meaning = _schema(error).get("description", "")
    return f"write {meaning}" if meaning else "write it as the schema says"


def _hint(error: "ValidationError", action: str) -> str:
    """For schemas whose description says what the value means."""
    meaning = _schema(error).get("description", "")
    return f"{action} ({meaning})" if meaning else action


def _meant(value: object, words: Sequence[str]) -> str:
    near = difflib.get_close_matches(value, words, n=1) if isinstance(value, str) else []
    return f"write '{near[0]}'" if near else ""


def _kind(value: object) -> str:
    if isinstance(value, str):
        return _shown(value)
    names = {bool: "true or false", int: "an integer", float: "a fraction", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), "something that JSON does not have")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 80 else value[:77] + "…")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _kind(value)
