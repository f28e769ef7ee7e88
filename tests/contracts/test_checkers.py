"""Every checker on its fixtures, and the proof that each of its passing fixtures can fail.

`fixtures/CHECKER/OUTCOME*/` is a small repository with its `contract.yaml`; the outcome that the folder is named for must come out.
`expected.yaml` lists where the findings stand. A passing folder has `flips.yaml`: edits, each of which must end the passing.
A new checker needs its class, its line in the registry and its folders here; nothing in this file.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from countermark.attestations import yamltext
from countermark.attestations.codes import Outcome
from countermark.contracts import checkers
from countermark.contracts.checkers.base import Checker
from countermark.contracts.checkers.registry import CHECKERS
from countermark.contracts.contract import Contract
from countermark.contracts.verdict import ContractVerdict, evaluate

from .small_repository import MemoryTree, lines

FIXTURES = Path(__file__).parent / "fixtures"
NEEDED = (Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class Fixture:
    """One folder: which checker, what must come out, and its files."""

    checker: str
    outcome: Outcome
    folder: Path

    def __str__(self) -> str:
        return f"{self.checker}/{self.folder.name}"

    def files(self) -> dict[str, bytes]:
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def side_file(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        value = yamltext.loads_located(path.read_bytes(), str(path)).value if path.exists() else {}
        assert isinstance(value, dict)
        return value


@dataclass(frozen=True, slots=True)
class Flip:
    """An edit of a passing fixture, what must come out of it and where."""

    fixture: Fixture
    name: str
    file: str
    replace: str
    by: str
    outcome: str
    at: str

    def __str__(self) -> str:
        return f"{self.fixture}: {self.name}"


def _fixtures() -> Iterator[Fixture]:
    for folder in sorted(FIXTURES.glob("*/*")):
        outcome = max((it for it in Outcome if folder.name.startswith(it)), key=len)
        yield Fixture(folder.parent.name, outcome, folder)


ALL = tuple(_fixtures())
PASSING = tuple(fixture for fixture in ALL if fixture.outcome is Outcome.PASS)
FLIPS = tuple(Flip(fixture, **flip) for fixture in PASSING for flip in fixture.side_file("flips.yaml").get("flips", ()))


def judged(checker: str, files: dict[str, bytes]) -> tuple[Outcome, ContractVerdict]:
    """What the one invariant with this checker comes to, and the verdict that it is part of."""
    verdict = evaluate(Contract.load(files["contract.yaml"], "contract.yaml"), MemoryTree(files))
    (judgement,) = [it for it in verdict.judgements if it.invariant.checker.name == checker]
    return judgement.result.outcome, verdict


@pytest.mark.parametrize("fixture", ALL, ids=str)
def test_a_fixture_comes_out_as_its_folder_says(fixture: Fixture) -> None:
    outcome, verdict = judged(fixture.checker, fixture.files())
    assert outcome is fixture.outcome, verdict.findings
    assert (verdict.outcome is Outcome.PASS) == (outcome is Outcome.PASS)
    assert lines(verdict) == fixture.side_file("expected.yaml").get("at", [])


@pytest.mark.parametrize("flip", FLIPS, ids=str)
def test_a_passing_fixture_stops_passing_when_it_is_edited(flip: Flip) -> None:
    files = flip.fixture.files()
    text = files[flip.file].decode()
    assert flip.replace in text
    files[flip.file] = text.replace(flip.replace, flip.by, 1).encode()
    outcome, verdict = judged(flip.fixture.checker, files)
    assert outcome is not Outcome.PASS
    assert (str(outcome), flip.at in lines(verdict)) == (flip.outcome, True), verdict.findings
    assert verdict.exit != 0


@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_a_checker_has_a_fixture_of_each_kind_and_flips(name: str) -> None:
    own = [fixture for fixture in ALL if fixture.checker == name]
    assert {fixture.outcome for fixture in own} >= set(NEEDED)
    for fixture in own:
        assert (fixture.outcome is Outcome.PASS) == bool(fixture.side_file("flips.yaml"))
        assert (fixture.outcome is Outcome.PASS) == (not fixture.side_file("expected.yaml"))


@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_a_checker_says_what_it_is(name: str) -> None:
    checker = CHECKERS[name]
    assert (checker.name, checker.version >= 1) == (name, True)
    assert checker.rule.endswith(".")
    assert checker.rule.count(". ") == 0
    Draft202012Validator.check_schema(checker.parameters)
    assert checker.parameters["additionalProperties"] is False
    properties = checker.parameters["properties"]
    assert isinstance(properties, dict)
    assert all(isinstance(schema, dict) and schema.get("description") for schema in properties.values())


def test_every_checker_that_is_written_is_registered_and_every_fixture_has_one() -> None:
    for module in pkgutil.iter_modules(checkers.__path__, f"{checkers.__name__}."):
        importlib.import_module(module.name)
    written = {checker.name for checker in Checker.__subclasses__() if checker.__module__.startswith(checkers.__name__)}
    assert written == set(CHECKERS) == {fixture.checker for fixture in ALL}
