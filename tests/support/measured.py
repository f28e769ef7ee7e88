"""Benchmark runs for tests: one that bears a serving claim, and edits of it."""

import copy
from collections.abc import Callable
from typing import Any

IMAGE = "oci-manifest:sha256:" + "4d" * 32
QUALITY = "payload:sha256:" + "9a" * 32
JsonObject = dict[str, Any]


def observations(boots: int = 3, tasks: int = 6) -> list[JsonObject]:
    """Each task once a boot; rates of 20 to 22 tokens/s that differ by task and a little by boot."""
    return [
        {
            "id": f"t{task}-b{boot}",
            "boot": f"b{boot}",
            "group": f"t{task}",
            "prompt_tokens": 100 + task,
            "completion_tokens": 401,
            "wall_s": f"{400 / (20 + task * 0.4 + boot * 0.01) + 0.5:.6f}",
            "ttft_s": "0.5",
            "finish": "stop",
        }
        for boot in range(boots)
        for task in range(tasks)
    ]


def summarised(run: JsonObject, *, level: str = "0.95", method: str | None = "order-statistic") -> JsonObject:
    """The run with the summary that its observations give, and an interval where a method is named."""
    from fractions import Fraction

    from countermark.contracts.measurements.estimate import interval
    from countermark.contracts.measurements.run import BenchmarkRun, decimal

    run["summary"] |= {"value": "0", "n": 0, "interval": None}
    read = BenchmarkRun.of(run)
    samples = read.samples() or []
    run["summary"] |= {"value": decimal(read.summary.of(samples)), "n": len(samples)}
    made = interval(samples, read.summary, Fraction(level), method) if method else None
    if made:
        run["summary"]["interval"] = {"low": decimal(made.low), "high": decimal(made.high), "level": level, "method": made.method}
    return run


def benchmark_run(change: Callable[[JsonObject], object] = lambda run: None, **sizes: int) -> JsonObject:
    """A run that nothing speaks against and that lacks nothing but the quality report itself; `change` edits it afterwards."""
    model = {"repository": "example/Tiny-7B", "revision": "d4927dda05af693bff7dfd4c7b40eafb0ef92a78"}
    draft = {"repository": "example/Tiny-7B-Draft", "revision": "0e7766b460fd2a39a2fd81d4a3a636b033b52be4"}
    observed = observations(**sizes)
    run: JsonObject = {
        "image": IMAGE,
        "tuple": {"image": IMAGE, "model": model, "draft": draft, "source": "git-commit:" + "ae" * 20},
        "scope": {
            "image": IMAGE,
            "topology": {"tp": 2, "dcp": 1, "pp": 1},
            "hardware": {"system": "Example Box", "accelerator": "X1"},
            "model": model,
            "draft": draft,
            "cells": [{"context_tokens": 500, "concurrency": 1, "draft_tokens": 3}],
        },
        "harness": {"name": "lab-bench", "version": "2.4", "digest": "file:sha256:" + "49" * 32, "command_sha256": "5d" * 32},
        "observed": {"from": "2026-10-05T08:00:00Z", "to": "2026-10-05T08:30:00Z"},
        "conditions": {
            "temperature": "0",
            "top_p": "1",
            "seed": 11,
            "ignore_eos": False,
            "max_tokens": 512,
            "prefix_cache": "off",
            "external_cache": "off",
            "cache_state": "cold",
            "thinking": "none",
            "warmup_requests": 2,
        },
        "metric": {"name": "decode_rate", "definition": "decode.excl-first", "unit": "tokens/s"},
        "observations": observed,
        "summary": {"statistic": "median", "method": "mean-of-middle", "sampling_unit": "prompt"},
        "repeats_of_identical_task": sizes.get("boots", 3),
        "boots": sizes.get("boots", 3),
        "quality": QUALITY,
        "evidence_state": {"source_reported": True, "site_reproduced": True, "independent_runs": 0},
    }
    summarised(run)
    run = copy.deepcopy(run)
    change(run)
    return run
