"""Which logs and which sets of witnesses are believed (C2SP tlog-policy).

    log example.com/log+5a8f...+AeHT...
    witness X1 witness.example/x1+...
    witness X2 witness.example/x2+...
    group X 2 X1 X2
    quorum X

A name stands for a witness or a group and means nothing outside the file. Each name is a member of one group at most, and each key
stands in one line only: so no witness counts twice, whatever it is called.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location, RefusedError
from countermark.ledger.cosignature import Cosignature, CosignerKey
from countermark.ledger.note import Checkpoint, VerifierKey, check_signed
from countermark.ledger.signed_note import SignedNote

MAX_POLICY_BYTES: Final = 1 << 20
MAX_LINES: Final = 4096

_FORBIDDEN: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_NONE: Final = b"none"
_THRESHOLD: Final = re.compile(rb"[1-9][0-9]{0,3}\Z")


_Key = TypeVar("_Key", VerifierKey, CosignerKey)


@dataclass(frozen=True, slots=True)
class Group:
    """A group has witnessed a checkpoint when `threshold` of its members have."""

    threshold: int
    members: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Witnessed:
    """A checkpoint that satisfies a policy, with the cosignatures of the policy's witnesses that hold, in the policy's order."""

    checkpoint: Checkpoint
    cosignatures: tuple[Cosignature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The key names of those witnesses."""
        return tuple(dict.fromkeys(item.key.name for item in self.cosignatures))


@dataclass(frozen=True, slots=True)
class WitnessPolicy:
    """The policy of one file. `quorum` is the name of a witness or group, none for `quorum none`."""

    logs: tuple[VerifierKey, ...]
    witnesses: Mapping[bytes, CosignerKey]
    groups: Mapping[bytes, Group]
    quorum: bytes | None
    source: str

    @staticmethod
    def parse(data: bytes, source: str) -> "WitnessPolicy":
        """Read a policy file. `InputError` MALFORMED names the line, UNSUPPORTED a key of another type."""
        reader = _Reader(source)
        if len(data) > MAX_POLICY_BYTES or data.count(b"\n") > MAX_LINES:
            raise reader.error("it is longer than any policy")
        for number, line in enumerate(data.split(b"\n"), 1):
            reader.line(number, line)
        return reader.policy()

    def open(self, note: str | bytes) -> Witnessed:
        """The checkpoint of a note, if one of the logs signed it and the quorum cosigned it.

        `RefusedError` UNTRUSTED otherwise, and the errors of `check_signed` and `CosignerKey.cosignatures` for lines that do not hold.
        """
        signed = SignedNote.parse(note)
        checkpoint = self._signed_by_a_log(signed)
        found = tuple(item for key in self.witnesses.values() for item in key.cosignatures(signed))
        if not self.satisfied({item.key for item in found}):
            names = ", ".join(dict.fromkeys(item.key.name for item in found)) or "none"
            raise RefusedError(
                Code.UNTRUSTED,
                f"the witnesses of this checkpoint are no quorum: {names}",
                at=Location(self.source),
                fix="have it cosigned by the witnesses that the policy asks for",
            )
        return Witnessed(checkpoint, found)

    def satisfied(self, keys: Iterable[CosignerKey]) -> bool:
        """Whether cosignatures by these keys are a quorum."""
        present = set(keys)
        return self.quorum is None or self._witnessed(self.quorum, {name for name, key in self.witnesses.items() if key in present})

    def vouched_s(self, found: Iterable[Cosignature]) -> int | None:
        """When a whole quorum had cosigned, in POSIX seconds: one witness with a later time makes nothing newer. None without a quorum."""
        newest: dict[CosignerKey, int] = {}
        for item in found:
            newest[item.key] = max(item.time_s, newest.get(item.key, 0))
        present: set[CosignerKey] = set()
        for time_s, key in sorted(((time_s, key) for key, time_s in newest.items()), key=lambda each: -each[0]):
            present.add(key)
            if self.quorum is not None and self.satisfied(present):
                return time_s
        return None

    def _witnessed(self, name: bytes, present: set[bytes]) -> bool:
        group = self.groups.get(name)
        if group is None:
            return name in present
        return sum(self._witnessed(member, present) for member in group.members) >= group.threshold

    def _signed_by_a_log(self, note: SignedNote) -> Checkpoint:
        """The checkpoint by the log key that signed it; a bad line in the name of any known log rejects the note."""
        signers = [key for key in self.logs if any(note.by(key.name, key.key_id))]
        for key in signers or self.logs[:1]:
            checkpoint = check_signed(note, key)
        if not self.logs:
            fix = "name the log's key in a log line of the policy"
            raise RefusedError(Code.UNTRUSTED, "the policy names no log", at=Location(self.source), fix=fix)
        return checkpoint


