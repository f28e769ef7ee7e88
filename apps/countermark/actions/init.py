"""`init`: a ledger with its keys, trust policy, sample contract and sample policy; all of it, or nothing."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countermark.actions.new_files import write_new
from countermark.actions.workspace import LOG_KEY, Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import exists
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import PublicKey, Signer, generate_pem, load_private
from countermark.ledger.genesis import default_origin
from countermark.ledger.note import CheckpointSigner
from countermark.ledger.read import Head

LEDGER = "countermark.db"
OPERATOR_KEYS = ("builder", "qualifier", "gate")


@dataclass(frozen=True, slots=True)
class Initialised:
    """What `init` made."""

    workspace: Workspace
    head: Head
    files: tuple[Path, ...]


def initialise(folder: Path, *, origin: str | None = None, password: bytes | None = None) -> Initialised:
    """Make a ledger in `folder`, its keys encrypted when there is a password.

    Nothing is overwritten, and a failure leaves nothing behind. Raises `InputError`.
    """
    from countermark.ledger.write import initialise as begin_log
    from countermark.migrations.runner import create

    keys = {name: generate_pem(password=password) for name in (LOG_KEY, *OPERATOR_KEYS)}
    log_signer = CheckpointSigner(origin or default_origin(folder.resolve().name), _ed25519(keys[LOG_KEY][0], password))
    operator = Signer.from_pem(keys["builder"][0], "builder", password)
    documents = _documents(folder.resolve().name, log_signer, {name: public for name, (_, public) in keys.items()})
    files = {Path("keys", f"{name}.pem"): (private, 0o600) for name, (private, _) in keys.items()}
    files |= {Path("keys", f"{name}.pub"): (public.to_pem(), 0o644) for name, (_, public) in keys.items()}
    files[Path("keys", "log.vkey")] = (f"{log_signer.vkey}\n".encode(), 0o644)
    files |= {Path(name): (data, 0o644) for name, data in documents.items()}
    _refuse_existing(folder, [Path(LEDGER), *files])
    with _AllOrNothing() as undo:
        undo.make_folders(folder / "keys")
        for name, (data, mode) in files.items():
            write_new(folder / name, data, mode=mode)
            undo.files.append(folder / name)
        create(folder / LEDGER)
        undo.files += [folder / f"{LEDGER}{end}" for end in ("", "-wal", "-shm", ".lock")]
        begin_log(folder / LEDGER, log_signer, operator, str(Digest.of(DigestKind.FILE, documents["trust.yaml"])))
    workspace = Workspace.at(str(folder / LEDGER))
    with open_reader(workspace) as reader:
        return Initialised(workspace, reader.head, (folder / LEDGER, *(folder / name for name in files)))


def _ed25519(pem: bytes, password: bytes | None) -> Ed25519PrivateKey:
    private = load_private(pem, LOG_KEY, password)
    assert isinstance(private, Ed25519PrivateKey)
    return private


def _documents(name: str, log: CheckpointSigner, keys: Mapping[str, PublicKey]) -> dict[str, bytes]:
    """The trust policy and the two samples, by file name."""
    values = {key: public.fingerprint.hex for key, public in keys.items()}
    values |= {"name": _document_id(name), "origin": log.vkey.name, "vkey": str(log.vkey)}
    folder = resources.files("countermark.actions") / "templates"
    return {
        file: Template((folder / file).read_text()).substitute(values).encode() for file in ("trust.yaml", "contract.yaml", "policy.yaml")
    }


def _document_id(name: str) -> str:
    kept = "".join(character if character.isascii() and character.isalnum() else "-" for character in name.lower()).strip("-")
    return kept[:64] or "ledger"


def _refuse_existing(folder: Path, names: list[Path]) -> None:
    for name in names:
        if os.path.lexists(folder / name):
            fix = "choose an empty folder; init overwrites nothing"
            raise InputError(Code.LEDGER_SCHEMA, "it is there already", at=Location(str(folder / name)), fix=fix)


class _AllOrNothing:
    """Removes what was made when the block ends with an error."""

    def __init__(self) -> None:
        self.files: list[Path] = []
        self.folders: list[Path] = []

    def make_folders(self, folder: Path) -> None:
        """Make a folder and its parents."""
        missing = [path for path in (folder, *folder.parents) if not exists(path)]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = error.strerror or "it cannot be made"
            raise InputError(Code.UNREADABLE, why, at=Location(str(folder)), fix="choose a folder that can be written") from None
        self.folders = missing

    def __enter__(self) -> "_AllOrNothing":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        for file in self.files:
            file.unlink(missing_ok=True)
        for folder in self.folders:
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()
