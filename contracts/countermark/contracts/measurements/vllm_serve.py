"""The result file of `vllm bench serve --save-result --save-detailed`, as observations of one server start.

Fields as vLLM's benchmarks/serve.py writes them: parallel lists with one element a request (`input_lens`, `output_lens`, `ttfts`, `itls`,
`errors`, and in later versions `latencies`), and sums over them. Why a request ended is not recorded there: one that produced as many
tokens as it was allowed, or whose end token was ignored, ended by length. The date has no offset, so it is no time of an observation.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from statistics import mean, median
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, InvalidDocumentError, RefusedError
from countermark.attestations.located import JsonValue, as_object
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.measurements.definitions import close
from countermark.contracts.measurements.run import decimal

NAME: Final = "vllm-bench-serve"
_LISTS: Final = ("input_lens", "output_lens", "ttfts", "itls", "errors")

JsonObject = dict[str, JsonValue]


def imported(result: Field, boot: str, conditions: Mapping[str, JsonValue]) -> tuple[list[JsonObject], JsonObject]:
    """The observations and the window of one result.

    `InputError` where a list is missing or an element has no meaning, `RefusedError` RECORD_CONTRADICTED where a sum or statistic of the
    file is not that of its lists.
    """
    lists = {name: result[name].elements for name in _LISTS}
    missing = [name for name in _LISTS if not lists[name]]
    if missing:
        fix = "run it with --save-result --save-detailed; a summary alone cannot be computed again"
        raise InputError(Code.SCHEMA_INVALID, f"the result has no {', '.join(missing)}", at=result.at, fix=fix)
    lengths = {name: len(items) for name, items in lists.items()}
    if len(set(lengths.values())) != 1:
        raise _contradicted(result, "one element a request in every list", ", ".join(f"{name} {n}" for name, n in lengths.items()))
    observations = [_observation(result, number, boot, conditions) for number in range(lengths["ttfts"])]
    _check_sums(result, observations)
    duration = result["duration"].number
    if duration is None or duration <= 0:
        raise InputError(Code.BAD_NUMBER, "the result has no duration", at=result["duration"].at, fix="give a whole result")
    return observations, {"id": boot, "boot": boot, "duration_s": decimal(duration)}


def _observation(result: Field, number: int, boot: str, conditions: Mapping[str, JsonValue]) -> JsonObject:
    prompt, completion = result["input_lens"][number].count, result["output_lens"][number].count
    ttft, gaps = result["ttfts"][number].number, [item.number for item in result["itls"][number].elements]
    known = [gap for gap in gaps if gap is not None and gap >= 0]
    if prompt is None or completion is None or ttft is None or ttft < 0 or len(known) < len(gaps):
        message = f"request {number} has no whole tokens or times"
        raise InputError(Code.BAD_NUMBER, message, at=result["itls"][number].at, fix="give the file as the program wrote it")
    stated = result["latencies"][number].number
    wall = ttft + sum(known) if stated is None else stated
    failed = bool(result["errors"][number].text)
    text = result["generated_texts"][number].text
    found: JsonObject = {
        "id": f"{boot}-{number}",
        "boot": boot,
        "group": f"request-{number}",
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "wall_s": decimal(wall),
        "ttft_s": decimal(ttft),
        "window": boot,
        "finish": "error" if failed else _finish(completion, conditions),
    }
    if failed:
        del found["ttft_s"]
    return found if text is None or failed else {**found, "response": str(Digest.of(DigestKind.RESPONSE_RAW, text.encode()))}


def _finish(completion: int, conditions: Mapping[str, JsonValue]) -> str:
    return "length" if conditions.get("ignore_eos") is True or completion == conditions.get("max_tokens") else "stop"


def _check_sums(result: Field, observations: list[JsonObject]) -> None:
    """Hold what the file sums up against its lists."""
    done = [item for item in observations if item["finish"] != "error"]
    output = sum(item["completion_tokens"] for item in done if isinstance(item["completion_tokens"], int))
    prompts = sum(item["prompt_tokens"] for item in done if isinstance(item["prompt_tokens"], int))
    ttfts = [Fraction(str(item["ttft_s"])) * 1000 for item in done]
    wanted: dict[str, Fraction | int] = {"completed": len(done), "total_input_tokens": prompts, "total_output_tokens": output}
    duration = result["duration"].number
    if duration:
        wanted["output_throughput"] = Fraction(output) / Fraction(duration)
    if ttfts:
        wanted |= {"mean_ttft_ms": mean(ttfts), "median_ttft_ms": median(ttfts)}
    for name, value in wanted.items():
        stated = result[name].number
        if stated is not None and not close(Fraction(stated), Fraction(value)):
            raise _contradicted(result[name], f"{decimal(value)}, by the lists of the file", shown(result[name].value))


def merged(results: Mapping[str, Field], frame: Mapping[str, JsonValue]) -> JsonObject:
    """A benchmark-run of several results, each of one server start by its name, over the frame that says all that they do not.

    Raises as `imported` does, and `InvalidDocumentError` where a result was measured otherwise than the frame says.
    """
    conditions = as_object(frame.get("conditions"))
    wrong = [mistake for result in results.values() for mistake in _otherwise(result, frame)]
    if wrong:
        raise InvalidDocumentError(wrong)
    parts = [imported(result, boot, conditions) for boot, result in results.items()]
    observations: list[JsonValue] = [item for found, _ in parts for item in found]
    windows: list[JsonValue] = [window for _, window in parts]
    counts: dict[str, int] = {}
    for found, _ in parts:
        for item in found:
            counts[str(item["group"])] = counts.get(str(item["group"]), 0) + (item["finish"] != "error")
    harness = {"name": "vllm bench serve", **as_object(frame.get("harness"))}
    repeats = min(counts.values(), default=0)
    return {
        **frame,
        "harness": harness,
        "observations": observations,
        "windows": windows,
        "boots": len(parts),
        "repeats_of_identical_task": repeats,
    }


def _otherwise(result: Field, frame: Mapping[str, JsonValue]) -> Iterator[InputError]:
    """Where a result says other than the frame: the number of requests at once is the one thing that both state."""
    cells = as_object(frame.get("scope")).get("cells")
    stated = {as_object(cell).get("concurrency") for cell in cells} if isinstance(cells, list) else set()
    found = result["max_concurrency"]
    if found.count is not None and stated - {None} and found.count not in stated:
        yield InputError(
            Code.RECORD_CONTRADICTED,
            f"measured with {found.count} requests at once, and the frame says {', '.join(map(str, sorted(map(str, stated))))}",
            at=found.at,
            fix="state the concurrency that was measured in scope.cells",
        )


def _contradicted(at: Field, required: str, observed: str) -> RefusedError:
    message = f"the result contradicts itself: required {required}; observed {observed}"
    return RefusedError(Code.RECORD_CONTRADICTED, message, at=at.at, fix="give the file as the program wrote it")
