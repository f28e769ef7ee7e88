"""Random edits of a repository that keeps its contract: none crashes the evaluator, and none of a pinned value goes unseen."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

from countermark.attestations.codes import ExitCode, Outcome
from countermark.attestations.errors import InputError
from countermark.attestations.outcomes import contract_outcome
from countermark.attestations.schema import problems

from .small_repository import COMMIT, CONTRACT, FILES, MANIFEST, SOURCE_SHA256, MemoryTree, lines, verdict_on


@dataclass(frozen=True, slots=True)
class Spot:
    """One repetition of a pinned value: the digits of it in a file."""

    file: str
    start: int
    end: int

    @property
    def line(self) -> str:
        return f"{self.file}:{FILES[self.file][: self.start].count(10) + 1}"


def _spots() -> list[Spot]:
    digits = re.compile("|".join([COMMIT, SOURCE_SHA256, MANIFEST.removeprefix("sha256:"), "256\n"]).encode())
    return [
        Spot(path, found.start(), found.start() + len(found.group().strip()))
        for path, data in FILES.items()
        for found in digits.finditer(data)
    ]


SPOTS = _spots()


def test_the_spots_are_all_the_places_of_the_contract() -> None:
    assert len(SPOTS) == 11
    assert verdict_on(MemoryTree(FILES)).exit is ExitCode.YES


@given(st.sampled_from(SPOTS), st.data())
def test_each_edit_of_a_pinned_value_is_found_at_its_file_and_line(spot: Spot, data: st.DataObject) -> None:
    before = FILES[spot.file]
    old = before[spot.start : spot.end].decode()
    at = data.draw(st.integers(0, len(old) - 1))
    kind = data.draw(st.sampled_from(["replace", "insert", "remove", "swap"]))
    sign = data.draw(st.sampled_from("0123456789abcdefABCDEFgxO -_"))
    new = {
        "replace": old[:at] + sign + old[at + 1 :],
        "insert": old[: at or 1] + sign + old[at or 1 :],  # inside: a space before a value is no part of it
        "remove": old[:at] + old[at + 1 :],
        "swap": old[:at] + old[at:][:2][::-1] + old[at + 2 :],
    }[kind]
    if new == old:
        return
    verdict = verdict_on(MemoryTree({**FILES, spot.file: before[: spot.start] + new.encode() + before[spot.end :]}))
    assert spot.line in lines(verdict)
    assert verdict.exit in (ExitCode.NO, ExitCode.INVALID, ExitCode.NOTHING)


@given(st.lists(st.sampled_from(SPOTS), min_size=2, max_size=4, unique=True), st.integers(0, 39))
def test_several_edits_are_all_found(spots: list[Spot], at: int) -> None:
    files = dict(FILES)
    for number, spot in enumerate(spots):
        data = bytearray(files[spot.file])
        position = spot.start + at % (spot.end - spot.start)
        data[position] = ord("123456789"[(data[position] + number) % 9])
        files[spot.file] = bytes(data)
    changed = {spot.line for spot in spots if files[spot.file][spot.start : spot.end] != FILES[spot.file][spot.start : spot.end]}
    assert changed <= set(lines(verdict_on(MemoryTree(files))))


@given(st.sampled_from(sorted(FILES)), st.data())
@example("builder/pins.json", None)
def test_no_edit_crashes(path: str, data: st.DataObject | None) -> None:
    before = FILES[path]
    if data is None:
        after = b"[" * 100_000
    else:
        start = data.draw(st.integers(0, len(before)))
        end = data.draw(st.integers(start, len(before)))
        after = before[:start] + data.draw(st.binary(max_size=24) | st.text(max_size=12).map(str.encode)) + before[end:]
    verdict = verdict_on(MemoryTree({**FILES, path: after}))
    predicate = verdict.predicate()
    assert problems("contract-verdict", predicate) == []
    assert contract_outcome(predicate) == verdict.outcome
    assert (verdict.exit is ExitCode.YES) == (verdict.outcome is Outcome.PASS) == (not verdict.findings)


@given(st.sets(st.sampled_from(sorted(FILES))))
def test_a_file_that_is_taken_away_never_makes_a_yes(gone: set[str]) -> None:
    verdict = verdict_on(MemoryTree({path: data for path, data in FILES.items() if path not in gone}))
    still_whole = gone <= {"profiles/one.yaml"} or gone <= {"profiles/two.yaml"}
    assert (verdict.exit is ExitCode.YES) == still_whole


@given(st.text(alphabet="*?[]{}/.\\aé\n", max_size=12), st.text(max_size=12))
def test_no_place_crashes(file: str, pointer: str) -> None:
    line = f"    - {{file: {json.dumps(file or 'a')}, json: {json.dumps('/' + pointer.replace('~', ''))}, is: engine.commit}}\n"
    with suppress(InputError):
        verdict = verdict_on(MemoryTree(FILES), CONTRACT.replace("  invariants:\n", f"{line}  invariants:\n"))
        assert verdict.exit is not ExitCode.YES
