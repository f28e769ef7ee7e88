"""`ledger witness`: what a witness does in its own folder, and how its cosignatures come back into a ledger."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

from countermark.actions.believed_logs import read_log_key, read_note, read_policy
from countermark.actions.clock import now
from countermark.actions.new_files import write_new
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.documents import exists, read_file
from countermark.attestations.errors import CannotTellError, InputError, Location, RefusedError
from countermark.attestations.keys import PASSWORD_VARIABLE, read_key_file
from countermark.ledger.cosignature import Cosignature, Cosigner, CosignerKey, WitnessPrivateKey
from countermark.ledger.cosigned import check_own
from countermark.ledger.freshness import ahead_of, yet_to_come
from countermark.ledger.note import Checkpoint, VerifierKey
from countermark.ledger.proof_file import MAX_PROOF_BYTES, GrowthFile
from countermark.ledger.read import Head
from countermark.ledger.witness import Seen, Witness, begin_state

KEY, VKEY, NAME, LOGS = "witness.pem", "witness.vkey", "witness.name", "logs.policy"

_TYPES: Final[dict[str, Callable[[], WitnessPrivateKey]]] = {"ed25519": Ed25519PrivateKey.generate, "ml-dsa-44": MLDSA44PrivateKey.generate}


@dataclass(frozen=True, slots=True)
class WitnessState:
    """A witness's key, and what it has cosigned last of each log."""

    vkey: CosignerKey
    seen: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """The cosignatures that came into a ledger, and who now holds which of its heads."""

    head: Head
    new: int
    held: tuple[tuple[str, int], ...]


def new_witness(folder: Path, name: str, log_keys: Sequence[str], key_type: str, password: bytes | None) -> WitnessState:
    """Make a witness in an empty folder: its key, the logs that it witnesses, and a state in which it has seen nothing."""
    if key_type not in _TYPES:
        raise InputError(Code.UNKNOWN_NAME, f"there is no witness key type {key_type!r}", fix=f"use one of {', '.join(_TYPES)}")
    logs = [read_log_key(text) for text in log_keys]
    private = _TYPES[key_type]()
    vkey = Cosigner(name, private).vkey
    _make_empty(folder)
    protection = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    try:
        write_new(folder / LOGS, "".join([*(f"log {key}\n" for key in logs), "quorum none\n"]).encode())
        write_new(folder / KEY, pem, mode=0o600)
        write_new(folder / NAME, f"{name}\n".encode())
        write_new(folder / VKEY, f"{vkey}\n".encode())
        begin_state(folder)
    except BaseException:
        for path in folder.iterdir():
            path.unlink()
        raise
    return WitnessState(vkey, ())


def cosign(folder: Path, request: Path) -> str:
    """The cosigned checkpoint of a request that `ledger prove --from` made."""
    asked = GrowthFile.parse(read_file(request, limit=MAX_PROOF_BYTES))
    return Witness(folder, _logs(folder)).cosign(asked, Cosigner(_name(folder), _private(folder / KEY)), int(time.time()))


def witness_state(folder: Path) -> WitnessState:
    """What a witness is, and what it has seen."""
    return WitnessState(CosignerKey.parse(read_note(folder / VKEY).rstrip("\n")), tuple(Witness(folder, {}).seen()))


def add_cosignatures(workspace: Workspace, notes: Sequence[Path], policy: Path | None) -> Added:
    """Bring the cosignatures of a policy's witnesses into the ledger; each over a checkpoint that the ledger has.

    `CannotTellError` UNTRUSTED without a policy; `RefusedError` UNTRUSTED for a note that none of its witnesses cosigned, CLOCK for one
    whose time cannot be: what a ledger has taken, it keeps, and every audit would tell it.
    """
    from countermark.ledger.cosignature_rows import add_cosignatures as add

    if policy is None and not exists(workspace.witness_file):
        fix = "say with --policy which witnesses count, or write witnesses.policy beside the ledger"
        raise CannotTellError(Code.UNTRUSTED, "no witness is believed", at=Location(str(workspace.witness_file)), fix=fix)
    keys = read_policy(policy or workspace.witness_file).witnesses.values()
    new, held = 0, []
    with open_reader(workspace) as reader:
        for path in notes:
            note = check_own(reader, read_note(path))
            found = [item for key in keys for item in key.cosignatures(note)]
            if not found:
                message = "none of the policy's witnesses has cosigned it"
                raise RefusedError(Code.UNTRUSTED, message, at=Location(str(path)), fix="give the file that the witness gave back")
            checkpoint = Checkpoint.parse(note.text)
            _check_times(found, reader.entry(checkpoint.size - 1).leaf.admitted_ms, Location(str(path)))
            new += add(workspace.ledger, checkpoint, found)
            held += [(item.key.name, checkpoint.size) for item in found]
        return Added(reader.head, new, tuple(dict.fromkeys(held)))


def _check_times(found: Sequence[Cosignature], admitted_ms: int, at: Location) -> None:
    """Refuse cosignatures that are long before the newest entry they are about, or yet to come."""
    problem = ahead_of(found, admitted_ms) or yet_to_come(found, now().ms)
    if problem:
        fix = "set the witness's clock right, and have it cosign the checkpoint again"
        raise RefusedError(Code.CLOCK, problem, at=at, fix=fix)


def _logs(folder: Path) -> dict[str, VerifierKey]:
    policy = read_policy(folder / LOGS)
    return {key.name: key for key in policy.logs}


def _name(folder: Path) -> str:
    return read_note(folder / NAME).rstrip("\n")


def _private(path: Path) -> WitnessPrivateKey:
    """The witness's key; its password, if it has one, is in the environment."""
    at = Location(str(path))
    data = read_key_file(path)
    secret = os.environ.get(PASSWORD_VARIABLE, "").encode() or None
    try:
        private = serialization.load_pem_private_key(data, secret if b"ENCRYPTED" in data else None)
    except TypeError:
        fix = f"set {PASSWORD_VARIABLE} to its password"
        raise CannotTellError(Code.UNREADABLE, "the key is encrypted", at=at, fix=fix) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(Code.UNREADABLE, "this is not a private key that can be opened", at=at, fix="put the witness's key back") from None
    if not isinstance(private, WitnessPrivateKey):
        raise InputError(Code.UNSUPPORTED, "a witness key is ed25519 or ML-DSA-44", at=at, fix="put the witness's key back")
    return private


def _make_empty(folder: Path) -> None:
    at = Location(str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        why = error.strerror or "it cannot be made"
        raise InputError(Code.UNREADABLE, why, at=at, fix="choose a folder that can be written") from None
    if taken:
        raise InputError(Code.UNREADABLE, "the folder is not empty", at=at, fix="choose an empty folder; nothing is overwritten")
