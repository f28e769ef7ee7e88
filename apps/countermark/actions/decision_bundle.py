"""A recorded decision with all that it takes to make it again on a machine that has nothing else: one tar file.

It holds the whole ledger, since what speaks against an image may stand in any entry; the manifest that says what the copy must be; and
the trust policy with its key files. None of it is believed because it lies there: the ledger is audited, and the decision is made again.
"""

import json
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from countermark.actions.audit import WHOLE, audit_ledger
from countermark.actions.backups import back_up_ledger
from countermark.actions.new_files import refuse_existing
from countermark.actions.repeat import Repeated, recorded_trust, repeat
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations import jsontext
from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.documents import load_document, read_file
from countermark.attestations.errors import CannotTellError, InputError, Location, TamperError
from countermark.attestations.keys import read_key_file
from countermark.attestations.schema import problems
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.audit_report import AuditReport
from countermark.ledger.backup import Manifest
from countermark.ledger.note import VerifierKey

SCHEMA: Final = "https://countermark.dev/schema/decision-bundle/v1"

_LEDGER, _MANIFEST, _DECISION, _TRUST = "ledger.db", "ledger.db.manifest", "decision.json", "trust/trust.yaml"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@-]*(/[A-Za-z0-9_][A-Za-z0-9._+@-]*)*\Z")
_MAX_DECISION_BYTES: Final = 4096
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class CheckedDecision:
    """The audit of the ledger in a bundle; the decision made again, or none where the ledger does not hold.

    `own_trust` is set when nobody gave a trust policy, so that the one in the bundle says who is believed.
    """

    audit: AuditReport
    trust: TrustPolicy
    own_trust: bool
    repeated: Repeated | None

    @property
    def exit(self) -> ExitCode:
        """Yes when the ledger holds and the same decision comes out."""
        same = self.repeated is not None and not self.repeated.differences
        return ExitCode.first_of([self.audit.exit, *([] if same or self.repeated is None else [ExitCode.NO])])


def pack_decision(workspace: Workspace, repeated: Repeated, target: Path) -> None:
    """Write the bundle of a decision into a new file.

    `InputError` for a file that exists, or a trust policy with keys outside its folder.
    """
    refuse_existing(target)
    with TemporaryDirectory(dir=target.absolute().parent, prefix=f".{target.name}.") as name:
        folder = Path(name)
        back_up_ledger(workspace, folder / _LEDGER)
        decision = {"schema": SCHEMA, "decision": repeated.id, "payload": str(repeated.past.record.payload)}
        (folder / _DECISION).write_text(json.dumps(decision, indent=1) + "\n", encoding="utf-8")
        members = {name: folder / name for name in (_DECISION, _LEDGER, _MANIFEST)} | _trusted(workspace, repeated)
        with tarfile.open(folder / "bundle", "w") as archive:
            for member, path in sorted(members.items()):
                _add(archive, member, path)
        refuse_existing(target)
        (folder / "bundle").rename(target)


def _trusted(workspace: Workspace, repeated: Repeated) -> dict[str, Path]:
    """The trust policy of today, and each file that it or the recorded one names."""
    folder, read = workspace.trust_file.parent, list[Path]()

    def noted(path: Path) -> bytes:
        read.append(path)
        return read_key_file(path)

    with open_reader(workspace) as reader:
        recorded = recorded_trust(reader, repeated.past, folder, lambda name: noted(folder / name))
    today = TrustPolicy.load(workspace.trust_file, noted)
    read += [folder / name for name in (recorded.trusted_root, today.trusted_root) if name]
    return {_TRUST: workspace.trust_file} | {_member(path, folder): path for path in read}


def _member(path: Path, folder: Path) -> str:
    name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
    if not _NAME.match(name):
        at, fix = Location(str(path)), "keep the files that the trust policy names below its own folder, under plain names"
        raise InputError(Code.UNSUPPORTED, "a bundle cannot hold a file of this name", at=at, fix=fix)
    return f"trust/{name}"


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    """A file without owner, mode and time, so that the same files give the same bytes."""
    member = tarfile.TarInfo(name)
    member.size = path.stat().st_size
    with path.open("rb") as file:
        archive.addfile(member, file)


def is_decision_bundle(path: Path) -> bool:
    """Whether a file is a tar file; what cannot be read is none."""
    try:
        return path.is_file() and tarfile.is_tarfile(path)
    except OSError:
        return False


