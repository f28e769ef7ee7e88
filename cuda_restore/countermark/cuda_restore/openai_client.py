"""A small client for OpenAI-compatible completion servers and their metrics, over the standard library.

It sends one request at a time, follows no redirect, reads no more than it must and waits no longer than it was told, however slowly a
server drips. What it cannot understand it does not guess at: every such answer is an `EndpointError`.
"""

import json
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Timer
from typing import Final, Self
from urllib.parse import urlsplit

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.jsontext import loads
from countermark.attestations.located import JsonValue

ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
METRICS_BYTES_MAX: Final = 16 * 1024 * 1024

_SAMPLE: Final = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*')


class EndpointError(CannotTellError):
    """A server gave no answer that can be judged: unreachable, too slow, too long, or not in the protocol."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(Code.UNREADABLE, why, at=Location(url), fix="see the server's log, then ask again")


@dataclass(frozen=True, slots=True)
class Url:
    """An http or https address without credentials, query kept, fragment refused."""

    text: str
    scheme: str
    host: str
    port: int | None
    target: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address; `InputError` when it is none that can be asked."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise _bad_url(text) from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.fragment or not text.isascii():
            raise _bad_url(text)
        return cls(text, parts.scheme, parts.hostname, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))

    def connection(self, timeout_s: float) -> HTTPConnection:
        """A connection to the host, not opened yet."""
        kind = HTTPSConnection if self.scheme == "https" else HTTPConnection
        return kind(self.host, self.port, timeout=timeout_s)


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer: its text, why the server stopped, and how many tokens the server says the prompt had, if it says so."""

    text: str
    finish: str
    prompt_tokens: int | None


def complete(url: Url, request: Mapping[str, JsonValue], *, timeout_s: float) -> Completion:
    """Post one completion or chat request and read its one choice. Raises `EndpointError`."""
    body = json.dumps(dict(request)).encode("ascii")
    answer = _exchange(url, "POST", body, timeout_s, ANSWER_BYTES_MAX)
    try:
        return _completion(loads(answer, url.text, limit=ANSWER_BYTES_MAX))
    except (InputError, ValueError) as error:
        raise EndpointError(url.text, f"the answer is no completion: {error}") from None


def read_counters(url: Url, names: tuple[str, ...], *, timeout_s: float) -> dict[str, int]:
    """Each named counter of a Prometheus text page, summed over its labels. Raises `EndpointError`, also for one that is not there."""
    page = _exchange(url, "GET", None, timeout_s, METRICS_BYTES_MAX)
    found: dict[str, Decimal] = {}
    try:
        for name, value in _samples(page.decode("utf-8")):
            if name in names:
                found[name] = found.get(name, Decimal(0)) + Decimal(value)
        counters = {name: _count(found[name]) for name in names}
    except KeyError as missing:
        raise EndpointError(url.text, f"the metrics have no counter {missing}") from None
    except (ValueError, InvalidOperation) as error:
        raise EndpointError(url.text, f"the metrics cannot be read: {error}") from None
    return counters


def _completion(value: JsonValue) -> Completion:
    """The one choice of a completion; `ValueError` says what is wrong with it."""
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise ValueError("it has no list of exactly one choice")
    message, finish = choices[0].get("message"), choices[0].get("finish_reason")
    text = message.get("content") if isinstance(message, dict) else choices[0].get("text")
    if not isinstance(text, str) or not isinstance(finish, str):
        raise ValueError("its choice has no text or no finish_reason")
    usage = value.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return Completion(text, finish, tokens if type(tokens) is int else None)


def _samples(page: str) -> Iterator[tuple[str, str]]:
    for line in page.splitlines():
        if line.strip() and not line.startswith("#"):
            sample = _SAMPLE.fullmatch(line)
            if not sample:
                raise ValueError(f"{line[:60]!r} is no sample")
            yield sample[1], sample[2]


def _count(value: Decimal) -> int:
    if not value.is_finite() or value < 0 or value != value.to_integral_value():
        raise ValueError(f"{value} is no count")
    return int(value)


def _exchange(url: Url, method: str, body: bytes | None, timeout_s: float, limit: int) -> bytes:
    """Send a request and give the body of a 200; the whole of it within `timeout_s` and `limit` bytes."""
    headers = {"Accept-Encoding": "identity", "Connection": "close", **({"Content-Type": "application/json"} if body is not None else {})}
    connection = url.connection(timeout_s)
    try:
        connection.connect()
        with _deadline(url, connection.sock, timeout_s):
            connection.request(method, url.target, body, headers)
            return _body(url, connection.getresponse(), limit)
    except TimeoutError:
        raise EndpointError(url.text, f"no answer within {timeout_s} s") from None
    except (OSError, HTTPException) as error:
        raise EndpointError(url.text, f"no answer: {type(error).__name__} {error}") from None
    finally:
        connection.close()


def _body(url: Url, response: HTTPResponse, limit: int) -> bytes:
    with response:
        if response.status != 200:
            raise EndpointError(url.text, f"the server answered {response.status} {response.reason}")
        data = response.read(limit + 1)
        if len(data) > limit:
            raise EndpointError(url.text, f"the answer has more than {limit} bytes")
        if response.length:
            raise EndpointError(url.text, f"the answer ends {response.length} bytes too early")
        return data


@contextmanager
def _deadline(url: Url, connected: socket.socket, timeout_s: float) -> Iterator[None]:
    """Cut the connection when the time is over; a socket's own timeout begins anew with every byte that drips in."""
    expired = []

    def cut() -> None:
        expired.append(True)
        try:
            connected.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other side was faster
            return

    timer = Timer(timeout_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if expired:
            raise EndpointError(url.text, f"no whole answer within {timeout_s} s")


def _bad_url(text: str) -> InputError:
    return InputError(
        Code.SCHEMA_INVALID, f"{text!r} is no http or https address", fix="write it like http://127.0.0.1:8000/v1/completions"
    )
