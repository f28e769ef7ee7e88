"""`quality run`: ask a served model the questions of a ProbeSet, keep each raw response by its digest, and judge what came.

The one command of the program that asks a server of its own accord, and only the one that it is given. A server that cannot be asked is
no failure of the model: its check is an `error`, and those behind it were not run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countermark.actions.clock import now
from countermark.actions.new_files import write_new
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.documents import exists, load_document, read_file
from countermark.attestations.errors import InputError, Location
from countermark.attestations.outcomes import quality_outcome
from countermark.contracts.quality.probes import Probe, ProbeSet
from countermark.cuda_restore.openai_client import EndpointError, Url, complete

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class QualityRun:
    """The report that was made, and the raw responses by the hex of their SHA-256."""

    report: Mapping[str, Any]
    responses: Mapping[str, bytes]
    unreachable: str | None

    @property
    def outcome(self) -> Outcome:
        """The roll-up of the checks, which the report itself does not hold."""
        return quality_outcome(dict(self.report))

    @property
    def exit(self) -> ExitCode:
        """0 every check passed, 1 one failed, 4 something could not be told."""
        return {Outcome.PASS: ExitCode.YES, Outcome.FAIL: ExitCode.NO}.get(self.outcome, ExitCode.CANNOT_TELL)


def run_probes(path: Path, endpoint: str, progress: Progress) -> QualityRun:
    """Ask every question in its order. `InputError` for a ProbeSet or an address that has no meaning."""
    probes = ProbeSet.of(load_document(read_file(path), str(path), "ProbeSet"))
    url = Url.parse(endpoint)
    begun = str(now())
    asked = _Asked(url, probes.timeout_s)
    for number, probe in enumerate(probes.probes):
        progress(number, len(probes.probes))
        asked.ask(probe)
    progress(len(probes.probes), len(probes.probes))
    report = {
        "tuple": dict(probes.used),
        "scope": dict(probes.scope),
        "basis": "measured",
        "observed": {"from": begun, "to": str(now())},
        "checks": asked.checks,
    }
    return QualityRun(report, asked.responses, asked.unreachable)


class _Asked:
    """The checks so far, and what stopped the run."""

    def __init__(self, url: Url, timeout_s: float) -> None:
        self._url, self._timeout_s = url, timeout_s
        self.checks: list[dict[str, Any]] = []
        self.responses: dict[str, bytes] = {}
        self.unreachable: str | None = None
        self._stopped_by: str | None = None

    def ask(self, probe: Probe) -> None:
        """Ask one question, unless an earlier one stopped the run."""
        if self._stopped_by:
            self.checks.append(probe.check(Outcome.SKIPPED, cause=self._stopped_by))
            return
        try:
            raw = complete(self._url, probe.request, timeout_s=self._timeout_s).text.encode()
        except EndpointError as error:
            self.unreachable = self.unreachable or str(error)
            self.checks.append(probe.check(Outcome.ERROR, error.message))
            self._stopped_by = probe.id
            return
        check = probe.judged(raw)
        self.responses[check["response"].rpartition(":")[2]] = raw
        self.checks.append(check)
        if probe.stops and check["outcome"] != Outcome.PASS:
            self._stopped_by = probe.id


def write_run(run: QualityRun, report: Path, responses: Path) -> None:
    """Write the report, and each raw response as a file named by its SHA-256. Nothing that is there is overwritten."""
    import json

    responses.mkdir(parents=True, exist_ok=True)
    for hexed, raw in run.responses.items():
        if not exists(responses / hexed):
            write_new(responses / hexed, raw)
    write_new(report, (json.dumps(run.report, indent=2, ensure_ascii=False) + "\n").encode())


def check_free(report: Path) -> None:
    """`InputError` where the report could not be written after all questions have been asked."""
    if exists(report):
        raise InputError(
            Code.UNREADABLE, "it exists and is not overwritten", at=Location(str(report)), fix="choose another place with --report"
        )
