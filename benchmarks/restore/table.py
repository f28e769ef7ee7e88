"""The report as text."""

from collections.abc import Iterator

from benchmarks.restore.report import Decomposition, Limit, Row, SetReport


def set_lines(found: SetReport) -> Iterator[str]:
    """One data set in one state."""
    state = found.state
    yield f"{state.encoded_bytes:,} bytes in {state.objects} objects, {state.name} ({state.resident_share:.0%} in the page cache)"
    yield f"  medians of the {found.kept} quietest of {found.measured} rounds; others took {found.others_share:.0%} of the cores meanwhile"
    yield f"  limit {_limit(found.limit)}"
    yield ""
    yield f"  {'':<24}{'ms':>8}{'least':>8}{'most':>8}{'core ms':>9}{'GB/s':>7}{'x ours':>8}  SHA-256  places pages"
    for row in found.rows:
        yield f"  {row.name:<24}" + (f"skipped: {row.skipped}" if row.skipped else _row(row))
    yield ""
    work = "" if found.work_ratio is None else f"; the limit's core ms by ours {found.work_ratio:.3f}"
    yield f"  limit by ours {found.limit_ratio:.3f}{work}"
    yield from decomposition_lines(found.decomposition)
    for goal in found.goals:
        yield f"  {'met    ' if goal.met else 'NOT MET'}  {goal.text}: {goal.found:.3f}"


def decomposition_lines(found: Decomposition) -> Iterator[str]:
    """The coordinating thread's phases, which add up to the total, and the readers' own time beside them."""
    total = max(found.timing_us["total"], 1)
    for name, spent in found.timing_us.items():
        share = "" if name.startswith("readers_") else f"{spent / total:>8.1%}"
        yield f"    {name:<20}{spent / 1000:>9.1f} ms{share}"
    yield f"    at most {found.readers_max} objects read at once, {found.retained_bytes_max:,} bytes retained"


def _limit(limit: Limit) -> str:
    costs = f"(read {limit.read_ms:.1f} + hash {limit.hash_ms:.1f} + place {limit.place_ms:.1f}) / {limit.shared_by_cores} cores"
    disk = "" if limit.disk_ms is None else f", or disk {limit.disk_ms:.1f}"
    return f"{limit.limit_ms:.1f} ms = {costs}{disk}"


def _row(row: Row) -> str:
    times = f"{row.ms:>8.1f}{row.least_ms:>8.1f}{row.most_ms:>8.1f}{row.processor_ms:>9.1f}{row.gb_per_s:>7.2f}{row.times_ours:>8.2f}"
    return f"{times}  {'yes' if row.authenticates else 'no':<9}{'yes' if row.places else 'no'}"
