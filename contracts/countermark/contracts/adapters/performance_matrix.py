"""Operators' tables of rates: `sparkring-operator-performance-matrix/v1` (prefill by length, aggregate decode by length and concurrency)
and `sparkring-operator-prefill-snapshot/v1`.

Their prefill rates have operands and are computed again. Their decode rates are read off a display: no operands, no repetitions, so they
are quoted and nothing is claimed of them. Neither schema names an image, and the catalogue has no capability for prefill.
"""

from collections.abc import Iterable
from typing import Final

from countermark.attestations.codes import Code
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.notes import Case, Notes
from countermark.contracts.adapters.tables import Table
from countermark.contracts.measurements.definitions import DEFINITIONS

MATRIX: Final = "sparkring-operator-performance-matrix/v1"
PREFILL: Final = "sparkring-operator-prefill-snapshot/v1"
LEAST_SAMPLES: Final = 3
_RATES: Final = ("tokens_per_second", "displayed_client_tokens_per_second")


class PerformanceMatrix(Adapter):
    """Reads both tables."""

    name = "performance-matrix"
    version = 1
    tables = (
        Table(
            ("in the record", "gives"),
            (
                ("a prefill row", "the rate held against `prefill.ttft`, rounded; no claim, for no capability is about prefill"),
                ("`aggregate_decode/rows`", "every cell is there once; the rates refused: a display has no operands"),
                ("`highest_displayed_cell`, `coding_peak`, `throughput_change_8k_to_128k_percent`", "held against the table; no claim"),
                ("`maturity`, `configuration_status`", "refused: words of the operator's own"),
                ("`claim_boundaries`, `limitations`", "carried on as limitations"),
            ),
        ),
    )

    def recognises(self, root: Field) -> bool:
        """One of the two schemas."""
        return root["schema"].text in (MATRIX, PREFILL)

    def schema(self, root: Field) -> str:
        """The one that is stated."""
        return root["schema"].text or ""

    def read(self, case: Case, notes: Notes) -> None:
        """No claim; what does not follow from the table is found, and what nobody can compute is refused."""
        root = case.root
        prefill = root["prefill"]["rows"].elements or root["measurement"]["rows"].elements
        for row in prefill:
            _prefill(notes, row)
        _few(notes, prefill)
        _change(notes, root["interpretation"]["throughput_change_8k_to_128k_percent"], prefill)
        _decode(notes, root["aggregate_decode"])
        _peak(notes, root["coding_peak"])
        for word in (root["maturity"], root["configuration_status"]):
            if word.present:
                notes.refuse(word, f"{shown(word.value)} is no status that this adapter maps")
        notes.limits((*root["claim_boundaries"].elements, *root["limitations"].elements))
        notes.warn(
            root,
            Code.RECORD_UNMAPPED,
            "evidence.subject",
            required="the image that was measured",
            observed="no digest of an image",
            fix="record the image digest with the next table",
        )


def _rate(row: Field) -> Field:
    return next((row[name] for name in _RATES if row[name].present), row[_RATES[0]])


def _prefill(notes: Notes, row: Field) -> None:
    """The rate is the whole number next to prompt tokens over the time to the first token."""
    prompt, ttft, rate = row["prompt_tokens"].positive, row["client_ttft_seconds"].number, _rate(row)
    if prompt is None or ttft is None or ttft <= 0 or rate.number is None:
        notes.refuse(row, "a row without prompt tokens, time to first token or rate: nothing can be computed again")
        return
    made = DEFINITIONS["prefill.ttft"].compute(prompt, ttft)
    notes.hold(
        abs(rate.number - made) <= 0.5,
        rate,
        "bench.recompute",
        required=f"{made:.1f} by prefill.ttft = {DEFINITIONS['prefill.ttft'].formula}",
        observed=shown(rate.value),
        fix="publish the rate as it computes",
    )


def _few(notes: Notes, rows: Iterable[Field]) -> None:
    few = [row for row in rows if (row["visible_samples"].count or 0) < LEAST_SAMPLES]
    if few:
        notes.warn(
            few[0]["visible_samples"],
            Code.RUNS_TOO_FEW,
            "metric.min-sample",
            required=f"{LEAST_SAMPLES} samples a row",
            observed=f"fewer in {len(few)} rows",
            fix="measure each row more often, or call it a single observation",
        )


def _change(notes: Notes, stated: Field, rows: tuple[Field, ...]) -> None:
    ends = [_rate(row).number for row in (*rows[:1], *rows[-1:])]
    if stated.number is None or len(ends) < 2 or not ends[0] or ends[1] is None:
        return
    made = (ends[1] / ends[0] - 1) * 100
    notes.hold(
        abs(stated.number - made) <= 0.005,
        stated,
        "bench.recompute",
        required=f"{made:.2f} % from the first row to the last",
        observed=shown(stated.value),
        fix="compute the change from the table",
    )


def _decode(notes: Notes, table: Field) -> None:
    """Every row has the same cells, and the highest cell is the highest; the values themselves are a display's."""
    rows = table["rows"].elements
    if not rows:
        return
    notes.refuse(table["rows"], "aggregate rates of a display, without operands or repetitions: nobody can compute them again")
    columns = [{name for name, cell in row["concurrency"].members if cell.number is not None} for row in rows]
    for row, found in zip(rows, columns, strict=True):
        notes.hold(
            found == columns[0],
            row,
            "bench.coverage-exact",
            required=f"the cells {', '.join(sorted(columns[0]))}",
            observed=", ".join(sorted(found)) or "none",
            fix="report every cell of the table, each once",
        )
    highest = table["highest_displayed_cell"]["tokens_per_second"]
    cells = [cell.number for row in rows for _, cell in row["concurrency"].members if cell.number is not None]
    notes.hold(
        highest.number == max(cells, default=None) if highest.present else None,
        highest,
        "bench.recompute",
        required=f"{max(cells, default=0)}, the highest cell of the table",
        observed=shown(highest.value),
        fix="quote the table",
    )


def _peak(notes: Notes, peak: Field) -> None:
    passed, total = peak["runs_passed"].count, peak["runs_total"].count
    middle, highest = peak["median_tokens_per_second"].number, peak["maximum_tokens_per_second"].number
    if passed is None or total is None or middle is None or highest is None:
        return
    notes.refuse(peak, "a probe whose runs are not recorded one by one")
    notes.hold(
        passed <= total and middle <= highest,
        peak,
        "bench.recompute",
        required="no more runs passed than ran, and no median above the maximum",
        observed=f"{passed} of {total}, median {middle:g}, maximum {highest:g}",
        fix="publish the summary as it computes",
    )
