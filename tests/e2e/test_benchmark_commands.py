"""`record benchmark`, `verify evidence`, `endorse`, `gate`: from a run's operands to the gate's answer, through the program."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from measured import IMAGE, benchmark_run
from program import Done, Program

RULES = "basis: [measured], max_age: none"
POLICY = f"""\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {{id: serving, version: 1}}
spec:
  channel: serving
  subject: {{kinds: [oci-manifest]}}
  trust: trust.yaml
  evidence: {{{RULES}}}
  requires:
    - {{id: rate, capability: decode.rate, scope: {{context_tokens: 500, concurrency: 1, draft_tokens: 3}}}}
  waivable: []
  never_waive: [IMAGE_REJECTED, SIG_INVALID, LEDGER_TAMPERED, SUBJECT_UNKNOWN, SCHEMA_INVALID]
  waiver_max_days: 14
"""


def raw(text: str) -> str:
    return f"response-raw:sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def quality(run: dict[str, Any], observed: str = "42") -> dict[str, Any]:
    outcome = "pass" if observed == "42" else "fail"
    check = {"id": "sum", "outcome": outcome, "required": "42", "observed": observed, "response": raw(observed), "rule": "exact"}
    used = {name: run["tuple"][name] for name in ("image", "model", "draft")}
    return {"tuple": used, "scope": run["scope"], "basis": "measured", "checks": [{**check, "normalisation": ["none"]}]}


class Bench:
    """A ledger with a policy, and files of measurements."""

    def __init__(self, program: Program, box: Path) -> None:
        self.program, self.box = program, box
        (box.parent / "serving.yaml").write_text(POLICY)

    def write(self, name: str, value: object) -> Path:
        path = self.program.folder / name
        path.write_text(json.dumps(value))
        return path

    def __call__(self, *arguments: str | Path) -> Done:
        return self.program(*arguments, "--ledger", self.box)

    def record(self, run: dict[str, Any], *options: str) -> Done:
        return self("record", "benchmark", self.write("run.json", run), *options, "-o", "json")

    def attest_quality(self, run: dict[str, Any], observed: str = "42") -> str:
        path = self.write("quality.json", quality(run, observed))
        about = ("--subject", IMAGE, "--type", "quality-report", "--predicate", path)
        done = self("attest", *about, "--key", self.box.parent / "keys" / "qualifier.pem", "-o", "json")
        assert done.code == 0, done.err
        return str(done.json["recorded"][0]["payload"])

    def endorse(self, done: Done) -> Done:
        return self("endorse", str(done.json["recorded"][0]["index"]), "-o", "json")

    def ask(self) -> tuple[str, str]:
        done = self("gate", IMAGE, "--policy", self.box.parent / "serving.yaml", "-o", "json")
        (requirement,) = done.json["decisions"][0]["core"]["requirements"]
        return requirement["code"], requirement["observed"]


@pytest.fixture
def bench(program: Program, box: Path) -> Bench:
    return Bench(program, box)


def test_a_whole_run_with_its_quality_report_is_allowed(bench: Bench) -> None:
    run = benchmark_run()
    run["quality"] = bench.attest_quality(run)
    done = bench.record(run)
    assert (done.code, done.json["findings"]) == (0, []), done.err
    assert done.json["statement"]["summary"]["interval"]["method"] == "order-statistic"
    assert "image" not in done.json["statement"]
    endorsed = bench.endorse(done)
    (receipt,) = endorsed.json["statements"]
    assert (receipt["outcome"], receipt["basis"], receipt["runs"], receipt["boots"]) == ("pass", "measured", 3, 3)
    assert set(receipt["controls"].values()) == {"pass"}
    assert bench.ask()[0] == "OK"


def test_a_failed_quality_report_fails_the_rate(bench: Bench) -> None:
    run = benchmark_run()
    run["quality"] = bench.attest_quality(run, "41")
    done = bench.record(run)
    assert [finding["checker"] for finding in done.json["findings"]] == ["bench.quality-attached"]
    assert bench.endorse(done).json["statements"][0]["outcome"] == "fail"
    assert bench.ask()[0] == "CAP_FAILED"


def test_a_run_of_one_boot_is_inconclusive_and_says_why(bench: Bench) -> None:
    run = benchmark_run(boots=1)
    run["quality"] = bench.attest_quality(run)
    done = bench.record(run)
    assert done.code == 0
    assert {finding["checker"] for finding in done.json["findings"]} >= {"bench.repetitions", "bench.output-length-band"}
    (receipt,) = bench.endorse(done).json["statements"]
    assert receipt["outcome"] == "inconclusive"
    assert any("bench.repetitions" in text for text in receipt["limitations"])
    assert bench.ask()[0] == "EVIDENCE_INCONCLUSIVE"


def test_a_receipt_that_says_more_than_its_run_is_contradicted(bench: Bench) -> None:
    run = benchmark_run(boots=1)
    run["quality"] = bench.attest_quality(run)
    controls = ("quality-passed", "repeats", "boots", "output-band", "interval")
    lie = {
        "capability": "decode.rate",
        "outcome": "pass",
        "basis": "measured",
        "scope": run["scope"],
        "controls": dict.fromkeys(controls, "pass"),
        "observed": run["observed"],
        "runs": 3,
        "boots": 3,
        "rests_on": [bench.record(run).json["recorded"][0]["payload"], run["quality"]],
        "limitations": [],
    }
    path = bench.write("lie.json", lie)
    about = ("--subject", IMAGE, "--type", "qualification-receipt", "--predicate", path)
    assert bench("attest", *about, "--key", bench.box.parent / "keys" / "qualifier.pem").code == 0
    code, observed = bench.ask()
    assert code == "RECEIPT_CONTRADICTED"
    assert "bench.repetitions" in observed


def test_a_run_that_contradicts_itself_is_not_recorded(bench: Bench) -> None:
    run = benchmark_run(lambda run: run["summary"].update(value="99"))
    done = bench.record(run)
    assert (done.code, done.json["verdict"]) == (1, "FAIL")
    (finding, *_) = done.json["findings"]
    assert (finding["checker"], finding["location"]["pointer"]) == ("bench.recompute", "/summary/value")
    assert "recorded" not in done.json
    assert bench("ledger", "stats", "-o", "json").json["ledger"]["size"] == 1


def test_a_run_that_observed_nothing_is_no_run(bench: Bench) -> None:
    assert bench.record(benchmark_run(lambda run: run.update(observations=[]))).code == 5


def test_an_interval_is_computed_where_there_is_none_and_never_over_too_few(bench: Bench) -> None:
    run = benchmark_run(lambda run: run["summary"].update(interval=None))
    done = bench.record(run, "--interval", "bootstrap:37")
    assert done.code == 0
    interval = done.json["statement"]["summary"]["interval"]
    assert interval["method"] == "bootstrap-percentile resamples=9999 seed=37"
    assert float(interval["low"]) < float(run["summary"]["value"]) < float(interval["high"])
    few = benchmark_run(lambda run: run["summary"].update(interval=None), tasks=3)
    assert bench.record(few, "--interval", "order-statistic").code == 4
    assert bench.record(run, "--interval", "by-eye").code == 3


def test_a_binding_fills_what_the_document_leaves_out_and_nothing_else(bench: Bench) -> None:
    run = benchmark_run(lambda run: run["conditions"].pop("seed"))
    done = bench.record(run, "--bind", "/conditions/seed=7 because the harness printed it")
    assert done.json["statement"]["conditions"]["seed"] == 7
    assert done.json["statement"]["bound_by"] == [{"field": "/conditions/seed", "value": "7", "why": "the harness printed it"}]
    assert bench.record(run, "--bind", "/conditions/top_p=0.9").code == 3
    assert bench.record(run, "--bind", "/conditions/seed=seven").code == 3
    assert bench.record(run, "--bind", "/nonsense/deep=1").code == 3


def test_a_run_is_judged_without_a_ledger(program: Program) -> None:
    path = program.folder / "run.json"
    path.write_text(json.dumps(benchmark_run()))
    done = program("verify", "evidence", path, "-o", "json")
    assert (done.code, [finding["code"] for finding in done.json["findings"]]) == (4, ["REF_NOT_HERE"])
    other = benchmark_run(lambda run: run["metric"].update(definition="decode.all"))
    path.write_text(json.dumps({**other, "quality": None}))
    done = program("verify", "evidence", path, "-o", "json")
    assert done.code == 1
    assert done.json["findings"][0]["checker"] == "bench.denominator-declared"
    path.write_text(json.dumps(benchmark_run(lambda run: run["summary"].update(n=6.0))))
    assert program("verify", "evidence", path).code == 3
