"""Commands inside the words of commands: the texts behind `sh -c` and `eval`, and what braces expand to."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.words import LITERAL_DOLLAR, SHELLS, Command, Word, split

_RUNS_A_TEXT = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MAX_DEPTH = 8


def nested(commands: Sequence[Command], path: str, depth: int = 0) -> Iterator[Command]:
    """Each command, and behind it those of the texts that it hands to a shell; such a text is no word of its command any more."""
    for command in commands:
        texts = texts_run(command)
        yield Command(tuple(word for word in command.words if word not in texts), command.shows, command.computes) if texts else command
        for word in texts:
            if depth >= _MAX_DEPTH:
                at = Location(path, word.line, word.column)
                raise InputError(Code.TOO_LARGE, "commands are nested too deep", at=at, fix="write the command out")
            inner = split(word.text.replace(LITERAL_DOLLAR, "$"), path, word.line, word.column + 1)
            yield from nested([_unknown(own) for own in inner] if LITERAL_DOLLAR in word.text else inner, path, depth + 1)


def texts_run(command: Command) -> list[Word]:
    """The words of a command that a shell reads as commands: an evaluated text, and what stands behind `-c`."""
    words = command.words
    if not words:
        return []
    evaluated = list(words[1:]) if words[0].text == "eval" and len(words) == 2 else []
    shell = next((index for index, word in enumerate(words) if word.text.rpartition("/")[2] in SHELLS), len(words))
    option = next((index for index in range(shell + 1, len(words)) if _RUNS_A_TEXT.fullmatch(words[index].text)), len(words))
    return evaluated or list(words[option + 1 : option + 2])


def _unknown(command: Command) -> Command:
    """The names in a text in single quotes are those of the shell that reads it, which no assignment of the script sets."""
    return replace(command, words=tuple(replace(word, dynamic=word.dynamic or "$" in word.text) for word in command.words))


def expansions(word: Word) -> list[str]:
    """What the braces of a word come to (bash, "Brace Expansion"); the word itself where it has none."""
    done: list[str] = []
    texts = [word.text]
    while word.braces and texts and len(texts) + len(done) < 64:
        text = texts.pop()
        found = _BRACES.search(text)
        if found:
            texts.extend(text[: found.start()] + part + text[found.end() :] for part in found[1].split(","))
        else:
            done.append(text)
    return done + texts
