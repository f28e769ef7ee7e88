"""The rules that a response is held against, each over its raw bytes.

A strict rule takes the response as it came. A fence that would have to be stripped, a word that would have to be picked out of a sentence,
a normalisation that somebody would like to apply first: whatever has to be repaired does not keep the rule. Only `exact` and `markers`
know a normalisation, which then is declared, and which the capability `output.contract` ignores.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from countermark.attestations import jsontext
from countermark.attestations.codes import Outcome
from countermark.attestations.errors import InputError
from countermark.attestations.located import walk

NORMALISE: Final[Mapping[str, Callable[[str], str]]] = {
    "none": str,
    "strip": str.strip,
    "casefold": str.casefold,
    "nfc": lambda text: unicodedata.normalize("NFC", text),
    "nfkc": lambda text: unicodedata.normalize("NFKC", text),
}
RAW: Final = ("none",)
_BOUNDED: Final = frozenset({"exact", "one-code-block", "no-fence", "markers"})
_UNBOUNDED_KEYWORDS: Final = frozenset({"pattern", "patternProperties", "$ref", "$dynamicRef", "uniqueItems"})
_BLOCK: Final = re.compile(r"(`{3,}|~{3,})[^\n`]*\n(?P<inside>(?:[^\n]*\n)*?)\1(?:`*|~*)\n?")
_FENCE: Final = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a rule says of a response, and why where it is no pass."""

    outcome: Outcome
    why: str = ""


def hold(rule: str, required: str, response: bytes, normalisation: Sequence[str] = RAW) -> Ruled:
    """Hold a raw response against a rule. `error` says that the rule itself has no meaning, never that the response is bad."""
    steps = list(normalisation)
    if not steps or not set(steps) <= NORMALISE.keys():
        return Ruled(Outcome.ERROR, f"{', '.join(steps) or 'nothing'} is no normalisation")
    if rule not in _RULES:
        return Ruled(Outcome.ERROR, f"{rule} is no rule")
    if set(steps) != {"none"} and rule not in ("exact", "markers"):
        return Ruled(Outcome.ERROR, f"{rule} is a strict rule, which takes the raw response and no normalisation")
    try:
        text = response.decode("utf-8")
    except UnicodeDecodeError as error:
        return Ruled(Outcome.FAIL, f"byte {error.start} of the response is not UTF-8")
    return _RULES[rule](required, text, steps)


def is_bounded(rule: str, required: str) -> bool:
    """Whether the rule takes no more time than response and schema are long.

    An expression may run for ever, and so may a schema with one in it or one that refers to itself. Nobody who judges what others signed,
    as the gate does, evaluates such a rule.
    """
    if rule != "json-schema":
        return rule in _BOUNDED
    try:
        schema: Any = json.loads(required)
    except (ValueError, RecursionError):
        return False
    keys = {key for _, node in walk(schema) if isinstance(node, dict) for key in node}
    return keys.isdisjoint(_UNBOUNDED_KEYWORDS)


def normalised(text: str, steps: Sequence[str]) -> str:
    """The text after some declared steps, in their order."""
    for step in steps:
        text = NORMALISE[step](text)
    return text


def _ruled(holds: bool, why: str) -> Ruled:
    return Ruled(Outcome.PASS) if holds else Ruled(Outcome.FAIL, why)


def _exact(required: str, text: str, steps: Sequence[str]) -> Ruled:
    return _ruled(normalised(text, steps) == normalised(required, steps), "the response is another text")


def _one_code_block(_required: str, text: str, _steps: Sequence[str]) -> Ruled:
    """One fenced block and nothing around it; one line end may follow."""
    found = _BLOCK.fullmatch(text)
    inner = found is not None and _FENCE.search(found["inside"]) is None
    return _ruled(inner, "the response is not one fenced block and nothing else")


def _no_fence(_required: str, text: str, _steps: Sequence[str]) -> Ruled:
    return _ruled("```" not in text and _FENCE.search(text) is None, "the response has a Markdown fence")


def _json_schema(required: str, text: str, _steps: Sequence[str]) -> Ruled:
    """The whole response is one JSON text, strictly read, and valid under the schema (Draft 2020-12). No reference is ever fetched."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        schema: Any = json.loads(required)
        Draft202012Validator.check_schema(schema)
    except (ValueError, RecursionError, SchemaError):
        return Ruled(Outcome.ERROR, "what is required is no JSON Schema")
    try:
        value: Any = jsontext.loads(text.encode(), "response")
    except InputError as error:
        return Ruled(Outcome.FAIL, f"the response is no JSON text: {error.message}")
    try:
        wrong = next(iter(Draft202012Validator(schema, registry=Registry()).iter_errors(value)), None)
    except (Unresolvable, RecursionError, re.error) as error:
        return Ruled(Outcome.ERROR, f"the schema cannot be evaluated: {type(error).__name__}")
    return _ruled(wrong is None, wrong.message[:200] if wrong else "")


def _regex(required: str, text: str, _steps: Sequence[str]) -> Ruled:
    try:
        pattern = re.compile(required)
    except (re.error, RecursionError, OverflowError):
        return Ruled(Outcome.ERROR, "what is required is no regular expression")
    return _ruled(pattern.fullmatch(text) is not None, "the whole response does not match")


def _markers(required: str, text: str, steps: Sequence[str]) -> Ruled:
    """Each of a JSON list of texts stands in the response."""
    try:
        wanted = json.loads(required)
    except (ValueError, RecursionError):
        wanted = None
    if not isinstance(wanted, list) or not wanted or not all(isinstance(item, str) and item.strip() for item in wanted):
        return Ruled(Outcome.ERROR, "what is required is no JSON list of texts")
    within = normalised(text, steps)
    missing = [item for item in wanted if normalised(item, steps) not in within]
    return _ruled(not missing, f"not in the response: {', '.join(missing)}")


_RULES: Final[Mapping[str, Callable[[str, str, Sequence[str]], Ruled]]] = {
    "exact": _exact,
    "one-code-block": _one_code_block,
    "no-fence": _no_fence,
    "json-schema": _json_schema,
    "regex-fullmatch": _regex,
    "markers": _markers,
}
RULES: Final = tuple(_RULES)
