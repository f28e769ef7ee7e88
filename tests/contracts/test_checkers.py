"""Every checker on its fixtures, and the proof that each of its passing fixtures can fail.

A new checker needs its class, its line in the registry and its fixture; nothing in this file.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from countermark.attestations.codes import Outcome
from countermark.contracts import checkers
from countermark.contracts.checkers.base import Checker
from countermark.contracts.checkers.registry import CHECKERS

from .checker_fixtures import ALL, Variant
from .small_repository import lines

NEEDED = {Outcome.FAIL, Outcome.ERROR, Outcome.NOT_APPLICABLE}
VARIANTS = [variant for variants in ALL.values() for variant in variants]
WITHOUT_A_FILE = [
    replace(passing, name=f"without {file}", files={path: data for path, data in passing.files.items() if path != file})
    for passing, *_ in ALL.values()
    for file in passing.files
    if file != "contract.yaml"
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_repository_comes_out_as_its_fixture_says(variant: Variant) -> None:
    outcome, verdict = variant.judged()
    assert (outcome, lines(verdict)) == (variant.outcome, list(variant.at)), verdict.findings
    assert (verdict.exit == 0) == (verdict.outcome is Outcome.PASS) == (outcome is Outcome.PASS)
    assert all(finding.fix for finding in verdict.findings)


@pytest.mark.parametrize("variant", WITHOUT_A_FILE, ids=str)
def test_no_file_of_a_passing_repository_can_go_unseen(variant: Variant) -> None:
    outcome, verdict = variant.judged()
    assert outcome is not Outcome.PASS
    assert verdict.exit != 0


@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_a_passing_repository_is_flipped_to_every_other_outcome(name: str) -> None:
    passing, *edited = ALL[name]
    assert passing.outcome is Outcome.PASS
    assert {variant.outcome for variant in edited} >= NEEDED
    assert len({variant.name for variant in edited}) == len(edited)


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


def _written(classes: Iterable[type[Checker]]) -> Iterator[str]:
    for checker in classes:
        yield from _written(checker.__subclasses__())
        if checker.__module__.startswith(checkers.__name__) and "name" in vars(checker):
            yield checker.name


def test_every_checker_that_is_written_is_registered_and_every_fixture_has_one() -> None:
    for module in pkgutil.iter_modules(checkers.__path__, f"{checkers.__name__}."):
        importlib.import_module(module.name)
    assert set(_written(Checker.__subclasses__())) == set(CHECKERS) == set(ALL)
