"""A small OpenAI-compatible server with the bundled oracle behind it, whose KV cache is really saved and restored; and servers that lie.

The honest one looks a prompt's prefix up in a snapshot store. When every rank has it, it is restored through the engine and the oracle
answers from what then lies in the caches; when not, the prefix is computed, published, and the answer comes from that.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from countermark.attestations.errors import InputError
from countermark.cuda_restore.device import Device
from countermark.cuda_restore.oracle import Cache, Oracle
from countermark.cuda_restore.oracle_prompt import OracleShape, Prompt, prompt_of
from countermark.cuda_restore.oracle_snapshot import as_cache, digest_of, geometry_of, publish_caches
from countermark.cuda_restore.readback import pages_of
from countermark.cuda_restore.reader import LoadedManifest, find_manifest
from countermark.cuda_restore.session import open_session
from countermark.cuda_restore.store import CHUNKS

RESTORED = "vllm:external_prefix_cache_hits_total"
LOCAL = "vllm:prefix_cache_hits_total"
MODEL = "countermark-oracle"


class Service(Protocol):
    """What stands behind the two addresses: the status and body of an answer, and the page of metrics."""

    def complete(self, body: dict[str, Any]) -> tuple[int, bytes]: ...

    def metrics(self) -> bytes: ...


def completion(text: str, prompt_tokens: int, finish: str = "stop") -> tuple[int, bytes]:
    """A completion as such servers write it."""
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 1, "total_tokens": prompt_tokens + 1}
    return 200, json.dumps({"id": "cmpl-0", "object": "text_completion", "model": MODEL, "choices": [choice], "usage": usage}).encode()


class OracleService:
    """The honest server."""

    def __init__(self, device: Device, root: Path, shape: OracleShape) -> None:
        self._device, self._root, self._shape = device, root, shape
        self._oracle = Oracle(shape)
        self.restored = self.local = self.published = 0

    def complete(self, body: dict[str, Any]) -> tuple[int, bytes]:
        """Complete a prompt of token ids whose last token is live: a restore never covers it."""
        tokens: list[int] = body["prompt"]
        return completion(self.answer(prompt_of(tokens[:-1], self._shape)), len(tokens))

    def answer(self, prompt: Prompt) -> str:
        """The oracle's word, from restored caches if all ranks have them."""
        caches = self.restore(prompt)
        if caches is None:
            caches = self._oracle.prefill(prompt)
            publish_caches(self._root, self._shape, prompt, caches, object_bytes=100_000)
            self.published += 1
        else:
            self.restored += self._shape.tokens
        return self._oracle.answer(prompt, caches).word

    def restore(self, prompt: Prompt) -> list[Cache] | None:
        """Every rank's cache out of the store; nothing when one rank has none, or does not restore: there is no partial success."""
        try:
            found = [self._find(prompt, rank) for rank in range(self._shape.ranks)]
        except InputError:
            return None
        caches = [self._restore(loaded, rank) for rank, loaded in enumerate(found)]
        whole = [cache for cache in caches if cache is not None]
        return whole if len(whole) == len(caches) else None

    def metrics(self) -> bytes:
        labels = f'{{engine="0",model_name="{MODEL}"}}'
        lines = [
            f"# HELP {RESTORED} Tokens restored.",
            f"# TYPE {RESTORED} counter",
            f"{RESTORED}{labels} {float(self.restored)}",
            f"{LOCAL}{labels} {float(self.local)}",
            'http_request_duration_seconds_bucket{le="+Inf",path="/v1/{x}"} 3 1700000000000',
            "",
        ]
        return "\n".join(lines).encode()

    def _find(self, prompt: Prompt, rank: int) -> LoadedManifest:
        return find_manifest(self._root, geometry_of(self._shape, rank).identity.storage_key, digest_of(self._shape, prompt))

    def _restore(self, loaded: LoadedManifest, rank: int) -> Cache | None:
        with open_session(self._device, loaded, self._root / CHUNKS, geometry_of(self._shape, rank)) as session:
            return as_cache(self._shape, pages_of(session)) if session.restore().verified else None


class Recomputing(OracleService):
    """Answers right, and has restored nothing."""

    def answer(self, prompt: Prompt) -> str:
        return self._oracle.answer(prompt, self._oracle.prefill(prompt)).word


