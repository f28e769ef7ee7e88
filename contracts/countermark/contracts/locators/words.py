"""Command lines, split into words as a POSIX shell splits them (2.3 Token Recognition), each word with its place; nothing is run.

Quotes, continued lines, comments, here-documents and arrays are understood; loops and branches are not followed.
"""

import re
from dataclasses import dataclass, field

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location

_HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
LITERAL_DOLLAR = "\ue000"
"""Stands for a `$` in single quotes or behind a backslash; a private-use character, which commands do not have for anything else."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word without its quotes, and where it begins; `dynamic` when a command substitution is a part of it."""

    text: str
    line: int
    column: int
    dynamic: bool = False

    @property
    def shown(self) -> str:
        """The word as a reader sees it."""
        return self.text.replace(LITERAL_DOLLAR, "$")


@dataclass(frozen=True, slots=True)
class Command:
    """The words between two separators: one simple command, or the elements of an array."""

    words: tuple[Word, ...]

    @property
    def line(self) -> int:
        """The line of its first word."""
        return self.words[0].line


def split(text: str, path: str, first_line: int = 1) -> tuple[Command, ...]:
    """The commands of a shell text in their order; `InputError` with the place of a quote or substitution that is not closed."""
    return _Lexer(text, path, first_line).commands()


@dataclass(slots=True)
class _Lexer:
    text: str
    path: str
    line: int
    at: int = 0
    line_start: int = 0
    words: list[Word] = field(default_factory=list)
    found: list[Command] = field(default_factory=list)
    heredocs: list[tuple[bool, str]] = field(default_factory=list)

    def commands(self) -> tuple[Command, ...]:
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == "\n":
                self._end_command()
                self._newline()
                self._skip_heredocs()
            elif sign in " \t\r" or self.text.startswith("\\\n", self.at) or self.text.startswith("\\\r\n", self.at):
                self._blank()
            elif sign == "#":
                self.at = self._end_of_line()
            elif sign in ";&|()":
                self._end_command()
                self.at += 1
            elif sign in "<>":
                self._redirection()
            else:
                self._word()
        self._end_command()
        return tuple(self.found)

    def _end_command(self) -> None:
        if self.words:
            self.found.append(Command(tuple(self.words)))
            self.words = []

    def _newline(self) -> None:
        self.at += 1
        self.line += 1
        self.line_start = self.at

    def _blank(self) -> None:
        if self.text[self.at] == "\\":
            self.at = self.text.index("\n", self.at)
            self._newline()
        else:
            self.at += 1

    def _end_of_line(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def _redirection(self) -> None:
        heredoc = _HEREDOC.match(self.text, self.at)
        if heredoc:
            self.heredocs.append((bool(heredoc[1]), heredoc[3]))
            self.at = heredoc.end()
            return
        while self.at < len(self.text) and self.text[self.at] in "<>&":
            self.at += 1

    def _skip_heredocs(self) -> None:
        for indented, mark in self.heredocs:
            while self.at < len(self.text):
                line = self.text[self.at : self._end_of_line()].rstrip("\r")
                self.at = self._end_of_line()
                if self.at < len(self.text):
                    self._newline()
                if (line.lstrip("\t") if indented else line) == mark:
                    break
        self.heredocs = []

    def _word(self) -> None:
        line, column = self.line, self.at - self.line_start + 1
        parts: list[str] = []
        dynamic = False
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|()<>":
            sign = self.text[self.at]
            if sign == "\\":
                parts.append(self._escaped())
            elif sign == "'" or self.text.startswith("$'", self.at):
                self.at += sign == "$"
                parts.append(self._take("'", line, column).replace("$", LITERAL_DOLLAR))
            elif sign == '"':
                quoted, runs = self._double_quoted(line, column)
                parts.append(quoted)
                dynamic |= runs
            elif sign == "`" or self.text.startswith("$(", self.at):
                self._substitution(line, column)
                dynamic = True
            elif self.text.startswith("${", self.at):
                parts.append(self._braced(line, column))
            else:
                parts.append(sign)
                self.at += 1
        self.words.append(Word("".join(parts), line, column, dynamic))

    def _escaped(self) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 1
        if following == "\n":
            self._newline()
            return ""
        self.at += 1
        return LITERAL_DOLLAR if following == "$" else following

    def _take(self, mark: str, line: int, column: int) -> str:
        end = self.text.find(mark, self.at + 1)
        if end < 0:
            raise self._unclosed(line, column, mark)
        taken = self.text[self.at + 1 : end]
        self._advance(end + 1)
        return taken

    def _advance(self, end: int) -> None:
        newlines = self.text.count("\n", self.at, end)
        if newlines:
            self.line += newlines
            self.line_start = self.text.rindex("\n", 0, end) + 1
        self.at = end

    def _double_quoted(self, line: int, column: int) -> tuple[str, bool]:
        parts: list[str] = []
        dynamic = False
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            sign = self.text[self.at]
            if sign == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", '"', "\\", "`", "\n"):
                parts.append(self._escaped())
            elif sign == "`" or self.text.startswith("$(", self.at):
                self._substitution(line, column)
                dynamic = True
            else:
                parts.append(sign)
                self._advance(self.at + 1)
        if self.at >= len(self.text):
            raise self._unclosed(line, column, '"')
        self.at += 1
        return "".join(parts), dynamic

    def _braced(self, line: int, column: int) -> str:
        end = self.text.find("}", self.at)
        while end >= 0 and self.text.count("${", self.at, end) > self.text.count("}", self.at, end + 1):
            end = self.text.find("}", end + 1)
        if end < 0:
            raise self._unclosed(line, column, "${")
        taken = self.text[self.at : end + 1]
        self._advance(end + 1)
        return taken.replace('"', "")

    def _substitution(self, line: int, column: int) -> None:
        if self.text[self.at] == "`":
            self._take("`", line, column)
            return
        depth, end = 0, self.at + 1
        while end < len(self.text):
            depth += (self.text[end] == "(") - (self.text[end] == ")")
            end += 1
            if not depth:
                self._advance(end)
                return
        raise self._unclosed(line, column, "$(")

    def _unclosed(self, line: int, column: int, mark: str) -> InputError:
        return InputError(Code.SCHEMA_INVALID, f"a {mark} is not closed", at=Location(self.path, line, column), fix="close it")