class _Reader:
    """Takes the lines of a policy file in order; what a line refers to stands before it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._number = 0
        self._logs: list[VerifierKey] = []
        self._witnesses: dict[bytes, CosignerKey] = {}
        self._groups: dict[bytes, Group] = {}
        self._members: set[bytes] = set()
        self._quorum: list[bytes] = []

    def line(self, number: int, line: bytes) -> None:
        """Take one line."""
        self._number = number
        if _FORBIDDEN.search(line):
            raise self.error("control characters other than tab and newline have no place in a policy")
        words = [word for word in re.split(rb"[ \t]+", line) if word]
        if not words or words[0].startswith(b"#"):
            return
        match words:
            case [b"log", vkey] | [b"log", vkey, _]:
                self._log(vkey)
            case [b"witness", name, vkey] | [b"witness", name, vkey, _]:
                self._witness(name, vkey)
            case [b"group", name, threshold, *members] if members:
                self._group(name, threshold, members)
            case [b"quorum", name]:
                self._set_quorum(name)
            case _:
                raise self.error("a line is log, witness, group or quorum, with what belongs to it")

    def policy(self) -> WitnessPolicy:
        """The policy, once all lines are taken."""
        if len(self._quorum) != 1:
            self._number = 0
            raise self.error("a policy has exactly one quorum line")
        quorum = None if self._quorum == [_NONE] else self._quorum[0]
        return WitnessPolicy(tuple(self._logs), self._witnesses, self._groups, quorum, self._source)

    def _log(self, vkey: bytes) -> None:
        key = self._parsed(VerifierKey.parse, vkey)
        if any(key.public == other.public for other in self._logs):
            raise self.error("two log lines have one key")
        self._logs.append(key)

    def _witness(self, name: bytes, vkey: bytes) -> None:
        key = self._parsed(CosignerKey.parse, vkey)
        if any(key.public == other.public for other in self._witnesses.values()):
            raise self.error("two witness lines have one key")
        self._witnesses[self._new(name)] = key

    def _group(self, name: bytes, threshold: bytes, members: list[bytes]) -> None:
        new = self._new(name)
        for member in members:
            if member not in self._witnesses and member not in self._groups:
                raise self.error(f"{_shown(member)} is no witness or group of a line above")
            if member in self._members:
                raise self.error(f"{_shown(member)} is a member twice")
            self._members.add(member)
        self._groups[new] = Group(self._number_of(threshold, len(members)), tuple(members))

    def _number_of(self, threshold: bytes, count: int) -> int:
        words = {b"any": 1, b"all": count}
        number = words.get(threshold) or (int(threshold) if _THRESHOLD.match(threshold) else 0)
        if not 1 <= number <= count:
            raise self.error(f"{_shown(threshold)} is not all, any, or a number from 1 to {count}")
        return number

    def _set_quorum(self, name: bytes) -> None:
        if name != _NONE and name not in self._witnesses and name not in self._groups:
            raise self.error(f"{_shown(name)} is no witness or group of a line above")
        self._quorum.append(name)

    def _new(self, name: bytes) -> bytes:
        if name == _NONE or name in self._witnesses or name in self._groups:
            raise self.error(f"the name {_shown(name)} is taken")
        return name

    def _parsed(self, read: Callable[[str], _Key], vkey: bytes) -> _Key:
        try:
            return read(vkey.decode())
        except UnicodeDecodeError:
            raise self.error("a verifier key is UTF-8") from None
        except InputError as error:
            raise InputError(error.code, error.message, at=self._at(), fix=error.fix) from None

    def _at(self) -> Location:
        return Location(self._source, self._number or None)

    def error(self, message: str) -> InputError:
        """What is wrong with the line just taken."""
        return InputError(Code.MALFORMED, message, at=self._at(), fix="write the policy as c2sp.org/tlog-policy has it")


def _shown(name: bytes) -> str:
    return repr(name.decode("utf-8", "backslashreplace"))
