"""Whether two benchmark runs may be compared: all that was recorded of their conditions is the same, but for what is declared to differ.

The image, and the source that it was built from, are what a comparison is usually about; everything else that differs must be declared as
its variable (catalogue BM-06, 16, 17, 34, 35, 36). A field that one run records and the other does not differs too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, as_object, pointer_join
from countermark.contracts.measurements.broken import Broken
from countermark.contracts.measurements.run import BenchmarkRun

_COMPARED: Final = ("metric", "harness", "conditions", "scope", "tuple")
_MAY_DIFFER: Final = ("/scope/image", "/scope/boots", "/tuple/image", "/tuple/source", "/tuple/profile")
_SUMMARY: Final = ("statistic", "percentile", "method", "sampling_unit")
INPUTS: Final = "/observations"
_CHECKERS: Final = (
    ("/metric", "bench.one-denominator"),
    ("/summary", "bench.one-denominator"),
    ("/scope/hardware", "bench.hardware-identity"),
    (INPUTS, "bench.same-inputs"),
    *((f"/conditions/{name}", "bench.sampling-params") for name in ("temperature", "top_p", "seed", "max_tokens", "ignore_eos")),
)


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field with two values; none where a run does not record it."""

    pointer: str
    base: JsonValue
    candidate: JsonValue

    def declared_by(self, variables: Iterable[str]) -> bool:
        """Whether one of the variables is this field, or an object that it is a part of."""
        return any(self.pointer == variable or self.pointer.startswith(f"{variable}/") for variable in variables)


def differences(base: BenchmarkRun, candidate: BenchmarkRun) -> Iterator[FieldDifference]:
    """Every field that is compared and differs, but for the image and its source; then the inputs."""
    left, right = dict(_leaves(base)), dict(_leaves(candidate))
    for pointer in dict.fromkeys((*left, *right)):
        if left.get(pointer) != right.get(pointer):
            yield FieldDifference(pointer, left.get(pointer), right.get(pointer))
    inputs = [_inputs(run) for run in (base, candidate)]
    if inputs[0] != inputs[1]:
        only = sorted(inputs[0].items() ^ inputs[1].items())
        observed = [f"{task} ({tokens} prompt tokens)" for task, tokens in only[:4]]
        told: list[JsonValue] = [", ".join(item for item, pair in zip(observed, only, strict=False) if pair in it.items()) for it in inputs]
        yield FieldDifference(INPUTS, told[0] or "other tasks", told[1] or "other tasks")


def incomparable(base: BenchmarkRun, candidate: BenchmarkRun, variables: Sequence[str]) -> Iterator[Broken]:
    """What forbids the comparison. `InputError` UNKNOWN_NAME for a declared variable that does not differ."""
    found = list(differences(base, candidate))
    for variable in variables:
        if not any(item.declared_by([variable]) for item in found):
            raise InputError(
                Code.UNKNOWN_NAME,
                f"{variable} does not differ between the two runs",
                at=Location("--variable"),
                fix="declare what differs, like /tuple/draft or /conditions/seed",
            )
    if base.observations == candidate.observations and base.windows == candidate.windows:
        yield _refused("bench.distinct-inputs", INPUTS, "two runs", "the same observations twice", "give the other run")
    for item in found:
        if not item.declared_by(variables):
            checker = next((name for pointer, name in _CHECKERS if item.declared_by([pointer])), "bench.one-variable")
            fix = f"measure both alike, or declare --variable {item.pointer}"
            yield _refused(checker, item.pointer, _shown(item.base), _shown(item.candidate), fix)


def unrecorded(base: BenchmarkRun) -> Iterator[Broken]:
    """What neither of two comparable runs records, so that nobody can tell whether it was the same."""
    stated = dict(_leaves(base))
    wanted = [f"/conditions/{name}" for name in ("temperature", "top_p", "seed", "max_tokens", "ignore_eos")]
    missing = [pointer for pointer in (*wanted, "/harness/version", "/scope/hardware/accelerator") if stated.get(pointer) is None]
    if missing:
        yield Broken(
            checker="bench.comparable",
            pointer="",
            required="conditions that both runs record",
            observed=f"neither records {', '.join(missing)}",
            fix="record them in the next runs",
            outcome=Outcome.INCONCLUSIVE,
            code=Code.EVIDENCE_INCONCLUSIVE,
            severity=Severity.WARN,
        )


def _refused(checker: str, pointer: str, required: str, observed: str, fix: str) -> Broken:
    return Broken(checker=checker, pointer=pointer, required=required, observed=observed, fix=fix, code=Code.CLAIM_TRANSFER)


def _leaves(run: BenchmarkRun) -> Iterator[tuple[str, JsonValue]]:
    """Every value that is recorded below what is compared; `null` and absent are the same.

    Target and draft of the scope are those of the tuple, or the run contradicts itself, and so are told once.
    """
    summary = run.stated.get("summary")
    fields: dict[str, JsonValue] = {name: run.stated.get(name) for name in _COMPARED}
    used = as_object(fields["tuple"])
    fields["scope"] = {
        name: value for name, value in as_object(fields["scope"]).items() if name not in ("model", "draft") or name not in used
    }
    fields["summary"] = {name: value for name, value in summary.items() if name in _SUMMARY} if isinstance(summary, dict) else None
    waiting: list[tuple[str, JsonValue]] = [("", fields)]
    while waiting:
        pointer, node = waiting.pop(0)
        if pointer in _MAY_DIFFER:
            continue
        if isinstance(node, dict):
            waiting.extend((pointer_join(pointer, name), value) for name, value in node.items())
        elif isinstance(node, list):
            waiting.extend((pointer_join(pointer, number), value) for number, value in enumerate(node))
        elif node is not None:
            yield pointer, node


def _inputs(run: BenchmarkRun) -> Mapping[str, int]:
    """The tasks with the length of their prompts."""
    return {task: items[0].prompt_tokens for task, items in run.tasks.items()}


def _shown(value: JsonValue) -> str:
    return "not recorded" if value is None else str(value)
