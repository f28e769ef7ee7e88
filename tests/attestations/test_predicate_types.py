"""The names of predicate types."""

import pytest

from countermark.attestations.predicate_types import PREDICATE_BASE, TEST_RESULT, PredicateName


@pytest.mark.parametrize("name", PredicateName)
def test_a_name_and_its_uri_lead_to_each_other(name: PredicateName) -> None:
    assert name.uri == f"https://countermark.dev/predicate/{name.value}/v1"
    assert PredicateName.from_uri(name.uri) is name


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "source",
        PREDICATE_BASE,
        f"{PREDICATE_BASE}source",
        f"{PREDICATE_BASE}source/v2",
        f"{PREDICATE_BASE}source/v1/",
        f"{PREDICATE_BASE}Source/v1",
        f"{PREDICATE_BASE}unheard-of/v1",
        "http://countermark.dev/predicate/source/v1",
        TEST_RESULT,
    ],
)
def test_any_other_spelling_is_no_name_of_ours(uri: str) -> None:
    assert PredicateName.from_uri(uri) is None
