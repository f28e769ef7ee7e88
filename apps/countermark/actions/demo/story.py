"""The demo's story: record, hold a contract, decide, drift, decide again, verify, tamper, notice."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from countermark.actions.appending import Recorded, record
from countermark.actions.audit import audit_ledger
from countermark.actions.demo import example, published, restored
from countermark.actions.gate import Asked, gate
from countermark.actions.init import initialise
from countermark.actions.restore.engine_source import built_from, own_checkout
from countermark.actions.verify_contract import Judged, judge_commit
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.contracts.decision import Decision
from countermark.contracts.explain_text import explain
from countermark.ledger.audit_report import AuditReport
from countermark.recorders.image import record_image
from countermark.recorders.junit import record_tests
from countermark.recorders.model import record_model
from countermark.recorders.recording import Recording
from countermark.recorders.source import record_source

Tell = Callable[[str], None]

_POLICY = """\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {id: release, version: 1}
spec:
  channel: staging
  subject: {kinds: [oci-manifest]}
  trust: ../trust.yaml
  requires:
    - {id: pins, contract: engine-pins}
  waivable: []
  never_waive: [IMAGE_REJECTED, SIG_INVALID, LEDGER_TAMPERED, SUBJECT_UNKNOWN, SCHEMA_INVALID]
  waiver_max_days: 14
