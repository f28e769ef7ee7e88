"""Copies of published records under other names: every digest, revision and word is another, each hash made anew of what it is of."""

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HEX = re.compile(r"(sha256:)?([0-9a-f]{64}|[0-9a-f]{40})\Z")
_ENDS = ("", " ", "\n", "\r\n")
_CASES: tuple[Callable[[str], str], ...] = (str, str.capitalize, str.upper)
_PREFIX = 12

Change = Callable[[Any], None]


@dataclass
class Relabelling:
    """Other names for what records name; `words` are the answers that are replaced, `salt` makes all digests others."""

    salt: str
    words: Mapping[str, str] = field(default_factory=dict)
    hexes: dict[str, str] = field(default_factory=dict)

    def write(self, names: tuple[str, ...], source: Path, folder: Path, changes: Mapping[str, Change]) -> list[Path]:
        """Relabelled copies of the files, the first of which refers to the others; `changes` are made by file name before hashes are."""
        folder.mkdir(parents=True, exist_ok=True)
        written = [self._write(source / name, folder / Path(name).name, changes) for name in reversed(names)]
        return written[::-1]

    def of(self, hexed: str) -> str:
        """The other digest that stands for one."""
        return self.hexes.setdefault(hexed, _sha256((self.salt + hexed).encode())[: len(hexed)])

    def _write(self, source: Path, target: Path, changes: Mapping[str, Change]) -> Path:
        value = json.loads(source.read_bytes())
        changes.get(target.name, lambda _: None)(value)
        # Texts first, then objects from the inside: the hash of an object is over what it holds once that is relabelled.
        for _, node in sorted(_nodes(value), key=lambda item: (isinstance(item[1], dict), -item[0])):
            self.hexes.update(zip(_hashes(node), _hashes(self.value(node)), strict=True))
        data = json.dumps(self.value(value)).encode()
        target.write_bytes(data)
        self.hexes[_sha256(source.read_bytes())] = _sha256(data)
        return target

    def value(self, node: Any) -> Any:
        """The relabelled copy of a JSON value."""
        if isinstance(node, dict):
            return {key: self.value(item) for key, item in node.items()}
        if isinstance(node, list):
            return [self.value(item) for item in node]
        return self._text(node) if isinstance(node, str) else node

    def _text(self, text: str) -> str:
        found = _HEX.match(text)
        if found:
            return f"{found[1] or ''}{self.of(found[2])}"
        if len(text) == _PREFIX and (whole := next((known for known in self.hexes if known.startswith(text)), None)):
            return self.hexes[whole][:_PREFIX]
        return self.words.get(text, text)


def _nodes(value: Any, depth: int = 0) -> Iterator[tuple[int, Any]]:
    """Every text and object with its depth."""
    if isinstance(value, dict | str):
        yield depth, value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nodes(item, depth + 1)


def _hashes(node: Any) -> list[str]:
    """The digests that a record may state of a text, as it stands or as the raw answer it was printed from, or of an object."""
    if isinstance(node, dict):
        return [_sha256(json.dumps(node, sort_keys=True, separators=(",", ":")).encode())]
    forms = (f"{before}{case(node)}{after}" for case, before, after in itertools.product(_CASES, _ENDS, _ENDS))
    return [_sha256(form.encode()) for form in forms]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
