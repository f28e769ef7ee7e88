"""The reports of `restore write`, `inspect`, `run` and `qualify`."""

from pathlib import Path
from typing import Any

from countermark.actions.restore.qualify import Qualified
from countermark.actions.restore.run import Ran
from countermark.actions.restore.write import Written
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.cli.report import Report
from countermark.cuda_restore.inspect import Inspection
from countermark.cuda_restore.multirank import RankRun
from countermark.cuda_restore.result import RestoreOutcome

_CHECKERS = {
    "1-signed-root": "restore.manifest-authenticated",
    "2-coverage": "restore.placement-exact",
    "3-readback": "restore.readback",
    "4-oracle": "restore.semantic-oracle",
    "5-live": "restore.semantic-oracle",
}


def written_report(written: Written, plan: Path | None) -> Report:
    """Where each rank's manifest lies, and what it lists."""
    lines = []
    for one in written.manifests:
        found = one.manifest
        lines += [str(one.path), f"  rank {found.identity.rank}: {len(found.objects)} objects, {found.encoded_bytes} bytes, {one.digest}"]
    return Report(
        evaluated=len(written.manifests),
        of=len(written.manifests),
        text="\n".join([*lines, *([f"plan {plan}"] if plan else [])]),
        extra={
            "subjects": [str(one.digest) for one in written.manifests],
            "manifests": [str(one.path) for one in written.manifests],
            "chunks": str(written.chunks),
            "plan": str(plan) if plan else None,
        },
    )


def inspection_report(found: Inspection, findings: tuple[Finding, ...]) -> Report:
    """Everything that the manifest says, and whether its numbers agree."""
    told = found.to_json()
    lines = [f"{name:<18} {_plain(value)}" for name, value in told.items() if name not in ("geometry", "arithmetic")]
    lines += [f"{'geometry':<18} {_plain(found.geometry)}"] if found.geometry else ["geometry           not known without --layout"]
    lines += [f"{'holds' if number.holds else 'WRONG':<18} {number.name}: {number.rule} = {number.computed}" for number in found.arithmetic]
    return Report(
        exit=ExitCode.NO if findings else ExitCode.YES,
        evaluated=len(found.arithmetic),
        of=len(found.arithmetic),
        findings=findings,
        text="\n".join(lines),
        extra=told,
    )


def _plain(value: JsonValue) -> str:
    """A value for people: members as `name value`, one behind the other, objects of a list a line each."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(member)}" for name, member in value.items())
    if isinstance(value, list):
        objects = any(isinstance(item, dict) for item in value)
        return "".join(f"\n{'':<18} {_plain(item)}" for item in value) if objects else " ".join(map(_plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not known" if value is None else str(value)


def run_report(ran: Ran) -> Report:
    """What every rank came to, and what is not known of those that were not given."""
    verified = ran.outcome is RestoreOutcome.VERIFIED
    trace = {"events": len(ran.trace.splitlines()), "digest": str(Digest.of(DigestKind.FILE, ran.trace))}
    return Report(
        exit=ExitCode.YES if verified else ExitCode.NO,
        evaluated=len(ran.runs),
        of=len(ran.runs) + len(ran.missing),
        findings=ran.findings,
        not_evaluated=tuple(f"rank {rank} was not given, so nothing is said of all ranks" for rank in ran.missing),
        text="\n".join([line for place in range(len(ran.runs)) for line in _rank_lines(ran, place)] + [f"outcome {ran.outcome}"]),
        extra={
            "outcome": str(ran.outcome),
            "ranks": [_rank_json(ran, run) for run in ran.runs],
            "devices": [{"kind": str(info.kind), "name": info.name, "driver": str(info.driver)} for info in ran.devices],
            "trace": trace,
        },
    )


def _rank_json(ran: Ran, run: RankRun) -> dict[str, Any]:
    failure, limit = run.result.failure, ran.limits.get(run.result.rank)
    told = {"phase": str(failure.phase), "object": failure.object, "cause": failure.cause} if failure else None
    size = run.result.counters.source_bytes
    return {
        **run.result.to_json(),
        "bytes_per_second": run.result.bytes_per_second,
        "limit_us": limit.microseconds(size) if limit else None,
        "failure": told,
    }


def _rank_lines(ran: Ran, place: int) -> list[str]:
    """A rank's result; of a verified one the rate, never without its decomposition and the limit of the same run."""
    result, info = ran.runs[place].result, ran.devices[place]
    head = f"rank {result.rank}  {result.outcome}  {info.name}"
    failure, limit = result.failure, ran.limits.get(result.rank)
    if failure or limit is None:
        where = f" at object {failure.object}" if failure and failure.object is not None else ""
        return [f"{head}  failed in {failure.phase}{where} [{failure.cause}]" if failure else head]
    size, timing = result.counters.source_bytes, result.timing
    least = limit.microseconds(size)
    parts = " + ".join(f"{phase} {spent}" for phase, spent in timing.phases.items())
    share = f"{100 * least // max(timing.total, 1)} % of the limit that this run measured, {least} µs"
    return [
        f"{head}  {result.objects} objects, {size} bytes in {timing.total} µs, {result.bytes_per_second // 1_000_000} MB/s, {share}",
        f"  {parts} = {timing.total} µs",
        f"  readers: {timing.readers_read} µs reading, {timing.readers_hash} µs hashing, {limit.workers} at once at the limit",
    ]


