"""A first contract for a repository that has none: what recurs in it is pinned, and each place where it stands is located.

Digests, commits and revisions that stand in two files or more are pinned; so are numbers that two files or more give the same name. A
value that is nearly one of them is taken for a slip of it, so that drift shows at once. What the maintainers mean is for them to say: the
result is a draft.
"""

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from countermark.attestations.codes import Code
from countermark.attestations.errors import NothingError
from countermark.contracts.checkers.key_catalog import shipped_catalogs, shipped_keys
from countermark.contracts.locators.survey import Sighting, Survey, survey
from countermark.contracts.tree import Tree

DIFFERS = "# differs:"
"""How the lines of a draft begin that tell of drift."""
_LEAST_FILES = 2
_LIKENESS = 0.75
_PARTS = re.compile(r"[^A-Za-z0-9]+")
_KIND_WORDS = frozenset(
    (
        *("commit", "tree", "revision", "rev", "ref", "source"),
        *("sha", "sha1", "sha256", "digest", "hash", "id", "value"),
        *("manifest", "config", "image"),
    )
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One value that recurs: the pin it becomes, and everywhere it stands."""

    pin: str
    leaf: str
    value: str | int
    places: tuple[Sighting, ...]


def infer(tree: Tree, name: str) -> str:
    """The YAML text of a contract over the files of a tree. `NothingError` when nothing in it recurs."""
    seen = survey(tree)
    facts = [*_digests(seen.digests), *_numbers(seen.numbers)]
    profiles = _profiles(seen)
    if not facts and not profiles and not seen.lists:
        message = f"nothing that could be pinned stands in {_LEAST_FILES} or more files; {seen.files} could be read"
        raise NothingError(Code.NOTHING_EVALUATED, message, fix="write the contract by hand: `countermark schema Contract`")
    return "\n".join(_text(name, facts, profiles, seen)) + "\n"


def _digests(found: Sequence[Sighting]) -> Iterator[Fact]:
    by_hex: dict[str, list[Sighting]] = {}
    for it in found:
        by_hex.setdefault(it.hex, []).append(it)
    recurring = {digits: own for digits, own in by_hex.items() if len({it.file for it in own if it.locator != "sums"}) >= _LEAST_FILES}
    for digits, own in by_hex.items():
        if digits not in recurring:
            near = [other for other in difflib.get_close_matches(digits, recurring, n=1, cutoff=_LIKENESS) if len(other) == len(digits)]
            if near:
                recurring[near[0]].extend(own)
    names: set[str] = set()
    for digits, own in recurring.items():
        named = [it for it in own if not it.is_prose] or own
        component = _component(named)
        leaf = _leaf(named, component)
        pin = _unique(component, leaf, names)
        yield Fact(pin, leaf, f"sha256:{digits}" if leaf in ("manifest", "config") else digits, tuple(own))


def _numbers(found: Sequence[Sighting]) -> Iterator[Fact]:
    """Numbers of one name that all files with the name agree on."""
    by_name: dict[str, list[Sighting]] = {}
    for it in found:
        by_name.setdefault(it.name, []).append(it)
    for name, own in by_name.items():
        if len({it.file for it in own}) >= _LEAST_FILES and len({it.number for it in own}) == 1:
            yield Fact("shared", _word(name), own[0].number, tuple(own))


def _leaf(own: Sequence[Sighting], component: str) -> str:
    """The leaf name that carries the type, by what the places call the value."""
    names = " ".join(it.name.lower() for it in own)
    if len(own[0].hex) == 40:
        if "tree" in names:
            return "tree"
        return "revision" if "revision" in names and "commit" not in names else "commit"
    if any(it.is_reference or it.is_typed for it in own):
        return "config" if re.search(r"image_?id|config", names) and not any(it.is_reference for it in own) else "manifest"
    words = [
        word
        for word in _PARTS.split(own[0].name.lower())
        if word and not word.isdecimal() and word not in ("sha256", "digest", *component.split("_"))
    ]
    return f"{'_'.join(words[-2:]) or 'file'}_sha256"


def _component(own: Sequence[Sighting]) -> str:
    """What the value is of: what most places call it, but for the words that say what kind of value it is."""
    called = [name for it in own for name in [_telling(it.words)] if name]
    return Counter(called).most_common(1)[0][0] if called else "pinned"


def _telling(words: Sequence[str]) -> str:
    for word in reversed(words):
        parts = [part.lower() for part in _PARTS.split(word) if part.lower() not in _KIND_WORDS and part and not part.isdecimal()]
        if parts:
            return "_".join(parts)[:48]
    return ""


def _word(text: str) -> str:
    return "_".join(part for part in _PARTS.split(text) if part).lower()[:48] or "pinned"


def _unique(pin: str, leaf: str, taken: set[str]) -> str:
    number, name = 1, pin
    while f"{name}.{leaf}" in taken:
        number += 1
        name = f"{pin}{number}"
    taken.add(f"{name}.{leaf}")
    return name


def _differing(facts: Sequence[Fact], found: Sequence[Sighting]) -> Iterator[str]:
    """What looks like drift that is there already: another value under the name of one that is pinned, and two pins of one name."""
    for fact in facts:
        if fact.pin[-1].isdecimal() and any(fact.pin.rstrip("0123456789") == other.pin and fact.leaf == other.leaf for other in facts):
            yield f"{fact.pin}.{fact.leaf} has a name that another value has too: if they must be one, make them one pin"
    pinned = {(it.file, it.argument) for fact in facts for it in fact.places}
    for it in found:
        if (it.file, it.argument) not in pinned and not it.is_prose:
            same = next((fact for fact in facts if any(_called_alike(it, place) for place in fact.places)), None)
            if same:
                yield f"{it.file} {it.argument} is {it.hex}, and not {same.pin}.{same.leaf}: if that is drift, add it to the places"


def _called_alike(one: Sighting, other: Sighting) -> bool:
    """Whether two digests of one length stand under the same last words of a path, such as `source` and `commit`."""
    words = tuple(word.lower() for word in one.words[-2:])
    return len(one.hex) == len(other.hex) and bool(words) and words == tuple(word.lower() for word in other.words[-2:])


def _profiles(seen: Survey) -> Mapping[str, tuple[Sighting, str]]:
    """Objects that hold keys of a shipped catalogue, with the catalogue."""
    known = {key: catalog for catalog in shipped_catalogs() for key in shipped_keys(catalog)}
    found: dict[str, tuple[Sighting, str]] = {}
    for it in seen.objects:
        catalogs = {known[key] for key in it.keys if key in known}
        if catalogs:
            name = _word(it.file.rpartition("/")[2].rpartition(".")[0])
            found[_unique(name, "profile", {f"{other}.profile" for other in found})] = (it, min(catalogs))
    return found


def _prose(seen: Survey, facts: Sequence[Fact]) -> list[str]:
    """The documents that quote known digests only."""
    known = {str(fact.value).removeprefix("sha256:") for fact in facts}
    return [path for path, quoted in seen.prose.items() if quoted and set(quoted) <= known]


def _text(name: str, facts: Sequence[Fact], profiles: Mapping[str, tuple[Sighting, str]], seen: Survey) -> Iterator[str]:
    prose = _prose(seen, facts)
    yield from (f"{DIFFERS} {told}" for told in _differing(facts, seen.digests))
    yield "# Drafted by `countermark contract infer`: rename the pins, remove what may differ, add what must hold."
    yield "apiVersion: countermark.dev/v1"
    yield "kind: Contract"
    yield f"metadata: {{id: {_id(name)}, version: 1}}"
    yield "spec:"
    pins = {pin: [fact for fact in facts if fact.pin == pin] for pin in dict.fromkeys(fact.pin for fact in facts)}
    yield "  pins:" if pins else "  pins: {}"
    for pin, own in pins.items():
        yield f"    {pin}: {{{', '.join(f'{fact.leaf}: {json.dumps(fact.value)}' for fact in own)}}}"
    yield "  places:" if facts else "  places: []"
    for fact in facts:
        for it in fact.places:
            if it.file not in prose and it.locator != "sums":
                kind = _type(fact, it)
                yield f"    - {{file: {json.dumps(it.file)}, {it.locator}: {json.dumps(it.argument)}, is: {fact.pin}.{fact.leaf}{kind}}}"
    for path in prose:
        yield f"    - {{file: {json.dumps(path)}, markdown: all-digests, is: any-known}}"
    yield from _profile_lines(profiles)
    yield "  invariants:"
    if seen.lists:
        yield f"    - {{id: checksums, check: checksum.list, with: {{files: {json.dumps(seen.lists)}}}}}"
    if facts:
        yield "    - {id: pins-agree, check: pins.agree}"
    if any(fact.pin != "shared" for fact in facts):
        yield "    - {id: pins-whole, check: pins.full-length}"
    for catalog in sorted({catalog for _, catalog in profiles.values()}):
        own_names = ", ".join(profile for profile, (_, own) in profiles.items() if own == catalog)
        yield f"    - {{id: keys-complete, check: config.keys-complete, with: {{profiles: [{own_names}], catalog: {catalog}}}}}"


def _profile_lines(profiles: Mapping[str, tuple[Sighting, str]]) -> Iterator[str]:
    if profiles:
        yield "  profiles:"
    for profile, (it, _) in profiles.items():
        yield f"    {profile}: {{file: {json.dumps(it.file)}, class: serving, config: {json.dumps(it.argument)}, fields: {{}}}}"


def _type(fact: Fact, it: Sighting) -> str:
    """The type of a place that spells the value in another form than the pin."""
    if isinstance(fact.value, int):
        return ""
    bare = not it.is_typed and not it.is_reference
    if fact.leaf in ("manifest", "config"):
        return ", type: sha256" if bare else ""
    return ", type: manifest" if not bare and len(it.hex) == 64 else ""


def _id(name: str) -> str:
    text = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")
    return text[:64] or "repository"
