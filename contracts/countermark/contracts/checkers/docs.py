"""`docs.commands` (catalogue CF-11): a quickstart shows every command that is required, in order, and none that cannot be typed."""

from collections.abc import Iterator, Mapping, Sequence

from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import fields, flag, many, table, text, texts
from countermark.contracts.locators.markdown import Page
from countermark.contracts.locators.registry import LOCATORS
from countermark.contracts.locators.shell import strip_flag
from countermark.contracts.locators.words import Command


class DocsCommands(Checker):
    """Compares the fenced commands of a document with those that the contract names."""

    name = "docs.commands"
    rule = "The document shows every required command, in order, and its commands use only flags that their program has."
    ids = ("CF-11",)
    parameters = fields(
        "file",
        "requires",
        file=text("the Markdown file"),
        requires=many("labels of commands of the contract, in the order that a reader needs them", text("a label"), minimum=0),
        ordered=flag("whether the order matters; true by default"),
        flags=table("the flags that a program has, by its name", many("flags", text("a flag"), minimum=0)),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each command that is missing or out of order, and one for each flag that its program does not have."""
        wanted = [(label, case.command(label)) for label in texts(given["requires"])]
        path = str(given["file"])
        page = case.files.parsed(path, LOCATORS["markdown"])
        assert isinstance(page, Page)
        shown = list(page.commands())
        missing = list(self._missing(path, wanted, shown, ordered=given.get("ordered") is not False))
        unknown = [finding for command in shown for finding in self._unknown(path, command, given.get("flags"))]
        return Result(len(wanted), (*missing, *unknown))

    def _missing(
        self, path: str, wanted: Sequence[tuple[str, tuple[str, ...]]], shown: Sequence[Command], *, ordered: bool
    ) -> Iterator[Finding]:
        """A command that is gone belongs behind the one that is required before it, and there it is missing."""
        after = 0
        for label, argv in wanted:
            places = [index for index, command in enumerate(shown) if _shows(command, argv)]
            later = [index for index in places if index >= after] if ordered else places
            line = shown[after - 1].line if after else 1
            if later:
                after = later[0] + 1 if ordered else after
            elif places:
                at, fix = Location(path, shown[places[0]].line), f"move it behind line {line}"
                yield self.violation(at, required=f"{label} behind line {line}", observed="before it", fix=fix)
            else:
                required = f"a fenced command {label}: {' … '.join(argv)}"
                yield self.violation(
                    Location(path, line), required=required, observed="none", fix=f"show the command {label} behind this line"
                )

    def _unknown(self, path: str, command: Command, flags: JsonValue) -> Iterator[Finding]:
        programs: Mapping[str, JsonValue] = flags if isinstance(flags, dict) else {}
        program = next((name for name in programs for word in command.words if _is(word.shown, name)), None)
        known = {strip_flag(flag) for flag in texts(programs[program])} if program else set()
        for word in command.words if program else ():
            if word.text.startswith("--") and word.text != "--" and strip_flag(word.text) not in known:
                required = f"a flag that {program} has"
                yield self.violation(
                    Location(path, word.line, word.column), required=required, observed=word.shown, fix="write the flag as it is"
                )


def _shows(command: Command, argv: Sequence[str]) -> bool:
    """Whether a command has all tokens in their order."""
    words = iter(command.words)
    return all(any(_is(word.shown, token) for word in words) for token in argv)


def _is(word: str, token: str) -> bool:
    """Whether a word is a token: the same, or for a token that ends in `=` begun by it, or for a path the URL that ends in it."""
    if token.endswith("="):
        return word.lstrip("-").startswith(token.lstrip("-"))
    if token.startswith("/"):
        return word.partition("?")[0].partition("#")[0].rstrip("/").endswith(token.rstrip("/"))
    return word == token or word.rpartition("/")[2] == token