def qualified_report(done: Qualified, link: Path | None) -> Report:
    """Every rung with its controls, the ranks, and what was appended."""
    run, planned = done.run, done.found.plan.rungs
    climbed = [name for name, rung in run["rungs"].items() if int(name[0]) in planned and rung["outcome"] != "not-run"]
    recorded = [item.receipt.to_json() for item in done.appended]
    return Report(
        exit=done.exit,
        evaluated=len(climbed),
        of=len(planned),
        findings=_rung_findings(done),
        ledger=done.head.to_json(),
        text="\n".join(_qualified_lines(done, link)),
        extra={
            "recorded": recorded,
            "statements": [item.statement.predicate for item in done.appended],
            "outcome": run["outcome"],
            "link": [str(path) for path in done.link],
        },
    )


def _qualified_lines(done: Qualified, link: Path | None) -> list[str]:
    run, device = done.run, done.run["device"]
    lines = [
        f"plan {done.found.plan.id}@{done.found.plan.version}  {run['plan']}",
        f"device {device['kind']} {device.get('name', '')}".rstrip(),
    ]
    for name, rung in run["rungs"].items():
        caught = sum(control["outcome"] == "pass" for control in rung["controls"])
        controls = f"  {caught} of {len(rung['controls'])} controls held" if rung["controls"] else ""
        lines.append(f"  {name:<14} {rung['outcome']}{controls}{'  ' + rung['reason'] if 'reason' in rung else ''}")
    lines += [f"rank {rank['rank']}  structural {rank['structural']}, {rank['bytes']} bytes" for rank in run["ranks"]]
    if "answer" in run:
        lines.append(f"answer required {run['answer']['required']!r}: {run['answer']['outcome']}")
    lines.append(f"outcome {run['outcome']}, trace of {run['trace']['events']} events {run['trace']['digest']}")
    for item in done.appended:
        predicate: Any = item.statement.predicate
        said = f"{predicate['capability']}: {predicate['outcome']}, {predicate['basis']}" if "capability" in predicate else "restore-run"
        lines.append(f"entry {item.receipt.index}  {said}")
    if len(done.appended) == 1:
        lines.append("no receipt is derived" if done.found.plan.image else "the plan names no image, so nothing is derived for any")
    if device["kind"] != "cuda":
        lines.append(f"note: it ran on a {device['kind']} device, which qualifies no image for serving")
    if link:
        lines.append(f"link {done.link[0]}" if done.link else "no link is written for a run that did not pass")
    return lines


def _rung_findings(done: Qualified) -> tuple[Finding, ...]:
    """What the ranks came to, then every rung that did not pass, with its reason."""
    found = list(done.found.ranks.verdict.findings)
    for name, rung in done.run["rungs"].items():
        outcome = Outcome(rung["outcome"])
        if outcome not in (Outcome.PASS, Outcome.NOT_RUN):
            code = Code.RECOMPUTE if outcome is Outcome.FAIL else Code.EVIDENCE_INCONCLUSIVE
            fix = "recompute the prefix, and find out why" if outcome is Outcome.FAIL else "mend the control, and qualify again"
            found.append(Finding(code, outcome, fix, checker=_CHECKERS[name], subject=name, required="pass", observed=rung.get("reason")))
    return tuple(found)
