"""Rung 5: an honest server passes, each way of lying does not, and what cannot be judged stays inconclusive."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_server import (
    DRIP,
    LOCAL,
    MODEL,
    RESTORED,
    SHORT,
    Busy,
    Confused,
    Forgetful,
    Hanging,
    LocalCache,
    OracleService,
    Recomputing,
    Restarting,
    Saying,
    Uncounted,
    Unready,
    completion,
    prime,
    save,
    serving,
    stored_request,
)

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.cuda_restore.cpu_device import CpuDevice
from countermark.cuda_restore.live import LiveReport, LiveTest, Metrics, ask_live
from countermark.cuda_restore.openai_client import Url
from countermark.cuda_restore.oracle import Oracle
from countermark.cuda_restore.oracle_prompt import FILLERS, OracleShape, write_prompt
from countermark.cuda_restore.oracle_snapshot import publish_caches
from countermark.cuda_restore.questions import Question

SHAPE = OracleShape(layers=2, ranks=2, tokens=512)
RED, BLUE = write_prompt(SHAPE, "red"), write_prompt(SHAPE, "blue", episode=1)
GREEN = RED.with_codeword("green")
FILLER = next(position for position, token in enumerate(RED.tokens) if token < FILLERS)
CHECKS = ("exact-answer", "restore-happened", "negative-control", "recompute-control")

Make = Callable[[CpuDevice, Path], OracleService]


@pytest.fixture
def device() -> Iterator[CpuDevice]:
    with CpuDevice() as made:
        yield made


def live_test(address: str, folder: Path, **changes: Any) -> LiveTest:
    asked = {"red": RED, "blue": BLUE, "green": GREEN}
    questions = {word: Question.load(save(folder, word, stored_request(prompt)), word) for word, prompt in asked.items()}
    fields: dict[str, Any] = {
        "endpoint": Url.parse(f"{address}/v1/completions"),
        "model": MODEL,
        "prompts": (questions["red"], questions["blue"]),
        "control": questions["green"],
        "metrics": Metrics(Url.parse(f"{address}/metrics"), RESTORED, LOCAL),
        "committed_tokens": SHAPE.tokens,
        "timeout_s": 5.0,
        "settle_s": 0.0,
    }
    return LiveTest(**(fields | changes))


def asked(service: OracleService, folder: Path, **changes: Any) -> LiveReport:
    with serving(service) as address:
        return ask_live(live_test(address, folder, **changes))


def outcomes(report: LiveReport) -> dict[str, str]:
    assert tuple(check.name for check in report.checks) == CHECKS
    return {check.name: str(check.outcome) for check in report.checks}


def test_an_honest_server_passes(device: CpuDevice, tmp_path: Path) -> None:
    service = OracleService(device, tmp_path, SHAPE)
    prime(service, [RED, BLUE])
    report = asked(service, tmp_path)
    assert (report.outcome, report.reason) == (Outcome.PASS, None)
    assert outcomes(report) == dict.fromkeys(CHECKS, "pass")
    assert (service.restored, service.published) == (2 * SHAPE.tokens, 3)
    red = str(Digest.of(DigestKind.RESPONSE_RAW, b"red"))
    assert report.answer == {"required": "red", "raw": red, "normalisation": ["none"], "outcome": "pass"}


def test_a_misordered_snapshot_answers_spark_and_fails(device: CpuDevice, tmp_path: Path) -> None:
    """Every digest is right, the restore is verified and counted; the answer is not."""
    caches = Oracle(SHAPE).prefill(RED)
    caches[1][:, :, [2, 5]] = caches[1][:, :, [5, 2]].copy()
    publish_caches(tmp_path, SHAPE, RED, [np.ascontiguousarray(cache) for cache in caches], object_bytes=100_000)
    service = OracleService(device, tmp_path, SHAPE)
    prime(service, [BLUE])
    report = asked(service, tmp_path)
    assert report.outcome is Outcome.FAIL
    assert outcomes(report) == dict.fromkeys(CHECKS, "pass") | {"exact-answer": "fail"}
    assert report.reason == "exact-answer: 'spark' was answered where 'red' is required"
    assert report.answer is not None
    assert report.answer["raw"] == str(Digest.of(DigestKind.RESPONSE_RAW, b"spark"))


def test_a_rank_that_lost_its_objects_is_recomputed(device: CpuDevice, tmp_path: Path) -> None:
    """No partial success: the answer is right, and nothing was restored."""
    service = OracleService(device, tmp_path, SHAPE)
    prime(service, [RED, BLUE])
    for path in (tmp_path / "chunks").iterdir():
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    report = asked(service, tmp_path)
    assert outcomes(report)["exact-answer"] == "pass"
    assert outcomes(report)["restore-happened"] == "inconclusive"
    assert report.outcome is Outcome.INCONCLUSIVE


LIARS: list[tuple[str, Make, dict[str, str], str]] = [
    (
        "right without restoring",
        lambda device, root: Recomputing(device, root, SHAPE),
        {"restore-happened": "inconclusive"},
        "0 of 512 tokens were restored",
    ),
    (
        "right out of its own memory",
        lambda device, root: LocalCache(device, root, SHAPE),
        {"restore-happened": "inconclusive", "negative-control": "inconclusive", "recompute-control": "inconclusive"},
        "512 tokens came from the server's own cache",
    ),
    (
        "restoring a part",
        lambda device, root: Forgetful(device, root, SHAPE),
        {"restore-happened": "inconclusive"},
        "256 of 512 tokens were restored",
    ),
    (
        "always red",
        lambda device, root: Saying(device, root, SHAPE, "red"),
        {"exact-answer": "fail", "negative-control": "fail", "recompute-control": "inconclusive"},
        "'red' was answered where 'blue' is required",
    ),
    (
        "always wrong",
        lambda device, root: Saying(device, root, SHAPE, " Spark"),
        {"exact-answer": "fail", "negative-control": "fail", "recompute-control": "inconclusive"},
        "' Spark' was answered where 'red' is required",
    ),
    (
        "one prefix for another",
        lambda device, root: Confused(device, root, SHAPE),
        {"exact-answer": "fail", "negative-control": "fail", "recompute-control": "inconclusive"},
        "512 tokens of another prompt were restored for it",
    ),
    (
        "other clients",
        lambda device, root: Busy(device, root, SHAPE),
        dict.fromkeys(CHECKS, "inconclusive"),
        "so the server has other clients",
    ),
]


@pytest.mark.parametrize(("make", "differ", "reason"), [row[1:] for row in LIARS], ids=[row[0] for row in LIARS])
def test_a_server_that_lies_does_not_pass(device: CpuDevice, tmp_path: Path, make: Make, differ: dict[str, str], reason: str) -> None:
    service = make(device, tmp_path)
    prime(service, [RED, BLUE])
    report = asked(service, tmp_path)
    assert outcomes(report) == dict.fromkeys(CHECKS, "pass") | differ
    assert report.outcome is (Outcome.FAIL if "fail" in differ.values() else Outcome.INCONCLUSIVE)
    assert reason in str(report.reason)


def test_counters_that_fall_prove_nothing(device: CpuDevice, tmp_path: Path) -> None:
    service = Restarting(device, tmp_path, SHAPE)
    prime(service, [RED, BLUE])
    service.restored = 5000
    report = asked(service, tmp_path)
    assert report.outcome is Outcome.INCONCLUSIVE
    assert "a counter fell" in str(report.reason)


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, b"hello", "the answer is no completion"),
        (200, b"\xff\xfe", "the answer is no completion"),
        (200, b"[]", "no list of exactly one choice"),
        (200, b'{"choices": []}', "no list of exactly one choice"),
        (200, b'{"choices": [{"text": 7, "finish_reason": "stop"}]}', "no text or no finish_reason"),
        (200, b'{"choices": [{"text": "red"}]}', "no text or no finish_reason"),
        (200, b'{"choices": [{"text": "\\ud800", "finish_reason": "stop"}]}', "the answer is no completion"),
        (200, completion("", 513)[1], "the answer is empty"),
        (200, completion("red", 513, "length")[1], "the answer ended by 'length', not by itself"),
        (200, completion("red", 513, "abort")[1], "the answer ended by 'abort', not by itself"),
        (500, b"{}", "the server answered 500"),
        (302, b"", "the server answered 302"),
        (200, SHORT, "bytes too early"),
        (200, b" " * (4 * 1024 * 1024 + 1), "more than 4194304 bytes"),
    ],
)
def test_an_answer_that_cannot_be_judged_is_inconclusive(device: CpuDevice, tmp_path: Path, status: int, body: bytes, reason: str) -> None:
    report = asked(Unready(device, tmp_path, SHAPE, status, body), tmp_path)
    assert outcomes(report) == dict.fromkeys(CHECKS, "inconclusive")
    assert reason in str(report.reason)


@pytest.mark.parametrize("kind", ["never answers", "drips"])
def test_a_slow_server_is_inconclusive(device: CpuDevice, tmp_path: Path, kind: str) -> None:
    slow = Hanging(device, tmp_path, SHAPE) if kind == "never answers" else Unready(device, tmp_path, SHAPE, 200, DRIP)
    report = asked(slow, tmp_path, timeout_s=0.2)
    assert outcomes(report) == dict.fromkeys(CHECKS, "inconclusive")
    assert "within 0.2 s" in str(report.reason)
    assert report.answer is None


def test_no_server_is_inconclusive(tmp_path: Path) -> None:
    report = ask_live(live_test("http://127.0.0.1:9", tmp_path))
    assert report.outcome is Outcome.INCONCLUSIVE
    assert "ConnectionRefusedError" in str(report.reason)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (f"{RESTORED} 1\n".encode(), f"no counter '{LOCAL}'"),
        (f"{RESTORED} NaN\n{LOCAL} 1\n".encode(), "is no count"),
        (f"{RESTORED} 1.5\n{LOCAL} 1\n".encode(), "is no count"),
        (f"{RESTORED} one\n{LOCAL} 1\n".encode(), "cannot be read"),
        (f"{RESTORED}{{x=\n".encode(), "is no sample"),
        (b"\xff", "cannot be read"),
    ],
)
def test_metrics_that_cannot_be_read_prove_nothing(device: CpuDevice, tmp_path: Path, page: bytes, reason: str) -> None:
    report = asked(Uncounted(device, tmp_path, SHAPE, page), tmp_path)
    assert outcomes(report) == dict.fromkeys(CHECKS, "inconclusive")
    assert reason in str(report.reason)


def test_a_question_that_the_model_cannot_answer_is_no_control(device: CpuDevice, tmp_path: Path) -> None:
    """It was computed anew and is wrong: that is the model's doing, not the restore's."""
    service = OracleService(device, tmp_path, SHAPE)
    prime(service, [RED, BLUE])
    wrong = Question(stored_request(GREEN), "teal")
    report = asked(service, tmp_path, control=wrong)
    assert outcomes(report) == dict.fromkeys(CHECKS, "pass") | {"recompute-control": "inconclusive"}


def test_two_prompts_must_need_different_words(tmp_path: Path) -> None:
    good = live_test("http://127.0.0.1:9", tmp_path)
    red = good.prompts[0]
    for prompts in (
        (red,),
        (red, replace(good.prompts[1], required="red")),
        (red, replace(red, required="RED", normalisation=("casefold",))),
    ):
        if len({question.normalised(question.required) for question in prompts}) == len(prompts) > 1:
            continue
        with pytest.raises(InputError, match="different words"):
            replace(good, prompts=prompts)


def test_the_control_must_be_a_prompt_with_one_token_changed(tmp_path: Path) -> None:
    good = live_test("http://127.0.0.1:9", tmp_path)
    longer = stored_request(GREEN)
    longer["prompt"] = [*longer["prompt"], 1]
    for request in (stored_request(RED), stored_request(GREEN.changed_at(FILLER)), longer, {"prompt": "red"}):
        with pytest.raises(InputError, match="one token changed"):
            replace(good, control=Question(request, "green"))
