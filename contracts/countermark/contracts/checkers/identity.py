"""Rules about profiles beside each other: what must differ, and what may (catalogue CF-07, CF-08, CF-12)."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.differences import covers, differences
from countermark.contracts.checkers.parameters import fields, group, many, pointer, profiles, text, texts
from countermark.contracts.checkers.profiles import command_line, field_of
from countermark.contracts.checkers.records import Block, blocks, record
from countermark.contracts.locators.base import Found
from countermark.contracts.locators.shell import strip_flag
from countermark.contracts.pins import same, shown
from countermark.contracts.terms import Profile

_TOKEN = r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}"


def _named(case: Case, given: Parameters) -> list[Profile]:
    return case.profiles(texts(given["profiles"]) if "profiles" in given else None)


class Distinct(Checker):
    """Compares fields of profiles pairwise."""

    name = "identity.distinct"
    rule = "No two of the profiles have the same value in any of the fields."
    ids = ("CF-08",)
    parameters = fields(
        "fields", profiles=profiles(), fields=many("names of fields that each profile has its own value in", text("a field"))
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each profile and field that repeats the value of an earlier profile."""
        found = _named(case, given)
        names = texts(given["fields"])
        values = {name: [(profile, field_of(case, profile, name)) for profile in found] for name in names}
        findings = [finding for name in names for finding in self._repeated(name, values[name])]
        return Result(len(names) * (len(found) - 1) if len(found) > 1 else 0, tuple(findings))

    def _repeated(self, name: str, values: Sequence[tuple[Profile, Found]]) -> Iterator[Finding]:
        for index, (profile, found) in enumerate(values):
            earlier = [(other, it) for other, it in values[:index] if same(it.value, found.value)]
            if earlier:
                other, it = earlier[0]
                required = f"another {name} than profile {other.name} has at {it.at.file}:{it.at.line}"
                yield self.violation(
                    found.at, required=required, observed=shown(found.value), fix=f"give profile {profile.name} its own {name}"
                )


class DiffDeclared(Checker):
    """Compares a profile with the one that it is made from."""

    name = "config.diff-declared"
    rule = "A profile differs from its base in what is declared only."
    ids = ("CF-07",)
    parameters = fields(
        "base",
        "derived",
        base=text("the profile that the other is made from"),
        derived=text("the profile that is made"),
        allow=many("pointers of the parts that may differ, with all that is below them", pointer("a pointer")),
        allow_flags=many("flags of the command line that may differ", text("a flag")),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each part that differs and is not declared."""
        (base,) = case.profiles([str(given["base"])])
        (derived,) = case.profiles([str(given["derived"])])
        if base == derived:
            return Result(0)
        one, other = record(case, base.file), record(case, derived.file)
        allowed = [*texts(given.get("allow")), *([derived.argv] if derived.argv else [])]
        found = [
            it for it in differences(one.find("")[0].value, other.find("")[0].value) if not any(covers(own, it.pointer) for own in allowed)
        ]
        parts = [self._differs(other.at(it.pointer), it.before, it.after, base) for it in found]
        return Result(1, (*parts, *self._flags(case, base, derived, texts(given.get("allow_flags")))))

    def _differs(self, at: Location, before: str, after: str, base: Profile) -> Finding:
        fix = f"take the value of profile {base.name}, or declare the difference"
        return self.violation(at, required=f"{before}, as in profile {base.name}", observed=after, fix=fix)

    def _flags(self, case: Case, base: Profile, derived: Profile, allowed: Sequence[str]) -> Iterator[Finding]:
        if not (base.argv and derived.argv):
            return
        one, other = _arguments(command_line(case, base)), _arguments(command_line(case, derived))
        declared = {strip_flag(flag) for flag in allowed}
        more, fewer = Counter(it for it, _ in other), Counter(it for it, _ in one)
        for argument, at in other:
            if more[argument] > fewer[argument] and strip_flag(argument[0]) not in declared:
                yield self._differs(at, "no such argument", " ".join(argument), base)
        changed = {strip_flag(argument[0]) for argument, _ in other}
        for argument, _ in one:
            if fewer[argument] > more[argument] and strip_flag(argument[0]) not in {*declared, *changed}:
                at = record(case, derived.file).at(derived.argv)
                yield self._differs(at, " ".join(argument), "no such argument", base)


def _arguments(words: Sequence[Found]) -> list[tuple[tuple[str, ...], Location]]:
    """Each flag with the words behind it, and each word before the first flag."""
    grouped: list[tuple[tuple[str, ...], Location]] = []
    for word in words:
        text = str(word.value)
        if grouped and grouped[-1][0][0].startswith("--") and not text.startswith("--"):
            grouped[-1] = ((*grouped[-1][0], text), grouped[-1][1])
        else:
            grouped.append(((text,), word.at))
    return grouped


class ClearToken(Checker):
    """Holds the one-shot tokens of profiles against their syntax, each other, and those that were consumed."""

    name = "cache.clear-token"
    rule = "Every profile has a one-shot token of its own that no other root has consumed."
    ids = ("CF-12",)
    parameters = fields(
        profiles=profiles(),
        token=text("the field with the token; `one_shot_clear` by default"),
        root=text("the field with the cache root; `cache_root` by default"),
        pattern=text("regular expression that a whole token matches"),
        consumed=group(
            "the record of tokens that were consumed",
            "file",
            "each",
            "token",
            "root",
            file=text("its path"),
            each=pointer("its entries"),
            token=pointer("the token of an entry"),
            root=pointer("the root that it cleared"),
        ),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each token that is malformed, repeated or used up."""
        name, root = str(given.get("token", "one_shot_clear")), str(given.get("root", "cache_root"))
        found = [(profile, field_of(case, profile, name), field_of(case, profile, root)) for profile in _named(case, given)]
        consumed = given.get("consumed")
        used = list(blocks(case, consumed)) if isinstance(consumed, dict) else []
        form = case.expression(str(given.get("pattern", _TOKEN)))
        malformed = [finding for _, token, _ in found for finding in self._malformed(token, form)]
        repeated = [finding for pair in itertools.combinations(found, 2) for finding in self._repeated(pair[0][1], pair[1][1])]
        spent = [finding for _, token, own in found for finding in self._spent(token, own, used)]
        twice = [
            finding for pair in itertools.combinations(used, 2) for finding in self._repeated(pair[0].one("token"), pair[1].one("token"))
        ]
        return Result(len(found), (*malformed, *repeated, *spent, *twice))

    def _malformed(self, token: Found, form: re.Pattern[str]) -> Iterator[Finding]:
        if not isinstance(token.value, str) or not form.fullmatch(token.value):
            yield self.violation(token.at, required=f"a token like {form.pattern}", observed=shown(token.value), fix="write such a token")

    def _repeated(self, first: Found, second: Found) -> Iterator[Finding]:
        if same(first.value, second.value):
            required = f"another token than at {first.at.file}:{first.at.line}"
            yield self.violation(second.at, required=required, observed=shown(second.value), fix="write a token of its own")

    def _spent(self, token: Found, root: Found, used: Sequence[Block]) -> Iterator[Finding]:
        for entry in used:
            other = entry.one("root")
            if same(entry.one("token").value, token.value) and not same(other.value, root.value):
                required = f"a token that no other root has consumed; {shown(other.value)} has, at {other.at.file}:{other.at.line}"
                yield self.violation(token.at, required=required, observed=shown(token.value), fix="write a new token")
