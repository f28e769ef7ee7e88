"""Rules about command lines: what a rendered one must not hold, and what a serving one may not (catalogue CF-06, CF-10)."""

import re
from collections.abc import Iterator, Sequence

from countermark.attestations.codes import Code
from countermark.attestations.errors import Location, NothingError
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import choice, fields, many, profiles, text, texts
from countermark.contracts.checkers.profiles import command_line, flags
from countermark.contracts.locators.base import Found
from countermark.contracts.locators.registry import LOCATORS
from countermark.contracts.locators.shell import Script, strip_flag
from countermark.contracts.pins import shown

_ONCE = ("--kv-transfer-config",)
_PLACEHOLDER = re.compile(r"REPLACE_(?:WITH|ME)|CHANGE_?ME|YOUR_[A-Z]|<[A-Za-z][\w .-]*>|\bTODO\b|\bFIXME\b")
_ZERO_ID = re.compile(r"(?<![0-9a-f])([0-9a-f])\1{39,}(?![0-9a-f])")
_FILES = many("paths or globs of launchers: shell scripts, or rendered command lines", text("a path or glob"))

Commands = tuple[str, Location, Sequence[Found]]
"""What a command line belongs to, where that stands, and its words."""


def _command_lines(case: Case, given: Parameters, *, serving: bool | None = None) -> Iterator[Commands]:
    """Those of the profiles asked for, or of all where nothing is asked for, and those of the launchers."""
    if "profiles" in given or "files" not in given:
        names = texts(given["profiles"]) if "profiles" in given else None
        for profile in case.profiles(names, serving=serving):
            yield f"profile {profile.name}", profile.at, command_line(case, profile)
    for pattern in texts(given.get("files")):
        paths = case.tree.glob(pattern)
        if not paths:
            fix = "correct the path, or add the file"
            raise NothingError(Code.NOTHING_EVALUATED, f"no file matches {pattern}", at=case.at, fix=fix)
        for path in paths:
            script = case.files.parsed(path, LOCATORS["args"])
            assert isinstance(script, Script)
            words = [Found(word.shown, Location(path, word.line, word.column)) for it in script.commands for word in it.words]
            yield path, Location(path, 1), words


class CommandResolved(Checker):
    """Looks into rendered command lines for what a resolver left over."""

    name = "config.command-resolved"
    rule = "Every command line has each argument of its kind once, no placeholder and no made-up id."
    ids = ("CF-06",)
    parameters = fields(
        profiles=profiles(),
        files=_FILES,
        once=many("flags that stand exactly once; `--kv-transfer-config` by default", text("a flag"), minimum=0),
        placeholders=many("regular expressions of further placeholders", text("a regular expression")),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each placeholder and id, and one for each flag that stands twice or not at all."""
        lines = list(_command_lines(case, given))
        once = texts(given["once"]) if "once" in given else list(_ONCE)
        own = [case.expression(pattern) for pattern in texts(given.get("placeholders"))]
        findings = [finding for line in lines for finding in (*self._counted(line, once), *self._left_over(line[2], own))]
        return Result(len(lines), tuple(findings))

    def _counted(self, line: Commands, once: Sequence[str]) -> Iterator[Finding]:
        whose, at, words = line
        for flag in once:
            found = [word for name, word in flags(words) if name == strip_flag(flag)]
            if not found:
                yield self.violation(at, required=f"{flag} once in {whose}", observed="none", fix=f"give {flag}")
            for word in found[1:]:
                required = f"{flag} once; the first is at line {found[0].at.line}"
                yield self.violation(word.at, required=required, observed=f"{flag} again", fix="keep one")

    def _left_over(self, words: Sequence[Found], own: Sequence[re.Pattern[str]]) -> Iterator[Finding]:
        for word in words:
            text = str(word.value)
            if any(pattern.search(text) for pattern in (_PLACEHOLDER, *own)):
                yield self.violation(word.at, required="a value", observed=f"the placeholder {shown(text)}", fix="write the value")
            elif _ZERO_ID.search(text):
                required = "the id of something that exists"
                yield self.violation(word.at, required=required, observed=shown(text), fix="write the real id")


class FlagsForbidden(Checker):
    """Looks for flags that a class of profiles may not have."""

    name = "config.flags-forbidden"
    rule = "No command line of the class has a forbidden flag."
    ids = ("CF-10",)
    parameters = fields(
        "flags",
        **{"class": choice("the class of profiles; `serving` by default", "serving", "research", "any")},
        flags=many("the flags that are forbidden", text("a flag")),
        profiles=profiles(),
        files=_FILES,
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each forbidden flag."""
        wanted = str(given.get("class", "serving"))
        lines = list(_command_lines(case, given, serving=None if wanted == "any" else wanted == "serving"))
        forbidden = {strip_flag(flag) for flag in texts(given["flags"])}
        found = [(whose, name, word) for whose, _, words in lines for name, word in flags(words) if name in forbidden]
        return Result(len(lines), tuple(self._forbidden(whose, name, word, wanted) for whose, name, word in found))

    def _forbidden(self, whose: str, name: str, word: Found, wanted: str) -> Finding:
        required = f"{name} in no {'' if wanted == 'any' else f'{wanted} '}profile"
        fix = f"remove {name} from {whose}, or keep it in a profile of class research"
        return self.violation(word.at, required=required, observed=shown(word.value), fix=fix)
