"""`compare`: two runs from files or the ledger, the exit codes of the table, and the difference as JSON."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from measured import benchmark_run, summarised
from program import Program

from countermark.contracts.measurements.run import decimal


def write(program: Program, name: str, run: dict[str, Any]) -> Path:
    path = program.folder / name
    path.write_text(json.dumps(run))
    return path


def slower(run: dict[str, Any]) -> None:
    run["image"] = run["tuple"]["image"] = run["scope"]["image"] = "oci-manifest:sha256:" + "5e" * 32
    for item in run["observations"]:
        item["wall_s"] = decimal(Fraction(item["wall_s"]) * Fraction(5, 4))
    summarised(run)


@pytest.mark.slow  # a dozen starts that each bring in SciPy; `test_run_comparison` holds the same rules without them
def test_compare_says_first_whether_and_then_what(program: Program, box: Path) -> None:
    base, other = write(program, "base.json", benchmark_run()), write(program, "other.json", benchmark_run(slower))
    done = program("compare", base, other, "-o", "json")
    assert done.code == 0, done.err
    told = done.json["details"]
    assert (told["comparable"], told["difference"]["significant"], told["difference"]["pairs"]) == (True, True, 6)
    assert float(told["difference"]["value"]) < -0.15
    assert program("compare", base, other, "--max-regression", "5").code == 1
    assert program("compare", other, base, "--max-regression", "5").code == 0
    assert program("compare", base, other, "--max-regression", "x").code == 3
    recorded = program("record", "benchmark", base, "--ledger", box, "-o", "json")
    index = str(recorded.json["recorded"][0]["index"])
    assert program("compare", index, other, "--ledger", box).code == 0
    assert program("compare", recorded.json["recorded"][0]["payload"], other, "--ledger", box).code == 0
    assert program("compare", "0", other, "--ledger", box).code == 3
    assert program("compare", "nothing.json", other).code == 3


def test_an_undeclared_difference_is_named_and_exits_1(program: Program) -> None:
    base, candidate = benchmark_run(), benchmark_run(slower)
    candidate["conditions"]["seed"] = 12
    candidate["harness"]["version"] = None
    left, right = write(program, "base.json", base), write(program, "other.json", candidate)
    done = program("compare", left, right)
    assert done.code == 1
    assert "not comparable: /harness/version, /conditions/seed" in done.out
    assert program("compare", left, right, "--variable", "/conditions/seed").code == 1
    assert program("compare", left, right, "--variable", "/conditions/seed", "--variable", "/harness").code == 0
    assert program("compare", left, right, "--variable", "/conditions/top_p").code == 3


def test_too_few_pairs_and_the_same_run_twice(program: Program) -> None:
    few = write(program, "few.json", benchmark_run(tasks=4))
    other = write(program, "other.json", benchmark_run(slower, tasks=4))
    done = program("compare", few, other)
    assert done.code == 4
    assert "inconclusive: 4 pairs reach p = 0.125 at best" in done.out
    assert program("compare", few, few).code == 1
    broken = write(program, "broken.json", benchmark_run(lambda run: run["summary"].update(value="1"), tasks=4))
    assert program("compare", few, broken).code == 1
