"""Tables of rates: what has operands is computed again, what was read off a display is refused, and nothing is claimed of an image."""

from collections.abc import Callable
from typing import Any

import pytest

from countermark.attestations.codes import ExitCode

from .evidence_records import PUBLISHED, Record, checkers, load


def matrix() -> Record:
    """A table of ours in the shape of an operator's."""
    rows = [
        {"context_label": "4K", "prompt_tokens": 4096, "client_ttft_seconds": 4.0, "tokens_per_second": 1024, "visible_samples": 4},
        {"context_label": "8K", "prompt_tokens": 8192, "client_ttft_seconds": 8.5, "tokens_per_second": 964, "visible_samples": 3},
    ]
    cells = [{"context_label": label, "concurrency": {"1": 20.0 - n, "8": 70.5 - n}} for n, label in enumerate(("4K", "8K"))]
    highest = {"context_label": "4K", "concurrency": 8, "tokens_per_second": 70.5}
    peak = {"runs_passed": 5, "runs_total": 5, "median_tokens_per_second": 27.3, "maximum_tokens_per_second": 28.8}
    value: dict[str, Any] = {
        "schema": "sparkring-operator-performance-matrix/v1",
        "maturity": "accepted",
        "prefill": {"concurrency": 1, "rows": rows},
        "aggregate_decode": {"rows": cells, "highest_displayed_cell": highest},
        "coding_peak": peak,
        "interpretation": {"throughput_change_8k_to_128k_percent": -5.86},
        "claim_boundaries": ["Decode values are aggregate."],
    }
    return Record("matrix.json", value)


def test_a_table_that_holds_together_claims_nothing() -> None:
    reading = matrix().read()
    assert (reading.claims, reading.exit, checkers(reading, "block")) == ((), ExitCode.NOTHING, [])
    assert checkers(reading, "warn") == ["evidence.subject"]
    assert [item.pointer for item in reading.refused] == ["/aggregate_decode/rows", "/coding_peak", "/maturity"]


CHANGES: dict[str, tuple[Callable[[Any], object], list[str]]] = {
    "a rate": (lambda it: it["prefill"]["rows"][1].update(tokens_per_second=1000), ["bench.recompute", "bench.recompute"]),
    "the change": (lambda it: it["interpretation"].update(throughput_change_8k_to_128k_percent=-2.0), ["bench.recompute"]),
    "a hole": (lambda it: it["aggregate_decode"]["rows"][1]["concurrency"].pop("8"), ["bench.coverage-exact"]),
    "the highest cell": (lambda it: it["aggregate_decode"]["highest_displayed_cell"].update(tokens_per_second=80.0), ["bench.recompute"]),
    "more passed than ran": (lambda it: it["coding_peak"].update(runs_passed=6), ["bench.recompute"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_number_that_the_table_does_not_give_is_told(name: str) -> None:
    change, wanted = CHANGES[name]
    record = matrix()
    change(record.value)
    reading = record.read()
    assert (checkers(reading, "block"), reading.exit) == (wanted, ExitCode.NO)


@pytest.mark.parametrize("junk", [None, 0, -1, "12", 1.5, [], {}, True, float(2**60)])
def test_whatever_stands_in_a_table_is_read_without_a_crash(junk: Any) -> None:
    def spoil(value: Any) -> None:
        for row in value["prefill"]["rows"]:
            row["prompt_tokens"] = row["visible_samples"] = junk
        value["aggregate_decode"]["rows"][0] = junk
        value["coding_peak"] = value["claim_boundaries"] = junk

    assert matrix().changed(spoil).read().claims == ()


@pytest.mark.skipif(not PUBLISHED.exists(), reason="../shared holds the published records, and is not beside this checkout")
@pytest.mark.parametrize("name", ["matrix-20260813.json", "prefill-20260813.json"])
def test_the_published_tables_recompute(name: str) -> None:
    reading = load(PUBLISHED / "sparkring" / "performance" / "records" / "glm-3.5bpw", name).read()
    assert checkers(reading, "block") == []
    assert checkers(reading, "warn") == ["metric.min-sample", "evidence.subject"]
    assert reading.exit is ExitCode.NOTHING
