"""What is sent to a served model and how its answers and counters are read: strictly, and never guessed at."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_server import LOCAL, MODEL, RESTORED, Uncounted, Unready, save, serving

from countermark.attestations.errors import InputError
from countermark.cuda_restore.cpu_device import CpuDevice
from countermark.cuda_restore.openai_client import EndpointError, Url, complete, read_counters
from countermark.cuda_restore.oracle_prompt import OracleShape
from countermark.cuda_restore.questions import Question

SHAPE = OracleShape(layers=2, ranks=2, tokens=512)


@pytest.fixture
def device() -> Iterator[CpuDevice]:
    with CpuDevice() as made:
        yield made


def test_counters_are_summed_over_their_labels_and_read_by_their_whole_name(device: CpuDevice, tmp_path: Path) -> None:
    page = f'{RESTORED}{{rank="0"}} 3e2\n{RESTORED}{{rank="}}1,\\""}} 12.0 17000\n{RESTORED}_created 9\n{LOCAL} 0\n'.encode()
    with serving(Uncounted(device, tmp_path, SHAPE, page)) as address:
        counters = read_counters(Url.parse(f"{address}/metrics"), (RESTORED, LOCAL), timeout_s=5)
    assert counters == {RESTORED: 312, LOCAL: 0}


@pytest.mark.parametrize(
    ("normalisation", "text", "right"),
    [
        (("none",), "red", True),
        (("none",), " red", False),
        (("none",), "Red", False),
        (("none",), "red.", False),
        (("strip",), " red\n", True),
        (("strip",), "so red", False),
        (("strip", "casefold"), " RED", True),
        (("nfkc",), "ｒｅｄ", True),
        (("nfc",), "ｒｅｄ", False),
    ],
)
def test_an_answer_is_the_word_exactly(normalisation: tuple[str, ...], text: str, right: bool) -> None:
    assert Question({"prompt": "say it"}, "red", normalisation).is_answered_by(text) is right


def test_text_prompts_differ_in_one_word() -> None:
    one = Question({"prompt": "the lamp is red , say it"}, "red")
    assert one.differs_in_one_token(Question({"prompt": "the lamp is blue , say it"}, "blue"))
    assert not one.differs_in_one_token(Question({"prompt": "the lamp is dark blue , say it"}, "blue"))
    assert not one.differs_in_one_token(Question({"prompt": [1, 2]}, "blue"))


@pytest.mark.parametrize(
    "request_body",
    [{}, {"prompt": []}, {"prompt": [1, True]}, {"prompt": ["red"]}, {"prompt": "x", "temperature": 0.7}, {"prompt": {"a": 1}}],
)
def test_a_request_that_proves_nothing_is_refused(request_body: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Question(request_body, "red")


def test_stored_requests_are_read_strictly(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[]")
    for name in ("list.json", "absent.json"):
        with pytest.raises(InputError):
            Question.load(tmp_path / name, "red")
    with pytest.raises(InputError, match="no normalisation"):
        Question.load(save(tmp_path, "red", {"prompt": "x"}), "red", ["upper"])


def test_a_request_is_sent_greedy_and_whole() -> None:
    body = Question({"prompt": "x", "stream": True, "n": 4, "max_tokens": 2}, "red").body("m")
    assert body == {"prompt": "x", "max_tokens": 2, "temperature": 0, "stream": False, "n": 1, "echo": False, "model": "m"}


@pytest.mark.parametrize(
    "text", ["", "ftp://host/", "http://", "http://user@host/", "http://host/#x", "http://host:99999/", "http://hößt/", "//host", "/v1"]
)
def test_an_address_is_http_without_credentials(text: str) -> None:
    with pytest.raises(InputError):
        Url.parse(text)


def test_an_address_keeps_its_query() -> None:
    assert Url.parse("https://[::1]:8443/v1/completions?a=b").target == "/v1/completions?a=b"
    assert Url.parse("http://host").target == "/"


def test_an_endpoint_error_names_the_address(device: CpuDevice, tmp_path: Path) -> None:
    with serving(Unready(device, tmp_path, SHAPE, 503, b"")) as address, pytest.raises(EndpointError) as caught:
        complete(Url.parse(f"{address}/v1/completions"), json.loads(json.dumps(Question({"prompt": "x"}, "red").body(MODEL))), timeout_s=5)
    assert caught.value.at is not None
    assert caught.value.at.file == f"{address}/v1/completions"
