"""The signatures of the entries, verified beside the pass over them.

`cryptography` lets go of the interpreter while it verifies an Ed25519 or ECDSA signature, so threads verify those of an export beside the
reading of its files. The audit of a ledger, which has more to do than that, has processes, and in each of them one thread. What is found is
put in order at the end: it does not depend on how many there were.
"""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

from countermark.attestations.codes import Code
from countermark.attestations.envelope import pae
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.keys import PublicKey
from countermark.ledger.audit_report import Findings
from countermark.ledger.leaf import Leaf

BundleKey = Callable[[bytes], "PublicKey | None"]
"""The key inside a sigstore bundle, if its certificate is trusted."""

_BATCH: Final = 256
_BATCH_BYTES: Final = 4 << 20
_WAITING: Final = 4
"""Batches a worker that may wait, so that payloads do not pile up in memory."""


class _Claim(NamedTuple):
    entry: int
    signed: bytes
    key: PublicKey
    signature: bytes
    algorithm: int


class SignatureAudit:
    """Takes the entries one by one, and verifies their signatures in batches. Ask for `finish` at the end; with several `workers` it is a
    context manager, whose end stops the threads."""

    def __init__(self, findings: Findings, keys: Mapping[bytes, PublicKey], bundle_key: BundleKey | None, workers: int) -> None:
        self._findings = findings
        self._keys = keys
        self._bundle_key = bundle_key
        self._most_waiting = _WAITING * workers
        self._pool = ThreadPoolExecutor(workers, "verify") if workers > 1 else None
        self._batch: list[_Claim] = []
        self._bytes = 0
        self._running: deque[Future[list[int]]] = deque()
        self._bad: list[int] = []

    def __enter__(self) -> "SignatureAudit":
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def add(self, index: int, leaf: Leaf, payload: bytes, bundle: bytes | None) -> None:
        """The signatures of a leaf over its payload, each by a key that the auditor was given or, for a bundle, believes."""
        signed = pae(leaf.payload_type, payload)
        carried = self._bundle_key(bundle) if self._bundle_key and bundle is not None else None
        for item in leaf.signatures:
            key = self._keys.get(item.key_sha256)
            if key is None and carried is not None and carried.fingerprint.raw == item.key_sha256:
                key = carried
            if key is None:
                observed = f"signed by a key that is not trusted here: {item.key_sha256.hex()}"
                self._findings.add(Code.UNTRUSTED, "signatures", observed, entry=index)
            else:
                self._batch.append(_Claim(index, signed, key, item.signature, item.algorithm))
        self._bytes += len(signed)
        if len(self._batch) >= _BATCH or self._bytes >= _BATCH_BYTES:
            self._send()

    def finish(self) -> None:
        """Wait for the last batch, and report what does not hold."""
        self._send()
        while self._running:
            self._take()
        self._findings.extend(Code.UNTRUSTED, "signatures", "a signature does not hold", self._bad)

    def _send(self) -> None:
        batch, self._batch, self._bytes = self._batch, [], 0
        if self._pool is None:
            self._bad += _not_holding(batch)
            return
        self._running.append(self._pool.submit(_not_holding, batch))
        if len(self._running) > self._most_waiting:
            self._take()

    def _take(self) -> None:
        self._bad += self._running.popleft().result()


def _not_holding(batch: list[_Claim]) -> list[int]:
    return [claim.entry for claim in batch if not _holds(claim)]


def _holds(claim: _Claim) -> bool:
    try:
        return int(claim.key.verify(claim.signed, claim.signature)) == claim.algorithm
    except (RefusedError, InputError):
        return False
