"""Making keys, and letting their owners into a ledger's trust policy."""

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countermark.actions.appending import append
from countermark.actions.new_files import replace_file, write_new
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.documents import load_document, read_file
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.keys import Algorithm, PublicKey, generate_pem, read_key_file
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.key_event import KeyEvent

ALGORITHMS = {
    "ed25519": Algorithm.ED25519,
    "p256": Algorithm.ECDSA_P256_SHA256,
    "p384": Algorithm.ECDSA_P384_SHA384,
    "ml-dsa-65": Algorithm.ML_DSA_65,
}


@dataclass(frozen=True, slots=True)
class Imported:
    """A principal that a key made known, and the ledger entry that says since when."""

    principal: str
    role: str
    key: PublicKey
    index: int
    single_operator: bool


def generate(path: Path, algorithm: str = "ed25519", password: bytes | None = None) -> PublicKey:
    """Write `path` (private, mode 0600) and its `.pub`; neither is overwritten. The file is encrypted when there is a password."""
    if algorithm not in ALGORITHMS:
        raise InputError(Code.UNKNOWN_NAME, f"there is no key type {algorithm!r}", fix=f"use one of {', '.join(ALGORITHMS)}")
    public_path = path.with_suffix(".pub")
    if public_path.exists():
        raise InputError(Code.UNREADABLE, "it exists and is not overwritten", at=Location(str(public_path)), fix="choose another name")
    private, public = generate_pem(ALGORITHMS[algorithm], password)
    write_new(path, private, mode=0o600)
    write_new(public_path, public.to_pem())
    return public


def import_key(workspace: Workspace, path: Path, role: str, name: str | None) -> Imported:
    """Make the owner of a public key a principal with a role: an event in the log, then the trust policy, replaced in one step.

    A comment in the trust policy survives. A key that the policy knows gets the role, if it does not have it yet.
    """
    key = PublicKey.from_pem(read_key_file(path), str(path))
    trust = workspace.trust()
    if role not in trust.roles:
        raise InputError(Code.UNKNOWN_NAME, f"the trust policy has no role {role!r}", fix=f"use one of {', '.join(trust.roles)}")
    owned = trust.owner(key.fingerprint)
    principal = owned[0].name if owned else _free_name(trust, name or path.stem)
    text = _with_principal(workspace.trust_file, trust, principal, role, key, new=owned is None)
    event = KeyEvent("add", principal, role, key.spki)
    receipts, _ = append(workspace, [event.sign(workspace.signer("builder", None))])
    if owned is None:
        _keep_key(workspace, principal, key)
    replace_file(workspace.trust_file, text)
    return Imported(principal, role, key, receipts[0].index, trust.single_operator)


def _free_name(trust: TrustPolicy, wanted: str) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", wanted.lower()).strip("-._")[:64]
    if not name:
        raise NothingError(Code.UNKNOWN_NAME, f"{wanted!r} gives no principal's name", fix="give one with --name")
    if name in trust.principals:
        raise InputError(Code.UNKNOWN_NAME, f"there is a principal {name!r} with another key", fix="give another name with --name")
    return name


def _keep_key(workspace: Workspace, principal: str, key: PublicKey) -> None:
    target = workspace.trust_file.parent / _key_name(principal)
    target.parent.mkdir(exist_ok=True)
    if not target.exists():
        write_new(target, key.to_pem())


def _key_name(principal: str) -> str:
    return f"keys/{principal}.pub"


def _with_principal(path: Path, trust: TrustPolicy, principal: str, role: str, key: PublicKey, *, new: bool) -> bytes:
    """The bytes of the policy with the principal in the role; checked to load before anything is written."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 140
    yaml.indent(mapping=2, sequence=4, offset=2)
    document: Any = yaml.load(path.read_text(encoding="utf-8"))
    spec = document["spec"]
    if new:
        spec["principals"][principal] = {"keys": [{"file": _key_name(principal), "spki_sha256": key.fingerprint.hex}]}
    rule = spec["roles"][role]
    members = rule["threshold"]["of"] if "threshold" in rule else rule.get("any_of") or rule["all_of"]
    if principal not in trust.roles[role].members:
        members.append(principal)
        document["metadata"]["version"] += 1
    out = io.BytesIO()
    yaml.dump(document, out)
    files = {_key_name(principal): key.to_pem()} if new else {}
    TrustPolicy.of(load_document(out.getvalue(), str(path), "TrustPolicy"), lambda name: files.get(name) or read_file(path.parent / name))
    return out.getvalue()
