"""The questions of a ProbeSet: each request as it is sent, and the check that its response becomes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import Document
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.contracts.quality.rules import RAW, hold

_WORDS: Final = {"one-code-block": "one code block and nothing else", "no-fence": "no Markdown fence"}
_INLINE_BYTES: Final = 65_536
"""A longer response is kept by its digest alone."""
_TIMEOUT_S: Final = "60"
_MAX_TOKENS: Final = 512


@dataclass(frozen=True, slots=True)
class Probe:
    """One question and its rule."""

    id: str
    request: Mapping[str, JsonValue]
    rule: str
    required: str
    normalisation: tuple[str, ...]
    stops: bool

    def check(self, outcome: Outcome, observed: str | None = None, response: str | None = None, cause: str | None = None) -> dict[str, Any]:
        """A check of a quality-report; what is not known is left out."""
        stated: dict[str, Any] = {
            "id": self.id,
            "outcome": str(outcome),
            "required": self.required,
            "response": response,
            "normalisation": list(self.normalisation),
            "rule": self.rule,
        }
        return stated | {name: text for name, text in (("observed", observed), ("cause", cause)) if text is not None}

    def judged(self, raw: bytes) -> dict[str, Any]:
        """The check of a raw response, which is UTF-8."""
        text = raw.decode() if len(raw) <= _INLINE_BYTES else None
        found = hold(self.rule, self.required, raw, self.normalisation)
        return self.check(found.outcome, text, str(Digest.of(DigestKind.RESPONSE_RAW, raw)))


@dataclass(frozen=True, slots=True)
class ProbeSet:
    """What is asked of whom: `used` (the tuple) and `scope` go into the report as they are; `timeout_s` is for one answer."""

    used: Mapping[str, JsonValue]
    scope: Mapping[str, JsonValue]
    timeout_s: float
    probes: tuple[Probe, ...]

    @classmethod
    def of(cls, document: Document) -> Self:
        """Read a validated ProbeSet. `InputError` for an id that stands twice, and for a rule that has no meaning as it is asked."""
        spec: dict[str, Any] = document.spec
        base = {"model": spec["model"], **_sampling(spec.get("request", {}))}
        found: list[Probe] = []
        for number, item in enumerate(spec["probes"]):
            probe = _probe(item, base)
            at = document.at(f"/spec/probes/{number}")
            if any(other.id == probe.id for other in found):
                raise InputError(Code.DUPLICATE_KEY, f"{probe.id} stands twice", at=at, fix="give each probe an id of its own")
            trial = hold(probe.rule, probe.required, b"", probe.normalisation)
            if trial.outcome is Outcome.ERROR or (not probe.required and probe.rule != "exact"):
                raise InputError(Code.SCHEMA_INVALID, trial.why or "nothing is required", at=at, fix="say what the rule demands")
            found.append(probe)
        if spec["tuple"]["image"] != spec["scope"].get("image"):
            raise InputError(
                Code.SUBJECT_MISMATCH, "tuple and scope name two images", at=document.at("/spec/scope"), fix="name one image in both"
            )
        timeout_s = float(spec.get("timeout_s", _TIMEOUT_S))
        if not 0 < timeout_s <= 3600:
            raise InputError(
                Code.BAD_NUMBER, "an answer takes some time, at most an hour", at=document.at("/spec/timeout_s"), fix="mend it"
            )
        return cls(spec["tuple"], spec["scope"], timeout_s, tuple(found))


def _sampling(request: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The parameters as the protocol has them, in which numbers are JSON numbers."""
    real = {name: float(request[name]) for name in ("temperature", "top_p") if name in request}
    whole = {name: request[name] for name in ("seed", "max_tokens") if name in request}
    return {"temperature": 0.0, "max_tokens": _MAX_TOKENS, "stream": False, **real, **whole}


def _probe(item: Mapping[str, Any], base: Mapping[str, JsonValue]) -> Probe:
    asked = {name: item[name] for name in ("prompt", "messages", "max_tokens") if name in item}
    required = item.get("required", _WORDS.get(item["rule"], ""))
    text = required if isinstance(required, str) else json.dumps(required, ensure_ascii=False)
    return Probe(item["id"], {**base, **asked}, item["rule"], text, tuple(item.get("normalisation", RAW)), bool(item.get("stops", False)))
