"""Strict YAML: a scalar is what it looks like to a person who knows JSON.

Plain `null`, `true`, `false`, integers below 2^53 and decimal fractions have their JSON meaning; every other scalar is text. So a
commit of forty digits, `on`, `12:30:45` and `2026-12-01` stay as written. The text is read as a stream of parser events with a stack
of our own: nesting is bounded, and each value keeps its line and column.
"""

import re
from dataclasses import dataclass, field

import yaml

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.jsontext import MAX_DEPTH, MAX_INT, decode
from countermark.attestations.located import JsonValue, Located, pointer_join

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 500_000

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,15})\Z", re.ASCII)
_REAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]{1,2})?|[eE][-+]?[0-9]{1,2})\Z", re.ASCII)
_NOT_PRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""YAML 1.2.2, production [1] c-printable."""
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
_LOADER: type = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def loads_located(data: bytes, source: str, *, limit: int = MAX_BYTES) -> Located:
    """The one document of a YAML text of at most `limit` bytes, with the place of every value. Raises `InputError`."""
    if len(data) > limit:
        raise InputError(Code.TOO_LARGE, f"{len(data)} bytes; at most {limit} are read", at=Location(source), fix="split the document")
    text, builder = decode(data, source), _Builder(source)
    if odd := _NOT_PRINTABLE.search(text):
        at = Location(source, text.count("\n", 0, odd.start()) + 1, odd.start() - text.rfind("\n", 0, odd.start()))
        message = f"the character U+{ord(odd.group()):04X} is not allowed in YAML"
        raise InputError(Code.UNREADABLE, message, at=at, fix="save the file as UTF-8 text, and remove the character")
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = Location(source, mark.line + 1, mark.column + 1) if mark else Location(source)
        problem = getattr(error, "problem", None) or "this is not YAML"
        raise InputError(Code.SCHEMA_INVALID, problem, at=at, fix="mend the YAML") from None
    return Located(builder.result, source, builder.positions)


def plain_scalar(text: str) -> JsonValue:
    """What an unquoted scalar means."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.match(text) and abs(int(text)) <= MAX_INT:
        return int(text)
    return float(text) if _REAL.match(text) else text


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read yet."""

    value: dict[str, JsonValue] | list[JsonValue]
    pointer: str
    anchor: str | None
    nodes_before: int
    key: str | None = None
    merges: list[JsonValue] = field(default_factory=list)
    merged: bool = False

    def child(self) -> str:
        return pointer_join(self.pointer, self.key if self.key is not None else len(self.value))


class _Builder:
    def __init__(self, source: str) -> None:
        self.source = source
        self.positions: dict[str, tuple[int, int]] = {}
        self.result: JsonValue = None
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[JsonValue, int]] = {}
        self._nodes = 0
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise self._error(Code.SCHEMA_INVALID, event, "a second document begins here", "keep one document a file")
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._open({}, event)
            case yaml.SequenceStartEvent():
                self._open([], event)
            case yaml.CollectionEndEvent():
                self._close()
            case yaml.AliasEvent():
                self._alias(event)

    def _error(self, code: Code, event: yaml.Event, message: str, fix: str) -> InputError:
        pointer = self._stack[-1].pointer if self._stack else None
        return InputError(code, message, at=Location(self.source, *_place(event), pointer or None), fix=fix)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text: str = event.value
        top = self._stack[-1] if self._stack else None
        if top and isinstance(top.value, dict) and top.key is None:
            self._key(top, text, event)
            return
        value = self._tagged(event, event.tag) if event.tag else plain_scalar(text) if event.implicit[0] and not event.style else text
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._place_value(value, event, 1)

    def _tagged(self, event: yaml.ScalarEvent, tag: str) -> JsonValue:
        """A scalar with a tag of the core schema (YAML 1.2.2, 10.3); any other makes something of it that no reader can tell."""
        text: str = event.value
        kind = tag.removeprefix(_TAG)
        value = plain_scalar(text)
        if tag == "!" or kind == "str":
            return text
        if kind in _SCALAR_TAGS and isinstance(value, _SCALAR_TAGS[kind]) and (kind == "bool" or not isinstance(value, bool)):
            return value
        raise self._unknown_tag(event, tag)

    def _unknown_tag(self, event: yaml.Event, tag: str) -> InputError:
        shown = tag.replace(_TAG, "!!")
        return self._error(Code.UNSUPPORTED, event, f"the tag {shown} is not read here", "remove the tag, and write the value as it is")

    def _key(self, top: _Open, key: str, event: yaml.Event) -> None:
        assert isinstance(top.value, dict)
        if key in top.value or (key == "<<" and top.merged):
            raise self._error(Code.DUPLICATE_KEY, event, f"key {key!r} stands twice in one mapping", "keep one")
        top.key = key
        top.merged |= key == "<<"
        self.positions[top.child()] = _place(event)

    def _open(self, value: dict[str, JsonValue] | list[JsonValue], event: yaml.Event) -> None:
        top = self._stack[-1] if self._stack else None
        if top and isinstance(top.value, dict) and top.key is None:
            raise self._error(Code.SCHEMA_INVALID, event, "a key must be a scalar", "quote the key")
        tag = getattr(event, "tag", None)
        if tag and tag not in ("!", f"{_TAG}map" if isinstance(value, dict) else f"{_TAG}seq"):
            raise self._unknown_tag(event, tag)
        if len(self._stack) >= MAX_DEPTH:
            raise self._error(Code.TOO_LARGE, event, f"nested deeper than {MAX_DEPTH}", "flatten the document")
        pointer = top.child() if top else ""
        self.positions.setdefault(pointer, _place(event))
        self._stack.append(_Open(value, pointer, getattr(event, "anchor", None), self._nodes))

    def _close(self) -> None:
        done = self._stack.pop()
        if isinstance(done.value, dict):
            for merged in done.merges:
                for key, value in merged.items() if isinstance(merged, dict) else ():
                    done.value.setdefault(key, value)
        nodes = self._nodes - done.nodes_before + 1
        if done.anchor:
            self._anchors[done.anchor] = (done.value, nodes)
        self._place_value(done.value, None, 1)

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise self._error(Code.SCHEMA_INVALID, event, f"no anchor {event.anchor!r} before this alias", "define the anchor first")
        value, nodes = self._anchors[event.anchor]
        self._place_value(value, event, nodes)

    def _place_value(self, value: JsonValue, event: yaml.Event | None, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            at = Location(self.source, *_place(event)) if event else Location(self.source)
            raise InputError(Code.TOO_LARGE, f"more than {MAX_NODES} values", at=at, fix="split the document")
        if not self._stack:
            self.result = value
            if event:
                self.positions.setdefault("", _place(event))
            return
        top = self._stack[-1]
        if isinstance(top.value, list):
            if event:
                self.positions[top.child()] = _place(event)
            top.value.append(value)
        elif top.key is None:
            raise self._error(Code.SCHEMA_INVALID, event or yaml.Event(), "a key must be a scalar", "quote the key")
        else:
            self._put(top, top.key, value)
            top.key = None

    @staticmethod
    def _put(top: _Open, key: str, value: JsonValue) -> None:
        """Store a member; `<<` merges as in Compose files, what stands in the mapping itself wins."""
        assert isinstance(top.value, dict)
        if key == "<<" and isinstance(value, dict | list):
            top.merges.extend(value if isinstance(value, list) else [value])
        else:
            top.value[key] = value


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