"""


@dataclass(slots=True)
class Story:
    """Tells the demo in a folder that it makes; `surprises` are the places where something came out otherwise than the story says."""

    folder: Path
    tell: Tell
    surprises: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Tell all of it. `InputError` when the folder exists and is not empty."""
        if self.folder.exists() and any(self.folder.iterdir()):
            raise InputError(Code.UNREADABLE, "the folder is not empty", at=Location(str(self.folder)), fix="give a new folder")
        workspace = initialise(self.folder).workspace
        self.tell(f"1. A ledger: {workspace.ledger}")
        commit, image = self._record(workspace)
        policy = self.folder / "policies" / "release.yaml"
        policy.parent.mkdir()
        policy.write_text(_POLICY)
        self._decide(workspace, policy, image, commit)
        self._judge_published(workspace, policy.parent)
        self._restore(workspace, image, policy.parent / "serving-production.yaml")
        self._tamper(workspace)

    def _record(self, workspace: Workspace) -> tuple[str, Digest]:
        commit, tree = example.make_engine(self.folder / "engine")
        example.make_release(self.folder / "release", commit, tree)
        example.make_image(self.folder / "image")
        example.make_model(self.folder / "model", layers=4)
        example.make_model(self.folder / "draft", layers=2)
        self.tell("2. What is there, recorded as signed statements")
        checkout = own_checkout()
        if checkout:
            self._put(workspace, record_source(checkout), "this repository")
        else:
            self.tell("   this program does not run from a checkout, so its own commit is not recorded")
        self._put(workspace, record_source(self.folder / "engine", source_trees=["countermark-source-tree/v1"]), "the engine's source")
        built = record_image(self.folder / "image", components=[f"engine={commit},tree={tree}"])
        image = self._put(workspace, built, "an image built from it").statement.subjects[0].typed[0]
        (self.folder / "junit.xml").write_text(example.JUNIT)
        self._put(workspace, record_tests(self.folder / "junit.xml", image), "its GPU-free tests")
        target = record_model(self.folder / "model", role="target", repository="example/tiny", revision=example.MODEL_REVISION)
        self._put(workspace, target, "a model")
        drafts_for = f"example/tiny@{example.MODEL_REVISION}"
        draft = record_model(
            self.folder / "draft", role="draft", repository="example/tiny-draft", revision=example.DRAFT_REVISION, drafts_for=drafts_for
        )
        self._put(workspace, draft, "its draft")
        return commit, image

    def _put(self, workspace: Workspace, recording: Recording, what: str) -> Recorded:
        done = record(workspace, recording, "builder", None)
        subject = done.statement.subjects[0].typed[0]
        self.tell(f"   entry {done.receipt.index}  {what}  {subject}")
        for alias in done.proven_aliases:
            self.tell(f"            proven from bytes: {alias}")
        return done

    def _decide(self, workspace: Workspace, policy: Path, image: Digest, commit: str) -> None:
        self.tell("3. The contract: the engine's commit stands in eight places, and everywhere it is the one that is pinned")
        contract = self.folder / "release" / "contract.yaml"
        self._judge(judge_commit(contract, None, workspace, None), ExitCode.YES)
        self._gate(workspace, policy, image, "ALLOW", Code.OK)
        self.tell("4. One digit drifts in one profile")
        drifted = commit[:-1] + ("0" if commit[-1] != "0" else "1")
        example.commit_change(self.folder / "release", "profiles/serving.yaml", commit, drifted)
        self._judge(judge_commit(contract, None, workspace, None), ExitCode.NO)
        self._gate(workspace, policy, image, "DENY", Code.CONTRACT_VIOLATED)
        self.tell("5. An image that nobody recorded, one hex digit away")
        near = Digest(DigestKind.OCI_MANIFEST, image.hex[:-1] + ("0" if image.hex[-1] != "0" else "1"))
        self._gate(workspace, policy, near, "DENY", Code.SUBJECT_UNKNOWN)

    def _judge(self, judged: Judged, wanted: ExitCode) -> None:
        verdict = judged.verdict
        self.tell(f"   {verdict.contract.id}@{verdict.contract.version}: {verdict.outcome}, evaluated {verdict.evaluated} of {verdict.of}")
        for finding in verdict.findings:
            self.tell(f"   ✗ {finding.location}  required {finding.required}, observed {finding.observed}")
        self._expect(verdict.exit is wanted, f"the contract came out as {verdict.outcome}")

    def _gate(self, workspace: Workspace, policy: Path, image: Digest, verdict: str, code: Code) -> Decision:
        (decision,) = gate(workspace, Asked((str(image),), policy)).decisions
        self.tell("\n".join(f"   {line}" for line in explain(decision).rstrip().splitlines()))
        codes = {result.code for result in decision.requirements}
        self._expect((decision.verdict, codes) == (verdict, {code}), f"the gate said {decision.verdict} {codes}")
        return decision

    def _judge_published(self, workspace: Workspace, policies: Path) -> None:
        records = published.records_folder()
        if records is None:
            self.surprises.append("the published records are not installed")
            return
        for name in ("lab-as-published", "serving-production"):
            shipped = resources.files("countermark.actions") / "demo" / "policies" / f"{name}.yaml"
            (policies / f"{name}.yaml").write_bytes(shipped.read_bytes())
        recorded, endorsed = published.record_all(workspace, records)
        self.tell("6. Published records of real images: read by adapters, endorsed, and asked what they bear")
        statements = sum(len(done.appended) for done in recorded)
        self.tell(f"   {len(recorded)} documents, {statements} statements, {len(endorsed.appended)} receipts and rejections")
        for row in published.ROWS:
            decision = published.ask(workspace, policies, row)
            code = decision.requirements[0].code
            self.tell(f"   {decision.verdict:<5} {code:<17} {row.image.rpartition(':')[2][:8]}  {row.require}  [{row.policy}]")
            self._expect(decision.verdict == row.verdict and code in row.codes, f"{row.image} {row.require}: {decision.verdict} {code}")

    def _restore(self, workspace: Workspace, image: Digest, policy: Path) -> None:
        if own_checkout() or built_from():
            self.surprises += restored.Restores(workspace, self.folder, self.tell).run(image, policy)
        else:
            self.tell("7. Restores under attestation are left out: this program was not built from a checkout, so its commit is not known")

    def _tamper(self, workspace: Workspace) -> None:
        self.tell("10. The whole ledger, read again from its bytes")
        self._audit(workspace, ExitCode.YES)
        self.tell("11. One bit of a copy changed behind the program's back")
        copy = self.folder / "tampered.db"
        flip_one_bit(workspace.ledger, copy)
        report = self._audit(Workspace(copy, workspace.trust_file), ExitCode.TAMPERED)
        for finding in report.findings:
            if finding.severity is Severity.BLOCK:
                self.tell(f"   ✗ {finding.subject or 'the ledger'}  {finding.observed}  [{finding.code}]")

    def _audit(self, workspace: Workspace, wanted: ExitCode) -> AuditReport:
        report = audit_ledger(workspace, [])
        word = "OK" if report.exit is ExitCode.YES else "TAMPERED"
        self.tell(f"   {word}: {report.evaluated} of {report.of} entries hold, {report.notices} of them notices, exit {int(report.exit)}")
        self._expect(report.exit is wanted, f"the audit exits {int(report.exit)}")
        return report

    def _expect(self, held: bool, otherwise: str) -> None:
        if not held:
            self.surprises.append(otherwise)


def flip_one_bit(ledger: Path, copy: Path) -> None:
    """Copy a ledger and change one bit of its longest payload, as somebody with the file could: the guards go and come back."""
    source, target = sqlite3.connect(ledger), sqlite3.connect(copy)
    try:
        source.backup(target)
        guards = target.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'payload'").fetchall()
        for name, _ in guards:
            target.execute(f'DROP TRIGGER "{name}"')
        sha256, data = target.execute("SELECT sha256, data FROM payload ORDER BY size DESC LIMIT 1").fetchone()
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        target.execute("UPDATE payload SET data = ? WHERE sha256 = ?", (changed, sha256))
        for _, sql in guards:
            target.execute(sql)
        target.commit()
    finally:
        source.close()
        target.close()
