"""Rung 5: ask a served model that claims to have restored a prefix, and believe it only as far as its counters prove.

Two stored prompts that need different words are asked, and between them a control of the same length with one token changed. The
control must miss every cache and be computed anew; otherwise a server that always says the same, or that serves one prefix for
another, would pass. A right answer without a restore proves nothing, and neither does a wrong one: both are inconclusive. What fails
is a wrong answer from restored tokens.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import roll_up
from countermark.cuda_restore.openai_client import Completion, EndpointError, Url, complete, read_counters
from countermark.cuda_restore.questions import Question
from countermark.cuda_restore.restore_plan import RestorePlan

SETTLE_S: Final = 1.0
"""How long a server may take to count a request that it has answered, in seconds."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where a server counts tokens, and the names of its counters of restored tokens and of hits in its own cache."""

    url: Url
    restored_tokens: str
    local_hit_tokens: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTest:
    """What to ask whom. `committed_tokens` is how many tokens each prompt must be seen to have restored."""

    endpoint: Url
    model: str
    prompts: tuple[Question, ...]
    control: Question
    metrics: Metrics
    committed_tokens: int
    timeout_s: float
    settle_s: float

    def __post_init__(self) -> None:
        words = {question.normalised(question.required) for question in self.prompts}
        if len(self.prompts) < 2 or len(words) < len(self.prompts):
            raise _refuse("the stored prompts do not need different words", "store two prompts that a mix-up would tell apart")
        if not any(self.control.differs_in_one_token(prompt) for prompt in self.prompts):
            raise _refuse("the control is none of the prompts with one token changed", "change one early token of a stored prompt")

    @classmethod
    def of(cls, plan: RestorePlan) -> Self:
        """What a plan asks. `InputError` when it has no `live`, or when its requests or addresses have no meaning."""
        live = plan.live
        if live is None:
            raise _refuse("the plan names no served model", "add live to it")
        prompts = tuple(Question.load(one.file, one.required, one.normalisation) for one in live.prompts)
        control = Question.load(live.control.file, live.control.required)
        base = next((prompt for prompt in prompts if control.differs_in_one_token(prompt)), control)
        counters = Metrics(Url.parse(live.metrics.url), live.metrics.restored_tokens, live.metrics.local_hit_tokens)
        return cls(
            endpoint=Url.parse(live.endpoint),
            model=live.model,
            prompts=prompts,
            control=replace(control, normalisation=base.normalisation),
            metrics=counters,
            committed_tokens=plan.committed_tokens,
            timeout_s=float(live.timeout_s),
            settle_s=SETTLE_S,
        )


@dataclass(frozen=True, slots=True)
class Check:
    """What one control of the rung said, and why it did not pass."""

    name: str
    outcome: Outcome
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LiveReport:
    """The rung. `answer` is the `answer` of a restore-run: of the first prompt that was not answered right, or of the first."""

    checks: tuple[Check, ...]
    answer: dict[str, JsonValue] | None

    @property
    def outcome(self) -> Outcome:
        """Any check that fails fails the rung; anything unsettled leaves it inconclusive."""
        return roll_up(check.outcome for check in self.checks)

    @property
    def reason(self) -> str | None:
        """Why the rung did not pass."""
        return "; ".join(f"{check.name}: {check.reason}" for check in self.checks if check.reason) or None


@dataclass(frozen=True, slots=True)
class _Reply:
    """One question's answer with what the counters gained meanwhile; or why neither can be judged."""

    question: Question
    completion: Completion | None = None
    restored: int = 0
    local: int = 0
    unclear: str | None = None

    @property
    def right(self) -> bool:
        return self.completion is not None and self.question.is_answered_by(self.completion.text)


def ask_live(test: LiveTest) -> LiveReport:
    """Ask, one request at a time. Raises nothing for what a server does wrong; that is what the report is about."""
    first, *rest = test.prompts
    replies = [_ask(test, first)]
    control = _ask(test, test.control)
    replies += [_ask(test, question) for question in rest]
    checks = (
        _all("exact-answer", (_exact(reply) for reply in replies)),
        _all("restore-happened", (_restored(test, reply) for reply in replies)),
        Check("negative-control", *_missed(test, control, replies)),
        Check("recompute-control", *_recomputed(control)),
    )
    telling = next((reply for reply in replies if not reply.right), replies[0])
    return LiveReport(checks, _answer(telling))


