"""`publish.no-secrets` (catalogue CF-14): nothing private is published, neither in files nor in their names.

What is found is told by its kind and its first characters, so that a report does not publish it again. Addresses that are nobody's
(loopback, unspecified, documentation), the home folders of containers and well-known examples are left alone.
"""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

from countermark.attestations.codes import Code
from countermark.attestations.errors import Location, NothingError
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import fields, many, text, texts

_SHOWN = 4
_ADDRESS = re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.]|\.\w)")
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\\\?Users\\\\?)([A-Za-z][\w.-]*)")
_HOST = re.compile(
    r"(?<![\w.@/-])(?!host\.docker|self\.|cls\.|this\.|threading\.)"
    r"[A-Za-z0-9][\w-]*(?:\.[\w-]+)*\.(?:local|lan|internal|intranet|home\.arpa)(?![\w.(-])"
)
_KEYS = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----")
_TOKENS = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,}|hf_[A-Za-z0-9]{30,}|sk-[A-Za-z0-9_-]{32,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[A-Za-z0-9-]{20,}|glpat-[A-Za-z0-9_-]{20,}|nvapi-[A-Za-z0-9_-]{40,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
)
_ASSIGNED = re.compile(
    r"(?i)(?<![A-Za-z])(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)[\"']?[ \t]*[:=][ \t]*[\"']?([^\s\"',}<>${]{12,})"
)
_EXAMPLE_USERS = frozenset({"user", "username", "you", "your-user", "name", "me", "ubuntu", "app", "runner", "vllm", "nonroot", "example"})
_SHARED = ipaddress.ip_network("100.64.0.0/10")
_NOBODYS = tuple(
    map(ipaddress.ip_network, ("127.0.0.0/8", "0.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "255.255.255.255/32"))
)


@dataclass(frozen=True, slots=True)
class Secret:
    """Something private: what kind of thing it is, the text, and its offset."""

    kind: str
    text: str
    start: int

    @property
    def shown(self) -> str:
        """The kind and the beginning."""
        return f"{self.kind}: {self.text[:_SHOWN]}…"


def secrets(text: str) -> Iterator[Secret]:
    """What is private in a text."""
    for found in _ADDRESS.finditer(text):
        if _is_private(found.group()):
            yield Secret("a private address", found.group(), found.start())
    for found in _HOME.finditer(text):
        if found[1].lower() not in _EXAMPLE_USERS:
            yield Secret("a home folder", found.group(), found.start())
    for kind, pattern in (("a host name", _HOST), ("a private key", _KEYS), ("a token", _TOKENS)):
        for found in pattern.finditer(text):
            yield Secret(kind, found.group(), found.start())
    for found in _ASSIGNED.finditer(text):
        if _looks_random(found[1]) and not _TOKENS.search(found[1]):
            yield Secret("a password or token", found[1], found.start(1))


def _is_private(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    if any(address in nobodys for nobodys in _NOBODYS):
        return False
    return address.is_private or address.is_link_local or address in _SHARED


def _looks_random(text: str) -> bool:
    """A value that was made up to be secret has letters of both cases and digits; a word, a path, a version and a digest have not."""
    return all(re.search(kind, text) for kind in ("[A-Z]", "[a-z]", "[0-9]")) and re.search(r"[/.\\]", text) is None


class NoSecrets(Checker):
    """Scans files and their names."""

    name = "publish.no-secrets"
    rule = "No published file or file name holds a private address, home folder, host name, key or token."
    ids = ("CF-14",)
    parameters = fields(
        "files",
        files=many("paths or globs of what is published", text("a path or glob"), minimum=0),
        allow=many("regular expressions of texts that may stand", text("a regular expression")),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each private text."""
        allowed = [case.expression(pattern) for pattern in texts(given.get("allow"))]
        patterns = texts(given["files"])
        if not patterns:
            return Result(0)
        paths = dict.fromkeys(path for pattern in patterns for path in case.tree.glob(pattern))
        if not paths:
            message = f"no file matches {' or '.join(patterns)}"
            raise NothingError(Code.NOTHING_EVALUATED, message, at=case.at, fix="correct the paths")
        found = [(at, it) for path in paths for at, it in _scan(path, case.tree.read(path))]
        return Result(len(paths), tuple(self._private(at, it) for at, it in found if not any(own.search(it.text) for own in allowed)))

    def _private(self, at: Location, it: Secret) -> Finding:
        fix = "remove it, and publish the file anew; or allow this text in the contract if it is nobody's"
        return self.violation(at, required="nothing private", observed=it.shown, fix=fix)


def _scan(path: str, data: bytes) -> Iterator[tuple[Location, Secret]]:
    for it in secrets(path.rpartition("/")[2]):
        yield Location(path, 1), it
    if b"\0" in data[:8192]:
        return
    text = data.decode("utf-8", errors="replace")
    for it in secrets(text):
        line = text.count("\n", 0, it.start) + 1
        yield Location(path, line, it.start - text.rfind("\n", 0, it.start)), it