def check_decision(bundle: Path, trust: Path | None, progress: Callable[[int, int], None] | None = None) -> CheckedDecision:
    """Audit the ledger in a bundle and make its decision again, under a trust policy of one's own or else the bundle's.

    Raises `InputError` for a file that is no such bundle, `CannotTellError` INCOMPLETE when a part is missing, `TamperError` for a ledger
    that its manifest does not describe.
    """
    with TemporaryDirectory(prefix="countermark-bundle-") as name:
        folder = Path(name) / "bundle"
        _unpack_all(bundle, folder)
        stated = _stated(folder, bundle)
        manifest = Manifest.read(folder / _LEDGER)
        manifest.check_file(folder / _LEDGER, bundle)
        inside = _reader(folder, bundle)
        if trust is None:
            TrustPolicy.of(load_document(read_file(folder / _TRUST), f"{bundle}:{_TRUST}", "TrustPolicy"), inside)
        workspace = Workspace(folder / _LEDGER, trust or folder / _TRUST, trust is not None, Path(name) / "no-anchor")
        audit = audit_ledger(workspace, [], WHOLE, progress)
        if (audit.origin, audit.size, audit.root) != (manifest.origin, manifest.size, manifest.root):
            raise _altered(bundle, f"the ledger ends at {audit.size} entries, and its manifest says {manifest.size}")
        again: Repeated | None = None
        if audit.exit is ExitCode.YES:
            with open_reader(workspace) as reader:
                manifest.check_note(VerifierKey.parse(reader.genesis.log_vkey))
            again = repeat(workspace, stated.payload, inside)
            if again.id != stated.decision:
                raise _altered(bundle, f"the decision is {again.id}, and the bundle says {stated.decision}")
        return CheckedDecision(audit, workspace.trust(), trust is None, again)


def _unpack_all(bundle: Path, folder: Path) -> None:
    try:
        with tarfile.open(bundle, "r:") as archive:
            for member in archive:
                _unpack(archive, member, folder, bundle)
    except (tarfile.TarError, EOFError) as error:
        raise _malformed(bundle, f"it cannot be read as a tar file: {error}") from None


def _unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, bundle: Path) -> None:
    """One plain file of a name that a bundle has, and once: a name decides where bytes land, and what SQLite reads beside a ledger."""
    target = folder / member.name
    known = member.name in (_DECISION, _LEDGER, _MANIFEST) or (member.name.startswith("trust/") and _NAME.match(member.name))
    plain = known and member.type == tarfile.REGTYPE and not member.issparse()
    source = archive.extractfile(member) if plain else None
    if source is None or target.exists() or any(parent.is_file() for parent in target.parents):
        raise _malformed(bundle, f"{member.name!r} is no plain file of a bundle, or stands in it twice")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        while data := source.read(_CHUNK):
            file.write(data)


def _reader(folder: Path, bundle: Path) -> Callable[[str], bytes]:
    """Reads key files of the bundle; a name that leads out of it is somebody else's, who may not choose what is opened here."""

    def read(name: str) -> bytes:
        if not _NAME.match(name):
            raise _malformed(bundle, f"its trust policy names the key file {name!r}, which is in no bundle")
        return read_key_file((folder / _TRUST).parent / name)

    return read


@dataclass(frozen=True, slots=True)
class _Stated:
    """Which decision a bundle says it is about."""

    decision: str
    payload: str


def _stated(folder: Path, bundle: Path) -> _Stated:
    for name in (_DECISION, _LEDGER, _MANIFEST, _TRUST):
        if not (folder / name).is_file():
            fix = "make it again with `countermark explain DECISION -o bundle=FILE`"
            raise CannotTellError(Code.INCOMPLETE, f"the bundle has no {name}", at=Location(str(bundle)), fix=fix)
    value: Any = jsontext.loads(read_file(folder / _DECISION, limit=_MAX_DECISION_BYTES), f"{bundle}:{_DECISION}")
    if wrong := problems("decision-bundle", value):
        raise _malformed(bundle, f"{_DECISION} {wrong[0].pointer}: {wrong[0].message}")
    return _Stated(value["decision"], value["payload"])


def _altered(bundle: Path, message: str) -> TamperError:
    return TamperError(Code.TAMPERED, message, at=Location(str(bundle)), fix="ask for the bundle again; this one was changed or damaged")


def _malformed(bundle: Path, message: str) -> InputError:
    fix = "give the file that `countermark explain DECISION -o bundle=FILE` wrote"
    return InputError(Code.MALFORMED, message, at=Location(str(bundle)), fix=fix)
