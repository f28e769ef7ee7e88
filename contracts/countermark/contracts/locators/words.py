"""Command lines, split into words as a POSIX shell splits them (2.3 Token Recognition), each word with its place; nothing is run.

Quotes, continued lines, comments, here-documents, arrays, arithmetic and command substitutions are understood; loops and branches are
not followed. A here-document that a shell is given is its commands; one that is only shown is dropped; any other is one word that is
`opaque`, since what becomes of it no reader can tell.
"""

import re
from dataclasses import dataclass, field, replace

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location

_HEREDOC = re.compile(r"<<(-?)[ \t]*((?:\\.|'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|<>()'\"\\])+)")
_QUOTES = re.compile(r"['\"\\]")
_ARITHMETIC_END = "))"
_TO_PEOPLE = re.compile(r">>?\s*(?:&\s*[12]\b|/dev/(?:null|stdout|stderr|tty)\b)")
_SHOWING = frozenset({"echo", "printf", "cat"})
SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
LITERAL_DOLLAR = "\ue000"
"""Stands for a `$` in single quotes or behind a backslash; a private-use character, which commands do not have for anything else."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word without its quotes, and where it begins; `dynamic` when a command substitution is a part of it, `opaque` when it is a
    text of which no reader can tell what becomes of it, `braces` when it has a brace that the shell may expand."""

    text: str
    line: int
    column: int
    dynamic: bool = False
    opaque: bool = False
    braces: bool = False

    @property
    def shown(self) -> str:
        """The word as a reader sees it."""
        return self.text.replace(LITERAL_DOLLAR, "$")


@dataclass(frozen=True, slots=True)
class Command:
    """The words between two separators: one simple command, or the elements of an array. `shows` says that it does nothing but show its
    words to people; `computes` that it is arithmetic, in one word."""

    words: tuple[Word, ...]
    shows: bool = False
    computes: bool = False

    @property
    def line(self) -> int:
        """The line of its first word."""
        return self.words[0].line


def split(text: str, path: str, first_line: int = 1, first_column: int = 1) -> tuple[Command, ...]:
    """The commands of a shell text in their order, those of substitutions before the command that has them; `InputError` with the place
    of a quote, substitution or here-document that is not closed."""
    return _Lexer(text, path, first_line, line_start=1 - first_column).commands()


@dataclass(frozen=True, slots=True)
class _HereDocument:
    indented: bool
    quoted: bool
    mark: str
    line: int
    column: int


