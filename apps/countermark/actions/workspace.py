"""Where a ledger's companions lie: its trust policy and keys, in the ledger's own folder unless told otherwise."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countermark.attestations.codes import Code
from countermark.attestations.documents import exists
from countermark.attestations.errors import CannotTellError, InputError, Location, RefusedError
from countermark.attestations.keys import PublicKey, Signer, is_key_uri, load_private, read_key_file
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import KeyTrust, PolicyTrust, Trust
from countermark.ledger.key_history import KeyHistory, LedgerTrust
from countermark.ledger.note import CheckpointSigner
from countermark.ledger.read import LedgerReader

if TYPE_CHECKING:
    from countermark.ledger.write import LedgerWriter  # brings SQLAlchemy, which commands that only read do without

LOG_KEY = "log"
_GIVE_KEY = "give --key with a PEM file or a signer URI"
_NO_KEY = {"approver": "give --key with the key of an approver; what you said yourself, somebody else must take back"}
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A ledger file with the trust policy it is judged by, and the folder of its keys; `trust_given` when `--trust` named the policy.

    `anchor` is the file that remembers its newest head, by default the one in the user's state directory.
    """

    ledger: Path
    trust_file: Path
    trust_given: bool = False
    anchor: Path | None = None

    @classmethod
    def at(cls, ledger: str, trust: Path | None = None) -> Self:
        """The workspace of `--ledger` and `--trust`."""
        ledger = ledger.removeprefix("sqlite:///")
        if _URL.match(ledger):
            message = f"{ledger.partition(':')[0]} ledgers are not built in this version"
            raise CannotTellError(Code.UNSUPPORTED, message, fix="give the path of an SQLite ledger")
        path = Path(ledger)
        return cls(path, trust or path.parent / "trust.yaml", trust is not None)

    def trust(self) -> TrustPolicy:
        """The trust policy; `CannotTellError` when there is none, since then nobody is known."""
        if not exists(self.trust_file):
            fix = "give --trust FILE, or --key with the signer's public key"
            raise CannotTellError(Code.UNTRUSTED, "there is no trust policy here", at=Location(str(self.trust_file)), fix=fix)
        return TrustPolicy.load(self.trust_file)

    def check_ledger(self) -> None:
        """`CannotTellError` LEDGER_MISSING where there is no ledger: what is missing first is told first."""
        if not exists(self.ledger):
            fix = "make one with `countermark init`, or name it with --ledger or COUNTERMARK_LEDGER"
            raise CannotTellError(Code.LEDGER_MISSING, "there is no ledger here", at=Location(str(self.ledger)), fix=fix)

    def key_file(self, name: str) -> Path:
        """The private key file that `init` made under this name."""
        return self.ledger.parent / "keys" / f"{name}.pem"

    @property
    def witness_file(self) -> Path:
        """The policy that says which witnesses count, where the operator keeps one."""
        return self.ledger.parent / "witnesses.policy"

    def signer(self, role: str, uri: str | None) -> Signer:
        """The signer of `--key`, or of the role's own key file; `CannotTellError` when there is neither."""
        if uri is not None:
            return Signer.load(uri)
        path = self.key_file(role)
        if not exists(path):
            message = f"there is no {role} key beside the ledger"
            raise CannotTellError(
                Code.UNREADABLE, message, at=Location(str(path)), fix=_NO_KEY.get(role, "give --key with a PEM file or a signer URI")
            )
        return Signer.load(str(path))


def public_key(path: str) -> PublicKey:
    """The public key of `--key` when something is verified; a private key file, or a key URI, gives its public half."""
    if is_key_uri(path):
        from countermark.attestations.key_uri import public_half

        return public_half(path)
    data = read_key_file(Path(path))
    if b"PRIVATE KEY" in data:
        return Signer.from_pem(data, path).public
    return PublicKey.from_pem(data, path)


def trust_in(keys: Sequence[str], ledger: str, trust: Path | None) -> Trust:
    """Trust in the keys of these files where any is given, else in the trust policy of a ledger."""
    if keys:
        return KeyTrust(tuple(public_key(name) for name in keys))
    return PolicyTrust(Workspace.at(ledger, trust).trust())


def admitting_trust(workspace: Workspace, policy: TrustPolicy) -> LedgerTrust:
    """Trust in a policy for what the ledger admits next: a key that its key events took away does not count."""
    with open_reader(workspace) as reader:
        return LedgerTrust(PolicyTrust(policy, joining=True), KeyHistory(reader.notices(), policy), reader.head.size)


def open_reader(workspace: Workspace, trust: TrustPolicy | None = None) -> LedgerReader:
    """A verified view of the ledger; `RefusedError` UNTRUSTED when the trust policy believes other logs."""
    reader = LedgerReader.open(workspace.ledger, anchor=workspace.anchor)
    believed = {log.origin: log.vkey for log in trust.logs} if trust else {}
    if trust and believed and believed.get(reader.genesis.origin) != reader.genesis.log_vkey:
        reader.close()
        message = f"{trust.source} does not believe the log {reader.genesis.origin} with its key"
        raise RefusedError(
            Code.UNTRUSTED,
            message,
            at=Location(str(workspace.ledger)),
            fix="add it under spec.logs, or give the trust policy of this ledger",
        )
    return reader


def open_writer(workspace: Workspace) -> "LedgerWriter":
    """The ledger, open for appending under its local log key."""
    from countermark.ledger.write import LedgerWriter

    with open_reader(workspace) as reader:
        origin = reader.genesis.origin
    return LedgerWriter.open(workspace.ledger, log_signer(workspace, origin))


def log_signer(workspace: Workspace, origin: str) -> CheckpointSigner:
    """Signs checkpoints of the log of this origin, with the log key beside the ledger."""
    return CheckpointSigner(origin, _log_key(workspace))


def _log_key(workspace: Workspace) -> Ed25519PrivateKey:
    """The key that signs checkpoints: a local Ed25519 key, never one behind a URI."""
    path = workspace.key_file(LOG_KEY)
    if not exists(path):
        message = "the key that signs checkpoints is not here"
        raise CannotTellError(Code.UNREADABLE, message, at=Location(str(path)), fix="append on the machine that holds it")
    private = load_private(read_key_file(path), str(path))
    if not isinstance(private, Ed25519PrivateKey):
        raise InputError(Code.UNSUPPORTED, "a log key is an ed25519 key", at=Location(str(path)), fix="put the log's own key back")
    return private
