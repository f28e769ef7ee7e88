"""Who may say what: principals, their keys and identities, roles, and the predicate types that each role makes.

A principal is a person or a machine. Thresholds, separation of duties and "a different signer" count principals, never keys,
certificates or key ids.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import Document, load_document, read_file
from countermark.attestations.errors import InputError
from countermark.attestations.keys import PublicKey, read_key_file
from countermark.attestations.predicate_types import predicate_uri
from countermark.attestations.times import Instant


@dataclass(frozen=True, slots=True)
class Revocation:
    """Why and since when a key is no longer believed: `retired`, `superseded` or `compromised`."""

    reason: str
    since: Instant


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A key of a principal and the time in which it may sign."""

    key: PublicKey
    not_before: Instant | None = None
    not_after: Instant | None = None
    revoked: Revocation | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """A keyless identity: subject alternative name and issuer, both compared exactly."""

    san: str
    issuer: str


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or machine with its keys and identities."""

    name: str
    keys: tuple[TrustedKey, ...] = ()
    keyless: tuple[Identity, ...] = ()


@dataclass(frozen=True, slots=True)
class Role:
    """A rule over principals: at least `k` of `members`."""

    name: str
    members: tuple[str, ...]
    k: int
    makes: frozenset[str]

    def met_by(self, principals: Iterable[str]) -> bool:
        """Whether these principals, counted once each, meet the rule."""
        return len(set(principals) & set(self.members)) >= self.k


@dataclass(frozen=True, slots=True)
class LogKey:
    """A ledger that this policy believes: its origin and its C2SP verifier key."""

    origin: str
    vkey: str


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """The trust policy of a file, with its digest, which every decision records."""

    id: str
    version: int
    digest: Digest
    single_operator: bool
    principals: Mapping[str, Principal]
    roles: Mapping[str, Role]
    separate: tuple[tuple[str, str], ...]
    logs: tuple[LogKey, ...]
    trusted_root: str | None
    source: str

    @classmethod
    def load(cls, path: Path, read_key: Callable[[Path], bytes] = read_key_file) -> Self:
        """Read a `trust.yaml` and the key files it names, relative to it. Raises `InputError`."""
        document = load_document(read_file(path), str(path), "TrustPolicy")
        return cls.of(document, lambda name: read_key(path.parent / name))

    @classmethod
    def of(cls, document: Document, read_key: Callable[[str], bytes]) -> Self:
        """Build from a validated document; `read_key` gives the bytes of a key file."""
        reader = _Reader(document, read_key)
        spec: dict[str, Any] = document.spec
        principals = {name: reader.principal(name, fields) for name, fields in spec["principals"].items()}
        reader.check_owners(principals.values())
        logs = tuple(LogKey(item["origin"], item["vkey"]) for item in spec["logs"])
        separate = tuple((first, second) for first, second in spec.get("separate", ()))
        return cls(
            document.id,
            document.version,
            document.digest,
            spec["single_operator"],
            principals,
            reader.roles(principals),
            separate,
            logs,
            spec.get("trusted_root"),
            document.source,
        )

    def keys(self) -> dict[bytes, PublicKey]:
        """Every public key of the policy by the 32 bytes of its fingerprint."""
        found = (trusted.key for principal in self.principals.values() for trusted in principal.keys)
        return {key.fingerprint.raw: key for key in found}

    def owner(self, fingerprint: Digest) -> tuple[Principal, TrustedKey] | None:
        """The principal that owns a key, and what the policy says of the key."""
        for principal in self.principals.values():
            for trusted in principal.keys:
                if trusted.key.fingerprint == fingerprint:
                    return principal, trusted
        return None

    def makers(self, predicate_type: str) -> list[Role]:
        """The roles that may make statements of this type."""
        return [role for role in self.roles.values() if predicate_type in role.makes]


class _Reader:
    def __init__(self, document: Document, read_key: Callable[[str], bytes]) -> None:
        self.document = document
        self.read_key = read_key

    def error(self, code: Code, pointer: str, message: str, fix: str) -> InputError:
        return InputError(code, message, at=self.document.at(pointer), fix=fix)

    def principal(self, name: str, fields: Mapping[str, Any]) -> Principal:
        keys = tuple(self.key(item, f"/spec/principals/{name}/keys/{n}") for n, item in enumerate(fields.get("keys", ())))
        keyless = tuple(Identity(item["san"], item["issuer"]) for item in fields.get("keyless", ()))
        return Principal(name, keys, keyless)

    def key(self, item: Mapping[str, Any], pointer: str) -> TrustedKey:
        key = PublicKey.from_pem(self.read_key(item["file"]), item["file"])
        if key.fingerprint.hex != item["spki_sha256"]:
            message = f"{item['file']} holds another key: its SPKI SHA-256 is {key.fingerprint.hex}"
            raise self.error(Code.BAD_DIGEST, f"{pointer}/spki_sha256", message, "put the right key file there, or correct spki_sha256")
        revoked = item.get("revoked")
        return TrustedKey(
            key,
            self.time(item.get("not_before"), f"{pointer}/not_before"),
            self.time(item.get("not_after"), f"{pointer}/not_after"),
            Revocation(revoked["reason"], Instant.parse(revoked["since"], at=self.document.at(pointer))) if revoked else None,
        )

    def time(self, text: str | None, pointer: str) -> Instant | None:
        return Instant.parse(text, at=self.document.at(pointer)) if text is not None else None

    def check_owners(self, principals: Iterable[Principal]) -> None:
        """One key or identity has one owner: under two names it would meet a threshold of two alone."""
        owners: dict[Digest | Identity, str] = {}
        for principal in principals:
            marks: list[Digest | Identity] = [*(trusted.key.fingerprint for trusted in principal.keys), *principal.keyless]
            for mark in marks:
                first = owners.setdefault(mark, principal.name)
                if first != principal.name:
                    what = "identity" if isinstance(mark, Identity) else "key"
                    message = f"principals {first} and {principal.name} have the same {what}"
                    raise self.error(Code.SCHEMA_INVALID, f"/spec/principals/{principal.name}", message, f"give each its own {what}")

    def roles(self, principals: Mapping[str, Principal]) -> dict[str, Role]:
        makes: Mapping[str, list[str]] = self.document.spec["makes"]
        roles = {name: self.role(name, rule, makes.get(name, [])) for name, rule in self.document.spec["roles"].items()}
        for name, role in roles.items():
            for member in role.members:
                if member not in principals:
                    fix = f"name one of {', '.join(principals) or 'the principals'}"
                    raise self.error(Code.UNKNOWN_NAME, f"/spec/roles/{name}", f"role {name} names no principal {member!r}", fix)
        for name in makes:
            if name not in roles:
                raise self.error(Code.UNKNOWN_NAME, f"/spec/makes/{name}", f"makes names no role {name!r}", "define the role")
        return roles

    def role(self, name: str, rule: Mapping[str, Any], makes: Iterable[str]) -> Role:
        types = frozenset(map(predicate_uri, makes))
        if "threshold" in rule:
            members, k = tuple(rule["threshold"]["of"]), rule["threshold"]["k"]
        else:
            members = tuple(rule.get("any_of") or rule.get("all_of") or ())
            k = 1 if "any_of" in rule else len(members)
        if not 1 <= k <= len(set(members)):
            message = f"role {name} needs {k} of {len(set(members))} principals"
            raise self.error(Code.SCHEMA_INVALID, f"/spec/roles/{name}", message, "name at least as many principals as the rule needs")
        return Role(name, members, k, types)