@dataclass(slots=True)
class _Lexer:
    text: str
    path: str
    line: int
    at: int = 0
    line_start: int = 0
    inside: bool = False
    words: list[Word] = field(default_factory=list)
    found: list[Command] = field(default_factory=list)
    heredocs: list[_HereDocument] = field(default_factory=list)
    on_line: list[Command] = field(default_factory=list)
    writes: bool = False

    def commands(self) -> tuple[Command, ...]:
        while self.at < len(self.text) and not (self.inside and self.text[self.at] == ")"):
            self._next(self.text[self.at])
        self._end_command()
        if self.heredocs:
            raise self._unclosed_heredoc(self.heredocs[0])
        return tuple(self.found)

    def _next(self, sign: str) -> None:
        if sign == "\n":
            self._end_command()
            self._newline()
            self._heredocs()
        elif sign in " \t\r" or self.text.startswith("\\\n", self.at) or self.text.startswith("\\\r\n", self.at):
            self._blank()
        elif sign == "#":
            self.at = self._end_of_line()
        elif self.text.startswith("((", self.at) and self._closed_arithmetic():
            self._arithmetic()
        elif sign in ";&|()":
            self._end_command(piped=sign == "|" and self.text[self.at : self.at + 2] != "||")
            self.at += 2 if self.text[self.at : self.at + 2] in ("||", "&&") else 1
            if sign == "(" and self.inside:
                self._nested(self.at)
        elif sign in "<>":
            self._redirection()
        else:
            self._word()

    def _end_command(self, *, piped: bool = False) -> None:
        if self.words:
            shows = self.words[0].text in _SHOWING and not (piped or self.writes or self.inside)
            self.found.append(Command(tuple(self.words), shows=shows and not any(word.text == "-v" for word in self.words)))
            self.on_line.append(self.found[-1])
            self.words = []
        self.writes = False

    def _nested(self, start: int) -> None:
        """The commands from `start` to the `)` that closes them, which is read over."""
        line, column = self.line, self.at - self.line_start + 1
        self._advance(start)
        inner = _Lexer(self.text, self.path, self.line, self.at, self.line_start, inside=True)
        self.found.extend(inner.commands())
        if inner.at >= len(self.text):
            raise self._unclosed(line, column, "(")
        self.at, self.line, self.line_start = inner.at + 1, inner.line, inner.line_start

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

    def _closed_arithmetic(self) -> bool:
        return _after_arithmetic(self.text, self.at) > 0

    def _arithmetic(self) -> None:
        """`((…))` as one command, for the names that it may set."""
        end = _after_arithmetic(self.text, self.at)
        self._end_command()
        word = Word(self.text[self.at + 2 : end - 2], self.line, self.at - self.line_start + 1)
        self.found.append(Command((word,), computes=True))
        self._advance(end)

    def _redirection(self) -> None:
        if self.text.startswith("<<<", self.at):
            self.at += 3
            return
        if self.text.startswith("<<", self.at):
            self._here_document()
            return
        if self.text[self.at] == ">" and not _TO_PEOPLE.match(self.text, self.at):
            self.writes = True
        while self.at < len(self.text) and self.text[self.at] in "<>&":
            self.at += 1

    def _here_document(self) -> None:
        line, column = self.line, self.at - self.line_start + 1
        found = _HEREDOC.match(self.text, self.at)
        if not found:
            raise InputError(Code.SCHEMA_INVALID, "<< without a word", at=Location(self.path, line, column), fix="name its end")
        mark = _QUOTES.sub("", found[2])
        self.heredocs.append(_HereDocument(bool(found[1]), mark != found[2], mark, line, column))
        self.at = found.end()

    def _heredocs(self) -> None:
        """The bodies of the here-documents of the line that ended."""
        run_by_a_shell = any(word.text.rpartition("/")[2] in SHELLS for command in self.on_line for word in command.words)
        shown = all(command.shows for command in self.on_line)
        for document in self.heredocs:
            start = self.line
            body = self._body(document)
            if run_by_a_shell:
                self.found.extend(split(body, self.path, start))
            elif not shown:
                self.found.append(Command((Word(body, start, 1, opaque=True),)))
        self.heredocs, self.on_line = [], []

    def _body(self, document: _HereDocument) -> str:
        lines: list[str] = []
        while self.at < len(self.text):
            line = self.text[self.at : self._end_of_line()].rstrip("\r")
            self.at = self._end_of_line()
            if self.at < len(self.text):
                self._newline()
            if (line.lstrip("\t") if document.indented else line) == document.mark:
                body = "\n".join(lines)
                return body.replace("$", LITERAL_DOLLAR) if document.quoted else body
            lines.append(line)
        raise self._unclosed_heredoc(document)

    def _word(self) -> None:
        line, column = self.line, self.at - self.line_start + 1
        parts: list[str] = []
        dynamic = braces = False
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|()<>":
            sign = self.text[self.at]
            if sign == "\\":
                parts.append(self._escaped())
            elif sign == "'" or self.text.startswith("$'", self.at):
                coded = sign == "$"
                self.at += coded
                taken = self._take("'", line, column)
                dynamic |= coded and "\\" in taken
                parts.append(taken.replace("$", LITERAL_DOLLAR))
            elif sign == '"':
                quoted, runs = self._double_quoted(line, column)
                parts.append(quoted)
                dynamic |= runs
            elif sign == "`" or self.text.startswith("$(", self.at):
                self._substitution(line, column)
                dynamic = True
            elif self.text.startswith("${", self.at):
                parts.append(self._braced(line, column))
                dynamic |= "$(" in parts[-1] or "`" in parts[-1]
            else:
                braces |= sign == "{"
                parts.append(sign)
                self.at += 1
        self.words.append(Word("".join(parts), line, column, dynamic, braces=braces))

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
            taken = self._take("`", line, column)
            self.found.extend(replace(command, shows=False) for command in split(taken, self.path, line, column + 1))
        elif self.text.startswith("$((", self.at) and (end := _after_arithmetic(self.text, self.at + 1)) > 0:
            self.found.append(Command((Word(self.text[self.at + 3 : end - 2], line, column),), computes=True))
            self._advance(end)
        else:
            self._nested(self.at + 2)

    def _unclosed_heredoc(self, document: _HereDocument) -> InputError:
        return self._unclosed(document.line, document.column, f"here-document <<{document.mark}")

    def _unclosed(self, line: int, column: int, mark: str) -> InputError:
        return InputError(Code.SCHEMA_INVALID, f"a {mark} is not closed", at=Location(self.path, line, column), fix="close it")


def _after_arithmetic(text: str, start: int) -> int:
    """The end of the `((…))` that begins at `start`; 0 when these are two subshells, or nothing closes it."""
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 1 and text[index] == ")":
            return index + 2 if text.startswith(_ARITHMETIC_END, index) else 0
        if depth <= 0:
            return 0
    return 0
