"""What a record, in JSON or YAML, says of images: the status words of its members.

A member whose value is a status word, and whose name has `status`, `state`, `verdict`, `qualification` or `conclusion` among its words,
says it; so does one that is true and whose name ends in a status word (`qualified`, `research_only`). None does whose name denies it
(`not_qualified`, `expected_status`). It is said of the images that its object names; where the object names none, of those of the nearest
object around it that does. Of an object's images those count that stand least deep, and none under a name for another image, such as a
base. Capabilities and scopes are those that stand in the object itself, in its `scope` or `topology`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from countermark.attestations import jsontext, yamltext
from countermark.attestations.codes import Status
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue, Located, as_integer, as_list, as_object, walk
from countermark.contracts.claims.quoted import quoted_in
from countermark.contracts.claims.reading import Claim, Meaning, TextReading, mentions
from countermark.contracts.claims.scopes import Named, asks, named_in
from countermark.contracts.locators.base import decoded

SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
_WORDS: Final = {str(status): status for status in Status}
_LEAVES: Final = ("tp", "dcp", "pp", "context_tokens", "concurrency", "draft_tokens")
_NAMES: Final = frozenset({"status", "state", "verdict", "qualification", "conclusion"})
_DENIED: Final = frozenset({"not", "never", "no", "non", "was", "previously", "expected", "required"})
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
"""A word of a name, be it written `snake_case`, `kebab-case` or `camelCase`."""
_OTHERS: Final = ("base", "parent", "previous", "rollback", "supersede", "replace")
"""How names begin that an object has for images that it is not about."""


def read_record(data: bytes, path: str, meaning: Meaning, capabilities: Mapping[str, object]) -> TextReading:
    """Read a record. One that names no image says nothing; one that does, and cannot be parsed strictly, is a mistake."""
    mentioned = tuple(mentions(decoded(data, path), path, meaning))
    claims: tuple[Claim, ...] = ()
    mistakes: tuple[InputError, ...] = ()
    try:
        claims = tuple(_claims(_parsed(data, path), meaning, list(capabilities))) if mentioned else ()
    except InputError as error:
        mistakes = (error,)
    rejects = frozenset(claim.image for claim in claims if claim.status is Status.REJECTED)
    return TextReading(path, claims, (), mentioned, mistakes, rejects, rejects_unnamed=False)


def _parsed(data: bytes, path: str) -> Located:
    return jsontext.loads_located(data, path) if path.lower().endswith(".json") else yamltext.loads_located(data, path)


def _claims(record: Located, meaning: Meaning, capabilities: Sequence[str]) -> Iterator[Claim]:
    nodes = dict(walk(record.value))
    for pointer, value in nodes.items():
        around, _, name = pointer.rpartition("/")
        status = _status(name, value)
        if status:
            named = asks(list(_named(as_object(nodes[around]), capabilities)), capabilities)
            yield from (Claim(status, image, named, record.at(pointer)) for image in _said_of(around, nodes, meaning))


def _status(name: str, value: JsonValue) -> Status | None:
    """The status that a member says, if it says any."""
    words = [part.lower() for part in _PART.findall(name)]
    if _DENIED.intersection(words):
        return None
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower().replace("_", "-")) if _NAMES.intersection(words) else None
    if value is not True:
        return None
    return next((status for text, status in _WORDS.items() if words[-len(text.split("-")) :] == text.split("-")), None)


def _said_of(around: str, nodes: Mapping[str, JsonValue], meaning: Meaning) -> tuple[Digest, ...]:
    """The images of the object at a pointer, or of the nearest one around it that names any."""
    while True:
        images = _images(nodes[around], meaning)
        if images or not around:
            return images
        around = around.rpartition("/")[0]


def _images(value: JsonValue, meaning: Meaning) -> tuple[Digest, ...]:
    """The images that a value names where it is least deep."""
    level = [value]
    while level:
        texts = [item for item in level if isinstance(item, str)]
        images = dict.fromkeys(image for text in texts for _, _, quoted in quoted_in(text) for image in meaning(quoted))
        if images:
            return tuple(images)
        level = [child for item in level for child in _children(item)]
    return ()


def _children(value: JsonValue) -> list[JsonValue]:
    return as_list(value) + [child for name, child in as_object(value).items() if not name.lower().startswith(_OTHERS)]


def _named(record: Mapping[str, JsonValue], capabilities: Sequence[str]) -> Iterator[Named]:
    """The capabilities and scopes that an object names, each in a place of its own."""
    parts = [record, as_object(record.get("scope", {})), as_object(record.get("topology", {}))]
    for place, (name, value) in enumerate(item for part in parts for item in part.items()):
        if isinstance(value, str) and _status(name, value) is None:
            yield from named_in(value, capabilities)
        elif name in _LEAVES:
            counts = [as_integer(item) for item in (value if isinstance(value, list) else [value])]
            yield from (Named(place, place, leaves=((name, count),)) for count in counts if count is not None)
