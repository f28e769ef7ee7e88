"""Rules about the configuration keys of profiles, which a key catalogue names (catalogue CF-01 to CF-05)."""

import difflib
import re
from collections.abc import Iterator, Mapping

from countermark.attestations.codes import Outcome
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.key_catalog import CATALOG, Key, KeyCatalog, key_catalog
from countermark.contracts.checkers.parameters import choice, fields, group, many, objects, profiles, table, text, texts, whole
from countermark.contracts.checkers.profiles import Configuration, configuration
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import same, shown
from countermark.contracts.terms import lookup

_INT_TEXT = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BOOL_TEXTS: Mapping[str, bool] = {"0": False, "1": True, "false": False, "true": True}
_FORMS = {"bool": "true or false", "int": "an integer", "path": "a path", "sha256": "64 lower-case hex digits"}


def _configurations(case: Case, given: Parameters) -> list[Configuration]:
    names = texts(given["profiles"]) if "profiles" in given else None
    return [configuration(case, profile) for profile in case.profiles(names)]


class KeysComplete(Checker):
    """Holds the keys of each profile against the catalogue: present, spelled the canonical way, and said once."""

    name = "config.keys-complete"
    rule = "Every required key stands in every profile once, under its canonical name and with a value."
    ids = ("CF-01", "CF-02")
    parameters = fields(
        "catalog",
        profiles=profiles(),
        catalog=CATALOG,
        prefix=text("what the names of the component's keys begin with; with it, a name that the catalogue lacks is a finding"),
        legacy=choice("what a legacy name alone is; `reject` by default", "reject", "accept"),
        ambiguous=choice("what two names of one key with different values are; `reject` by default", "reject", "accept"),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each key that is missing, empty, doubled, unknown or spelled the old way."""
        catalog = key_catalog(case, str(given["catalog"]))
        found = _configurations(case, given)
        findings = [finding for it in found for finding in self._judge(it, catalog, given)]
        return Result(len(found) * len(catalog.keys), tuple(findings))

    def _judge(self, it: Configuration, catalog: KeyCatalog, given: Parameters) -> Iterator[Finding]:
        prefix = str(given["prefix"]) if "prefix" in given else None
        unknown = [name for name in it.values if prefix and name.startswith(prefix) and name not in catalog.names]
        for key in catalog.keys:
            present = [name for name in key.names if name in it.values]
            if present:
                yield from self._spelled(key, it, present, given)
            elif key.required:
                near = difflib.get_close_matches(key.name, unknown, n=1)
                unknown = [name for name in unknown if name not in near]
                yield self._absent(key, it, near)
        for name in unknown:
            meant = difflib.get_close_matches(name, list(catalog.names), n=1)
            fix = f"write {meant[0]}" if meant else "remove it, or add it to the catalogue"
            yield self.violation(it.values[name].at, required=f"a key of {catalog.id}", observed=name, fix=fix)

    def _absent(self, key: Key, it: Configuration, near: list[str]) -> Finding:
        if near:
            return self.violation(it.values[near[0]].at, required=key.name, observed=near[0], fix=f"rename it to {key.name}")
        return self.violation(it.at, required=key.name, observed="no such key", fix=f"add {key.name} to profile {it.profile.name}")

    def _spelled(self, key: Key, it: Configuration, present: list[str], given: Parameters) -> Iterator[Finding]:
        first = it.values[present[0]]
        for name in present[1:]:
            other = it.values[name]
            if not same(first.value, other.value):
                if given.get("ambiguous", "reject") == "reject":
                    yield self._doubled(key, present[0], first, name, other)
            elif name == key.legacy and given.get("legacy", "reject") == "reject":
                yield self.violation(other.at, required=key.name, observed=f"{name} beside it", fix=f"remove {name}")
        if present == [key.legacy] and given.get("legacy", "reject") == "reject":
            yield self.violation(first.at, required=key.name, observed=f"the legacy name {key.legacy}", fix=f"rename it to {key.name}")
        elif first.value in ("", None):
            yield self.violation(first.at, required=f"a value for {present[0]}", observed="none", fix=f"set {present[0]}")

    def _doubled(self, key: Key, name: str, first: Found, other_name: str, other: Found) -> Finding:
        required = f"{shown(first.value)}, as {name} at {first.at.file}:{first.at.line} says"
        observed = f"{other_name} says {shown(other.value)}"
        return self.violation(
            other.at, required=required, observed=observed, fix=f"keep {key.name} with the right value, and remove {other_name}"
        )


class KeysAccepted(Checker):
    """Holds the names in use against the source revision that is pinned."""

    name = "config.keys-accepted"
    rule = "The pinned source revision is known to accept the names that the profiles use."
    ids = ("CF-03",)
    parameters = fields(
        "catalog", "source", profiles=profiles(), catalog=CATALOG, source=text("the pin of the source's commit, as pin.leaf")
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """A finding for each canonical name over a revision that knows the legacy ones only; one if nobody knows the revision."""
        catalog = key_catalog(case, str(given["catalog"]))
        pin = lookup(str(given["source"]), case.terms.pins, "pin", case.at)
        used = [(name, found) for it in _configurations(case, given) for name, found in it.values.items() if name in catalog.names]
        if not used or pin.value in catalog.accepted_from:
            return Result(len(used))
        if pin.value not in catalog.legacy_only:
            return Result(len(used), (self._unknown(catalog, str(pin.value), pin.at),))
        refused = [(catalog.names[name], found) for name, found in used if catalog.names[name].legacy not in (None, name)]
        return Result(len(used), tuple(self._refused(key, found, str(pin.value)) for key, found in refused))

    def _unknown(self, catalog: KeyCatalog, commit: str, at: Location) -> Finding:
        required = f"a revision that {catalog.id} lists"
        fix = "find out which names this revision accepts, and list it in the catalogue"
        return self.violation(at, required=required, observed=commit, fix=fix, outcome=Outcome.INCONCLUSIVE)

    def _refused(self, key: Key, found: Found, commit: str) -> Finding:
        fix = f"pin a revision that accepts {key.name}; a rewrite to {key.legacy} at start would be one that nobody sees"
        return self.violation(found.at, required=f"a name that {commit} accepts ({key.legacy})", observed=key.name, fix=fix)


class TypesStrict(Checker):
    """Holds each value against the type of its key: a boolean is no integer, and digits in quotes are text."""

    name = "config.types-strict"
    rule = "Every key of the catalogue has a value of exactly its type."
    ids = ("CF-04",)
    parameters = fields("catalog", profiles=profiles(), catalog=CATALOG)

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each value of another type."""
        names = key_catalog(case, str(given["catalog"])).names
        used = [(names[name], name, it) for config in _configurations(case, given) for name, it in config.values.items() if name in names]
        wrong = [(key, found) for key, name, found in used if _value(key, name, found.value) is None]
        return Result(len(used), tuple(self._wrong(key, found) for key, found in wrong))

    def _wrong(self, key: Key, found: Found) -> Finding:
        form = _FORMS[key.type]
        return self.violation(found.at, required=form, observed=shown(found.value), fix=f"write {form} for {key.name}")


class ValueLimits(Checker):
    """Holds each value against the limits of its key, and a budget against the size that it must hold."""

    name = "config.value-limits"
    rule = "Every value lies within the limits of its key, and a budget that is set holds what it must hold."
    ids = ("CF-05",)
    parameters = fields(
        "catalog",
        profiles=profiles(),
        catalog=CATALOG,
        limits=table(
            "limits of further keys by name",
            group(
                "limits",
                min=whole("least value"),
                max=whole("greatest value"),
                one_of=many("the only values", whole("a value")),
            ),
        ),
        budgets=many(
            "keys that, when set and not 0, are at least a multiple of another",
            group(
                "one budget", "key", "of", "times", key=text("the budget"), of=text("the size it holds"), times=whole("how many", minimum=1)
            ),
        ),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each value outside of its limits."""
        names = {**key_catalog(case, str(given["catalog"])).names, **_further(given.get("limits"))}
        found = _configurations(case, given)
        used = [(names[name], name, it) for config in found for name, it in config.values.items() if name in names]
        findings = [finding for key, name, it in used for finding in self._limits(key, it, _value(key, name, it.value))]
        budgets = [
            finding for config in found for budget in objects(given.get("budgets")) for finding in self._budget(config, names, budget)
        ]
        return Result(len(used), (*findings, *budgets))

    def _limits(self, key: Key, found: Found, value: JsonValue) -> Iterator[Finding]:
        allowed = _allowed(key, value)
        if allowed:
            yield self.violation(found.at, required=allowed, observed=shown(found.value), fix=f"set {key.name} to {allowed}")

    def _budget(self, config: Configuration, names: Mapping[str, Key], budget: Mapping[str, JsonValue]) -> Iterator[Finding]:
        own = _integer(config, names, str(budget["key"]))
        size = _integer(config, names, str(budget["of"]))
        times = budget["times"]
        if own and size and isinstance(times, int) and own < times * size:
            at = config.values[str(budget["key"])].at
            least = f"at least {times} × {size} = {times * size}"
            yield self.violation(at, required=least, observed=str(own), fix=f"raise {budget['key']}, or lower {budget['of']}")


def _further(limits: JsonValue) -> dict[str, Key]:
    rules = limits.items() if isinstance(limits, dict) else ()
    return {name: _further_key(name, rule) for name, rule in rules if isinstance(rule, dict)}


def _further_key(name: str, rule: Mapping[str, JsonValue]) -> Key:
    least, greatest, only = rule.get("min"), rule.get("max"), rule.get("one_of")
    return Key(
        name,
        "int",
        required=False,
        one_of=tuple(only) if isinstance(only, list) else (),
        min=least if isinstance(least, int) else None,
        max=greatest if isinstance(greatest, int) else None,
    )


def _integer(config: Configuration, names: Mapping[str, Key], name: str) -> int | None:
    found = config.values.get(name)
    value = _value(names[name], name, found.value) if found and name in names else None
    return value if isinstance(value, int) else None


def _allowed(key: Key, value: JsonValue) -> str | None:
    """What the value had to be, when it is not; a value of a wrong type is not within any limit."""
    if key.one_of and not any(same(value, allowed) for allowed in key.one_of):
        return f"one of {', '.join(shown(allowed) if isinstance(allowed, str) else str(allowed) for allowed in key.one_of)}"
    if key.min is None and key.max is None:
        return None
    low = key.min is None or (isinstance(value, int) and not isinstance(value, bool) and value >= key.min)
    high = key.max is None or (isinstance(value, int) and not isinstance(value, bool) and value <= key.max)
    if low and high:
        return None
    if key.max is None:
        return f"{key.min} or more"
    return f"{key.max} or less" if key.min is None else f"{key.min} to {key.max}"


def _value(key: Key, name: str, value: JsonValue) -> JsonValue:
    """The value in the key's type, or none for one of another type; a variable of an environment is text that spells it."""
    if name == key.env and isinstance(value, str):
        if key.type == "bool":
            return _BOOL_TEXTS.get(value.lower())
        if key.type == "int":
            return int(value) if _INT_TEXT.fullmatch(value) else None
    is_one = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "path": isinstance(value, str),
        "sha256": isinstance(value, str) and _SHA256.fullmatch(value) is not None,
    }[key.type]
    return value if is_one else None