class LocalCache(OracleService):
    """Answers right out of its own memory, not out of the store."""

    def answer(self, prompt: Prompt) -> str:
        self.local += self._shape.tokens
        return self._oracle.answer(prompt, self._oracle.prefill(prompt)).word


class Forgetful(OracleService):
    """Restores and answers right, but only the first pages of what was stored."""

    def answer(self, prompt: Prompt) -> str:
        before = self.restored
        word = super().answer(prompt)
        self.restored -= 256 if self.restored > before else 0
        return word


class Saying(OracleService):
    """Always says the same, and counts a restore each time, whatever was asked."""

    def __init__(self, device: Device, root: Path, shape: OracleShape, word: str) -> None:
        super().__init__(device, root, shape)
        self._word = word

    def answer(self, prompt: Prompt) -> str:
        self.restored += self._shape.tokens
        return self._word


class Confused(OracleService):
    """Restores the first prefix that it ever saw for every later one."""

    def __init__(self, device: Device, root: Path, shape: OracleShape) -> None:
        super().__init__(device, root, shape)
        self._first: Prompt | None = None

    def answer(self, prompt: Prompt) -> str:
        self._first = self._first or prompt
        return super().answer(self._first)


class Busy(OracleService):
    """Has other clients, whose tokens are counted too."""

    def answer(self, prompt: Prompt) -> str:
        self.restored += 10_000
        return super().answer(prompt)


class Restarting(OracleService):
    """Loses its counters with every answer."""

    def answer(self, prompt: Prompt) -> str:
        word = super().answer(prompt)
        self.restored = 0
        return word


class Unready(OracleService):
    """Answers with whatever it was given: junk, an error, half an answer, or none in time."""

    def __init__(self, device: Device, root: Path, shape: OracleShape, status: int, body: bytes) -> None:
        super().__init__(device, root, shape)
        self._answer = (status, body)

    def complete(self, body: dict[str, Any]) -> tuple[int, bytes]:
        return self._answer


class Uncounted(OracleService):
    """Serves the given page as its metrics."""

    def __init__(self, device: Device, root: Path, shape: OracleShape, page: bytes) -> None:
        super().__init__(device, root, shape)
        self._page = page

    def metrics(self) -> bytes:
        return self._page


class Hanging(OracleService):
    """Never answers while the server lives."""

    def __init__(self, device: Device, root: Path, shape: OracleShape) -> None:
        super().__init__(device, root, shape)
        self.released = threading.Event()

    def complete(self, body: dict[str, Any]) -> tuple[int, bytes]:
        self.released.wait()
        return completion("red", 1)


DRIP = b"drip"
SHORT = b"short"


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/completions"
        assert body["model"] == MODEL
        assert (body["temperature"], body["stream"], body["n"]) == (0, False, 1)
        self._send(*self.server.service.complete(body))

    def do_GET(self) -> None:
        assert self.path == "/metrics"
        self._send(200, self.server.service.metrics())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + (body in (DRIP, SHORT))))
        self.end_headers()
        pieces = [body[at : at + 1] for at in range(len(body))] if body == DRIP else [body]
        for piece in pieces:
            self.wfile.write(piece)
            if body == DRIP and self.server.closing.wait(0.05):
                return
        if body == DRIP:  # a byte at a time, for ever: a socket's own timeout never ends this
            while not self.server.closing.wait(0.05):
                try:
                    self.wfile.write(b"x")
                except OSError:
                    return

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, service: Service) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service
        self.closing = threading.Event()


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """Serve on a free port of the loopback; gives the address without a path."""
    server = _Server(service)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.closing.set()
        if isinstance(service, Hanging):
            service.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def stored_request(prompt: Prompt, live_token: int = 7) -> dict[str, Any]:
    """The body of a request for a prompt: its tokens and one live token behind them."""
    return {"prompt": [*prompt.tokens, live_token], "max_tokens": 4}


def save(folder: Path, name: str, request: dict[str, Any]) -> Path:
    """Store a request as a plan names it."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(request))
    return path


def prime(service: OracleService, prompts: Sequence[Prompt]) -> None:
    """Let the server compute and publish the prompts, as it did before it was started anew."""
    for prompt in prompts:
        service.answer(prompt)