def _ask(test: LiveTest, question: Question) -> _Reply:
    names = (test.metrics.restored_tokens, test.metrics.local_hit_tokens)
    try:
        before = read_counters(test.metrics.url, names, timeout_s=test.timeout_s)
        completion = complete(test.endpoint, question.body(test.model), timeout_s=test.timeout_s)
        time.sleep(test.settle_s)
        after = read_counters(test.metrics.url, names, timeout_s=test.timeout_s)
    except EndpointError as error:
        return _Reply(question, unclear=error.message)
    restored, local = (after[name] - before[name] for name in names)
    return _Reply(question, completion, restored, local, _unclear(completion, restored, local))


def _unclear(completion: Completion, restored: int, local: int) -> str | None:
    if completion.finish != "stop":
        return f"the answer ended by {completion.finish!r}, not by itself"
    if not completion.text:
        return "the answer is empty"
    if min(restored, local) < 0:
        return "a counter fell, so the server was started anew"
    if completion.prompt_tokens is not None and restored + local > completion.prompt_tokens:
        return "the counters gained more tokens than the prompt has, so the server has other clients"
    return None


def _all(name: str, verdicts: Iterator[tuple[Outcome, str | None]]) -> Check:
    """One check over several prompts, with the reason of its worst one."""
    found = list(verdicts)
    outcome = roll_up(one for one, _ in found)
    return Check(name, outcome, next((why for one, why in found if one is outcome and why), None))


def _exact(reply: _Reply) -> tuple[Outcome, str | None]:
    if reply.unclear or reply.completion is None:
        return Outcome.INCONCLUSIVE, reply.unclear
    if reply.right:
        return Outcome.PASS, None
    told = f"{reply.completion.text[:40]!r} was answered where {reply.question.required!r} is required"
    return (Outcome.FAIL, told) if reply.restored else (Outcome.INCONCLUSIVE, f"{told}, but nothing was restored")


def _restored(test: LiveTest, reply: _Reply) -> tuple[Outcome, str | None]:
    if reply.unclear:
        return Outcome.INCONCLUSIVE, reply.unclear
    if reply.local:
        return Outcome.INCONCLUSIVE, f"{reply.local} tokens came from the server's own cache"
    if reply.restored < test.committed_tokens:
        return Outcome.INCONCLUSIVE, f"{reply.restored} of {test.committed_tokens} tokens were restored"
    return Outcome.PASS, None


def _missed(test: LiveTest, control: _Reply, replies: list[_Reply]) -> tuple[Outcome, str | None]:
    """The control must have hit no cache; an answer that is wrong although, or because, it did hit one is somebody else's."""
    if control.unclear:
        return Outcome.INCONCLUSIVE, control.unclear
    if control.restored and not control.right:
        return Outcome.FAIL, f"{control.restored} tokens of another prompt were restored for it, and its answer is wrong"
    if control.restored or control.local:
        return Outcome.INCONCLUSIVE, f"it hit {control.restored + control.local} cached tokens; change an earlier token"
    if not _same_length(test, control, replies):
        return Outcome.INCONCLUSIVE, "the server does not say that its prompt has as many tokens as the one it was made from"
    return Outcome.PASS, None


def _same_length(test: LiveTest, control: _Reply, replies: list[_Reply]) -> bool:
    if isinstance(test.control.prompt, list):  # token ids, compared when the test was made
        return True
    lengths = [reply.completion and reply.completion.prompt_tokens for reply in (control, *replies)]
    return lengths[0] is not None and lengths[0] in lengths[1:]


def _recomputed(control: _Reply) -> tuple[Outcome, str | None]:
    """A control that is answered wrong without any restore shows a model that cannot do this, not a bad restore."""
    if control.unclear:
        return Outcome.INCONCLUSIVE, control.unclear
    if control.restored or control.local:
        return Outcome.INCONCLUSIVE, "the control was not computed anew"
    if not control.right:
        return Outcome.INCONCLUSIVE, "the model answers it wrong without any restore; choose another question"
    return Outcome.PASS, None


def _answer(reply: _Reply) -> dict[str, JsonValue] | None:
    if reply.completion is None:
        return None
    return {
        "required": reply.question.required,
        "raw": str(Digest.of(DigestKind.RESPONSE_RAW, reply.completion.text.encode())),
        "normalisation": list(reply.question.normalisation),
        "outcome": str(_exact(reply)[0]),
    }


def _refuse(message: str, fix: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, fix=fix)
