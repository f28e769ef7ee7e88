"""`verify layout`, and what of in-toto's links and layouts goes into a ledger."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from countermark.actions.appending import judged_submission
from countermark.actions.workspace import public_key
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.documents import read_file
from countermark.attestations.envelope import MAX_ENVELOPE
from countermark.attestations.errors import InputError, Location, RefusedError, UsageError
from countermark.attestations.findings import Finding
from countermark.attestations.intoto_legacy import LegacyFile, ProvenLayout, read_links, verify_layout
from countermark.attestations.predicate_types import predicate_uri
from countermark.attestations.times import Instant
from countermark.attestations.verifier import Trust, Verifier, holding
from countermark.ledger.submission import Submission

MAKES = {kind: predicate_uri(f"legacy-{kind}") for kind in ("link", "layout")}
"""What `makes` of a trust policy lists for a role whose links or layouts are taken into a ledger; neither has a predicate type."""

_HASHES = ("sha256", "sha384", "sha512")


@dataclass(frozen=True, slots=True)
class CheckedLayout:
    """A layout that holds, and how the files at hand differ from its products; `compared` says how many were looked at."""

    proven: ProvenLayout
    links: int
    compared: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def exit(self) -> ExitCode:
        """No, as soon as one file differs."""
        return ExitCode.NO if self.findings else ExitCode.YES


def check_layout(
    layout: Path, links: Path, keys: Sequence[str], artifacts: Path | None = None, *, run_inspections: bool = False
) -> CheckedLayout:
    """Verify a layout with its links under its owners' keys, and compare the files in `artifacts` with the products."""
    if not keys:
        raise UsageError(
            Code.UNTRUSTED, "a layout is verified under its owners' keys", fix="give --layout-key with each owner's public key"
        )
    if run_inspections and artifacts is None:
        raise UsageError(Code.UNKNOWN_NAME, "inspections run among the files that they inspect", fix="give --artifacts with their folder")
    owners = [public_key(name) for name in keys]
    known = read_links(links)
    read = LegacyFile.parse(read_file(layout, limit=MAX_ENVELOPE), str(layout))
    proven = verify_layout(read, known, owners, inspect_in=artifacts if run_inspections else None)
    if artifacts is None:
        return CheckedLayout(proven, len(known))
    findings, compared = compare(proven.products, artifacts)
    return CheckedLayout(proven, len(known), compared, tuple(findings))


def compare(products: Mapping[str, Mapping[str, str]], folder: Path) -> tuple[list[Finding], int]:
    """Each product of the last step against the file of its name, and each file that is no product; how many were compared."""
    if not folder.is_dir():
        raise InputError(Code.UNREADABLE, "this is not a folder", at=Location(str(folder)), fix="give the folder of the products")
    files = set(_files(folder))
    names = sorted({*products, *files})
    findings = [found for name in names if (found := _compared(folder / name, products.get(name), present=name in files))]
    return findings, len(names)


def _files(folder: Path) -> Iterator[str]:
    """The files below a folder by their names in it; a link to a folder is not followed, and is a file that is no product."""
    for place, folders, files in os.walk(folder):
        paths = (Path(place) / name for name in (*files, *folders))
        yield from (path.relative_to(folder).as_posix() for path in paths if path.is_symlink() or not path.is_dir())


def _compared(path: Path, hashes: Mapping[str, str] | None, *, present: bool) -> Finding | None:
    if hashes is None:
        return _finding(path, "no file beside the products", "a file that no step made", "take it away, or record the step that made it")
    algorithm = next((algorithm for algorithm in _HASHES if algorithm in hashes), None)
    if algorithm is None:
        return _finding(
            path, f"one of {', '.join(_HASHES)}", f"the link has {', '.join(hashes) or 'no hash'} only", "record the step again"
        )
    wanted = f"{algorithm}:{hashes[algorithm]}"
    found = _hashed(path, algorithm) if present else "no such file"
    return None if found == wanted else _finding(path, wanted, found, "put back what the last step made")


def _hashed(path: Path, algorithm: str) -> str:
    try:
        with path.open("rb") as file:
            return f"{algorithm}:{file_digest(file, algorithm).hexdigest()}"
    except OSError as error:
        return error.strerror or "it cannot be read"


def _finding(path: Path, required: str, observed: str, fix: str) -> Finding:
    return Finding(
        Code.SUBJECT_MISMATCH,
        Outcome.FAIL,
        fix,
        checker="in-toto.products",
        location=Location(str(path)),
        required=required,
        observed=observed,
    )


def legacy_submissions(files: Sequence[LegacyFile], trust: Trust, at: Instant) -> list[Submission]:
    """What goes into a ledger: each file that somebody of the trust policy signed and may make, byte for byte as it was signed.

    `RefusedError` for other signers; `InputError` UNSUPPORTED for a file of the older form, whose signature is over bytes that no file
    holds.
    """
    verifier = Verifier(trust)
    return [_submission(file, verifier, trust, at) for file in files]


def _submission(file: LegacyFile, verifier: Verifier, trust: Trust, at: Instant) -> Submission:
    envelope = file.envelope
    if envelope is None:
        message = f"this {file.kind} is signed over canonical JSON, which a ledger does not hold"
        raise InputError(Code.UNSUPPORTED, message, at=Location(file.source), fix="sign it as a DSSE envelope (in-toto's use_dsse)")
    results = verifier.judge_signatures(envelope, at)
    held = holding(results)
    if not held:
        code = next((result.code for result in results if result.code in (Code.KEY_REVOKED, Code.KEY_WINDOW)), Code.SIG_INVALID)
        message = f"nobody whom the trust policy believes now has signed this {file.kind}"
        raise RefusedError(code, message, at=Location(file.source), fix="add the signer's key to the trust policy, or have it signed anew")
    trust.authorise(MAKES[file.kind], {result.principal for result in held if result.principal})
    return judged_submission(envelope.payload_type, envelope.payload, results)
