"""Results of `vllm bench serve`: three server starts become one run that bears its claim, and a result that was edited is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest
from measured import benchmark_run
from program import Program


def result(boot: int, requests: int = 6) -> dict[str, Any]:
    """A result as vLLM writes one with --save-detailed."""
    ttfts = [0.25 + 0.01 * number for number in range(requests)]
    itls = [[1 / (20 + number * 0.4 + boot * 0.01)] * 400 for number in range(requests)]
    duration = sum(ttft + sum(gaps) for ttft, gaps in zip(ttfts, itls, strict=True)) + 0.5
    return {
        "date": "20261005-080000",
        "backend": "vllm",
        "model_id": "tiny-7b",
        "num_prompts": requests,
        "request_rate": "inf",
        "max_concurrency": 1,
        "duration": duration,
        "completed": requests,
        "failed": 0,
        "total_input_tokens": sum(100 + number for number in range(requests)),
        "total_output_tokens": 401 * requests,
        "output_throughput": 401 * requests / duration,
        "input_lens": [100 + number for number in range(requests)],
        "output_lens": [401] * requests,
        "ttfts": ttfts,
        "itls": itls,
        "generated_texts": ["x"] * requests,
        "errors": [""] * requests,
        "mean_ttft_ms": mean(ttfts) * 1000,
        "median_ttft_ms": median(ttfts) * 1000,
    }


def frame() -> dict[str, Any]:
    run = benchmark_run()
    left_out = ("observations", "boots", "repeats_of_identical_task")
    summary = {"statistic": "median", "method": "mean-of-middle", "sampling_unit": "prompt"}
    return {**{name: value for name, value in run.items() if name not in left_out}, "summary": summary, "quality": None}


def write(folder: Path, name: str, value: object) -> str:
    (folder / name).write_text(json.dumps(value))
    return name


@pytest.fixture
def files(program: Program) -> list[str]:
    return [write(program.folder, f"boot-{boot}.json", result(boot)) for boot in range(3)]


def test_three_server_starts_are_one_run(program: Program, box: Path, files: list[str]) -> None:
    about = ("--frame", write(program.folder, "frame.json", frame()), "--ledger", box)
    done = program("record", "benchmark", *files, *about, "--interval", "order-statistic", "-o", "json")
    assert done.code == 0, done.err
    run = done.json["statement"]
    assert (run["boots"], run["repeats_of_identical_task"], run["summary"]["n"], len(run["observations"])) == (3, 3, 6, 18)
    assert run["harness"]["name"] == "lab-bench"
    assert float(run["summary"]["value"]) == pytest.approx(21.01)
    assert {item["finish"] for item in run["observations"]} == {"stop"}
    assert [window["id"] for window in run["windows"]] == ["boot-0", "boot-1", "boot-2"]
    assert [finding["checker"] for finding in done.json["findings"]] == ["bench.quality-attached"]
    aggregate = {**frame(), "metric": {"name": "throughput", "definition": "output.aggregate", "unit": "tokens/s"}}
    aggregate["summary"] = {"statistic": "mean", "sampling_unit": "run"}
    other = program("record", "benchmark", *files, "--frame", write(program.folder, "other.json", aggregate), "--ledger", box, "-o", "json")
    wanted = mean(result(boot)["output_throughput"] for boot in range(3))
    assert float(other.json["statement"]["summary"]["value"]) == pytest.approx(wanted)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], int]] = {
    "another total": (lambda it: it.update(total_output_tokens=9), 1),
    "another throughput": (lambda it: it.update(output_throughput=99.0), 1),
    "a faster first token": (lambda it: it["ttfts"].__setitem__(0, 0.01), 1),
    "a request less": (lambda it: it["ttfts"].pop(), 1),
    "no details": (lambda it: [it.pop(name) for name in ("ttfts", "itls")], 3),
    "a time that is text": (lambda it: it["ttfts"].__setitem__(0, "0.25"), 3),
    "a negative gap": (lambda it: it["itls"][0].__setitem__(0, -1.0), 3),
    "negative tokens": (lambda it: it["output_lens"].__setitem__(0, -1), 3),
    "more at once than the frame says": (lambda it: it.update(max_concurrency=8), 3),
    "no duration": (lambda it: it.update(duration=0), 3),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_result_that_was_edited_is_refused(program: Program, box: Path, files: list[str], name: str) -> None:
    change, code = CHANGES[name]
    edited = result(1)
    change(edited)
    write(program.folder, "boot-1.json", edited)
    about = ("--frame", write(program.folder, "frame.json", frame()), "--ledger", box)
    assert program("record", "benchmark", *files, *about).code == code


def test_a_failed_request_is_no_sample_and_is_told(program: Program, box: Path, files: list[str]) -> None:
    failing = result(2)
    failing["errors"][5] = "timed out"
    for name in ("output_throughput", "total_output_tokens", "total_input_tokens", "completed", "mean_ttft_ms", "median_ttft_ms"):
        del failing[name]
    write(program.folder, "boot-2.json", failing)
    about = ("--frame", write(program.folder, "frame.json", frame()), "--ledger", box)
    done = program("record", "benchmark", *files, *about, "-o", "json")
    assert done.code == 0
    assert "bench.errors-zero" in [finding["checker"] for finding in done.json["findings"]]
    assert done.json["statement"]["repeats_of_identical_task"] == 2


def test_several_files_need_a_frame_and_names_of_their_own(program: Program, box: Path, files: list[str]) -> None:
    assert program("record", "benchmark", *files, "--ledger", box).code == 2
    (program.folder / "again").mkdir()
    again = write(program.folder, "again/boot-0.json", result(0))
    about = ("--frame", write(program.folder, "frame.json", frame()), "--ledger", box)
    assert program("record", "benchmark", *files, again, *about).code == 3
    (program.folder / "boot-0.json").write_text('{"ttfts": [NaN]}')
    assert program("record", "benchmark", *files, *about).code == 3
    (program.folder / "boot-0.json").write_text("[]")
    assert program("record", "benchmark", *files, *about).code == 3
