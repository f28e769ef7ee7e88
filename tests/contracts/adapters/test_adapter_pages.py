"""The pages of the adapters repeat their tables, and name every check whose finding a record can draw."""

import re
from pathlib import Path

import pytest

from countermark.attestations.documents import load_document
from countermark.contracts.adapters.mapping import MappingAdapter
from countermark.contracts.adapters.registry import ADAPTERS

from ..gate_world import catalogue  # noqa: TID252  # tests are no package, so the folder above has no absolute name
from .evidence_records import copies

DOCS = Path(__file__).parents[3] / "docs" / "adapters"
CATALOGUE = Path(__file__).parents[4] / "shared" / "reference" / "contract-catalogue.md"


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ADAPTERS)
def test_each_adapter_has_a_page_that_repeats_its_tables(name: str) -> None:
    assert ADAPTERS[name].tables
    for table in ADAPTERS[name].tables:
        assert f"\n{table.markdown()}\n" in page(name)


def test_the_overview_lists_exactly_the_adapters() -> None:
    listed = re.findall(r"^\| \[([a-z-]+)\]\(\1\.md\)", page("README"), re.MULTILINE)
    assert listed == list(ADAPTERS)
    assert {file.stem for file in DOCS.glob("*.md")} == {*ADAPTERS, "README", "evidence-mapping"}


@pytest.mark.parametrize("name", copies())
def test_each_page_names_the_checks_that_its_records_draw(name: str) -> None:
    reading = copies()[name].read()
    assert {finding.checker for finding in reading.findings if finding.checker} <= set(
        re.findall(r"`([a-z.-]+)`", page(reading.adapter[0]))
    )


def test_every_checker_that_is_named_stands_in_the_catalogue() -> None:
    if not CATALOGUE.exists():
        pytest.skip("../shared holds the contract catalogue, and is not beside this checkout")
    known = set(re.findall(r"`([a-z-]+\.[a-z-]+)`", CATALOGUE.read_text(encoding="utf-8")))
    sections = [page(name).partition("## Checks")[2] for name in ADAPTERS]
    named = {
        checker
        for section in sections
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for checker in re.findall(r"`(.*?)`", row)
    }
    assert len(named) > 20
    assert named <= known


def test_the_example_of_a_mapping_is_one() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", page("evidence-mapping"), re.DOTALL)
    assert MappingAdapter.of(load_document(text.encode(), "mapping.yaml", "EvidenceMapping"), catalogue()).name == "nightly-smoke"
