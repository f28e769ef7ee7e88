"""`quality run` against servers that answer, lie, drip or talk nonsense; `record quality`; and the receipt at the gate."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from program import Program

from countermark.attestations.schema import problems

IMAGE = "oci-manifest:sha256:" + "4d" * 32
PROBES = f"""\
apiVersion: countermark.dev/v1
kind: ProbeSet
metadata: {{id: contract, version: 1}}
spec:
  tuple: {{image: "{IMAGE}"}}
  scope: {{image: "{IMAGE}", cells: [{{draft_tokens: 3}}]}}
  model: tiny
  timeout_s: "1"
  probes:
    - {{id: colour, prompt: "the colour is", rule: exact, required: red, stops: true}}
    - {{id: code, messages: [{{role: user, content: code}}], rule: one-code-block}}
    - {{id: record, messages: [{{role: user, content: json}}], rule: json-schema, required: {{type: object, required: [n]}}}}
    - {{id: needle, messages: [{{role: user, content: markers}}], rule: markers, required: [Q7, Z9]}}
"""
GOOD = {"the colour is": "red", "code": "```\nx = 1\n```", "json": '{"n": 1}', "markers": "Z9 and Q7"}
Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def said(text: str, asked: dict[str, Any]) -> bytes:
    """A completion, or a chat completion where messages were sent."""
    held = {"message": {"role": "assistant", "content": text}} if "messages" in asked else {"text": text}
    return json.dumps({"object": "x", "choices": [{"index": 0, "finish_reason": "stop", **held}]}).encode()


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def honest(handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
    question = asked["messages"][0]["content"] if "messages" in asked else asked["prompt"]
    send(handler, said(GOOD[question], asked))


def answering(text: str) -> Answer:
    return lambda handler, asked: send(handler, said(text, asked))


def drips(handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(40):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.1)


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server on a free port, and the requests that it got."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append(asked)
            answer(self, asked)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def probes(program: Program) -> Path:
    path = program.folder / "probes.yaml"
    path.write_text(PROBES)
    return path


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {check["id"]: check["outcome"] for check in report["checks"]}


def test_an_honest_server_passes_and_its_report_reaches_the_gate(program: Program, box: Path, probes: Path) -> None:
    with serving(honest) as (url, got):
        done = program("quality", "run", probes, "--endpoint", url, "-o", "json")
    assert done.code == 0, done.err
    report = json.loads((program.folder / "quality-report.json").read_text())
    assert report == done.json["details"]["report"]
    assert problems("quality-report", report) == []
    assert set(outcomes(report).values()) == {"pass"}
    assert [(asked["model"], asked["temperature"], asked["stream"]) for asked in got] == [("tiny", 0.0, False)] * 4
    kept = {path.name: path.read_bytes() for path in (program.folder / "responses").iterdir()}
    assert sorted(kept.values()) == sorted(text.encode() for text in GOOD.values())
    assert all(hashlib.sha256(data).hexdigest() == name for name, data in kept.items())
    assert program("verify", "evidence", "quality-report.json").code == 0
    recorded = program("record", "quality", "quality-report.json", "--responses", "responses", "--ledger", box, "-o", "json")
    assert recorded.code == 0, recorded.err
    index = recorded.json["recorded"][0]["index"]
    assert index == 1 + len(kept)
    endorsed = program("endorse", str(index), "--ledger", box, "-o", "json")
    (receipt,) = endorsed.json["statements"]
    assert (receipt["capability"], receipt["outcome"], receipt["basis"]) == ("output.contract", "pass", "measured")
    assert receipt["observed"] == report["observed"]
    asked = program("gate", IMAGE, "--require", "output.contract@draft_tokens=3", "--ledger", box, "-o", "json")
    (requirement,) = asked.json["decisions"][0]["core"]["requirements"]
    assert requirement["code"] == "OK"
    assert program("quality", "run", probes, "--endpoint", url).code == 3


def test_a_wrong_first_answer_skips_the_rest_and_names_the_cause(program: Program, box: Path, probes: Path) -> None:
    with serving(answering("**Answer:** red")) as (url, got):
        done = program("quality", "run", probes, "--endpoint", url, "-o", "json")
    assert (done.code, len(got)) == (1, 1)
    report = done.json["details"]["report"]
    assert outcomes(report) == {"colour": "fail", "code": "skipped", "record": "skipped", "needle": "skipped"}
    assert {check.get("cause") for check in report["checks"][1:]} == {"colour"}
    recorded = program("record", "quality", "quality-report.json", "--ledger", box, "-o", "json")
    endorsed = program("endorse", str(recorded.json["recorded"][0]["index"]), "--ledger", box, "-o", "json")
    (receipt,) = endorsed.json["statements"]
    assert receipt["outcome"] == "fail"
    assert receipt["limitations"][1].startswith("code: skipped, behind colour")
    asked = program("gate", IMAGE, "--require", "output.contract@draft_tokens=3", "--ledger", box, "-o", "json")
    assert asked.json["decisions"][0]["core"]["requirements"][0]["code"] == "CAP_FAILED"


@pytest.mark.parametrize(
    "answer",
    [
        drips,
        lambda handler, asked: send(handler, b"<html>busy</html>"),
        lambda handler, asked: send(handler, b'{"choices": []}'),
        lambda handler, asked: send(handler, b'{"choices": [{"text": 7, "finish_reason": "stop"}]}'),
        lambda handler, asked: send(handler, b'{"choices": [{"text": "red", "text": "blue", "finish_reason": "stop"}]}'),
        lambda handler, asked: send(handler, b"\xff" * 100),
        lambda handler, asked: send(handler, b"overloaded", 503),
        lambda handler, asked: handler.connection.close(),
    ],
    ids=["drips", "a page", "no choice", "a number", "two answers", "no text", "overloaded", "hangs up"],
)
def test_a_server_that_gives_no_answer_proves_nothing(program: Program, probes: Path, answer: Answer) -> None:
    with serving(answer) as (url, _):
        begun = time.monotonic()
        done = program("quality", "run", probes, "--endpoint", url, "-o", "json")
        assert time.monotonic() - begun < 10
    assert done.code == 4
    assert set(outcomes(done.json["details"]["report"]).values()) == {"error", "skipped"}
    assert done.json["evaluated"] == 0
    assert list((program.folder / "responses").iterdir()) == []


def test_nobody_there_and_no_address_at_all(program: Program, probes: Path) -> None:
    assert program("quality", "run", probes, "--endpoint", "http://127.0.0.1:9/v1/completions").code == 4
    assert program("quality", "run", probes, "--endpoint", "127.0.0.1:9", "--report", "other.json").code == 3
    assert program("quality", "run", probes).code == 2


def test_probes_that_mean_nothing_are_refused_before_anybody_is_asked(program: Program, probes: Path) -> None:
    for before, after in (
        ("rule: exact", "rule: suffix"),
        ("required: red", "required: red, normalisation: [trim]"),
        ("rule: one-code-block", "rule: one-code-block, normalisation: [strip]"),
        ("rule: one-code-block", "rule: regex-fullmatch, required: '['"),
        ("id: code", "id: colour"),
        ('timeout_s: "1"', 'timeout_s: "0"'),
        ("cells: [{draft_tokens: 3}]", "cells: []"),
        ('prompt: "the colour is"', "stops: false"),
    ):
        assert before in PROBES
        probes.write_text(PROBES.replace(before, after, 1))
        assert program("quality", "run", probes, "--endpoint", "http://127.0.0.1:9/").code == 3, after


def test_a_report_that_was_repaired_is_not_recorded(program: Program, box: Path, probes: Path) -> None:
    with serving(answering(" red")) as (url, _):
        program("quality", "run", probes, "--endpoint", url)
    path = program.folder / "quality-report.json"
    report = json.loads(path.read_text())
    first = report["checks"][0]
    for changes in ({"outcome": "pass"}, {"outcome": "pass", "observed": "red"}, {"outcome": "pass", "response": None}):
        path.write_text(json.dumps({**report, "checks": [{**first, **changes}]}))
        done = program("record", "quality", path, "--ledger", box, "-o", "json")
        assert (done.code, done.json["findings"][0]["checker"]) == (1, "quality.output-contract")
        assert program("verify", "evidence", path).code == 1
    path.write_text(json.dumps({**report, "checks": []}))
    assert program("record", "quality", path, "--ledger", box).code == 5
    (program.folder / "responses" / first["response"].rpartition(":")[2]).write_bytes(b"red")
    path.write_text(json.dumps(report))
    assert program("record", "quality", path, "--responses", "responses", "--ledger", box).code == 3
