"""Scopes: what covers what, both ways, and what a miss says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.located import JsonValue
from countermark.contracts.scope import CELL_LEAVES, Leaves, Scope, describe, expand

SCOPE: dict[str, JsonValue] = {
    "image": f"oci-config:sha256:{'a1' * 32}",
    "platform": None,
    "topology": {"tp": 4, "dcp": 1, "pp": None},
    "hardware": {"system": "DGX Spark"},
    "model": {"repository": "org/model", "revision": "5e" * 20},
    "cells": [{"context_tokens": 262144, "concurrency": 1}, {"context_tokens": 131072, "concurrency": 8}],
}


@pytest.mark.parametrize(
    ("point", "passes", "fails"),
    [
        pytest.param({}, True, True, id="nothing named"),
        pytest.param({"tp": 4, "dcp": 1}, True, True, id="equal"),
        pytest.param({"tp": 2}, False, False, id="recorded and different"),
        pytest.param({"pp": 1}, False, True, id="null is not recorded"),
        pytest.param({"platform": "linux/arm64"}, False, True, id="absent and null are the same"),
        pytest.param({"system": "DGX Spark"}, True, True, id="hardware is compared as text"),
        pytest.param({"system": "DGX spark"}, False, False, id="exactly"),
        pytest.param({"model": f"org/model@{'5e' * 20}"}, True, True, id="model by repository and revision"),
        pytest.param({"draft": "none@none"}, False, True, id="no draft must be said to be none"),
        pytest.param({"context_tokens": 262144, "concurrency": 1}, True, True, id="one cell"),
        pytest.param({"context_tokens": 262144, "concurrency": 8}, False, False, id="two cells are not their product"),
        pytest.param({"context_tokens": 200000}, False, False, id="no interpolation"),
        pytest.param({"concurrency": 8}, True, True, id="one leaf of a cell"),
        pytest.param({"draft_tokens": 7}, False, True, id="a leaf no cell records"),
        pytest.param({"context_tokens": 131072, "draft_tokens": 7}, False, True, id="recorded in part"),
    ],
)
def test_covers(point: Leaves, passes: bool, fails: bool) -> None:
    scope = Scope.of(SCOPE)
    assert (scope.covers_as_pass(point), scope.covers_as_failure(point)) == (passes, fails)


@pytest.mark.parametrize("value", [None, 1, [], {}, {"cells": 1, "topology": 4, "image": "x"}, {"cells": [None, {"concurrency": True}]}])
def test_what_cannot_be_read_covers_no_pass_and_shields_from_no_failure(value: JsonValue) -> None:
    scope = Scope.of(value)
    assert scope.image is None
    assert not scope.covers_as_pass({"concurrency": 1})
    assert scope.covers_as_failure({"concurrency": 1, "tp": 4})


def test_topology_reads_the_same_as_object_and_as_text() -> None:
    assert expand("topology", "TP4/DCP1") == expand("topology", {"tp": 4, "dcp": 1, "pp": None}) == {"tp": 4, "dcp": 1}
    assert expand("topology", "TP4/DCP1/PP2") == {"tp": 4, "dcp": 1, "pp": 2}
    assert expand("topology", "TP4") == expand("topology", "TP4/DCP1\n") == {}


@pytest.mark.parametrize(
    ("point", "difference"),
    [
        ({"tp": 2}, "tp 4, required 2"),
        ({"pp": 1}, "pp not recorded, required 1"),
        ({"context_tokens": 200000}, "context_tokens 131072 or 262144, required 200000"),
        ({"context_tokens": 262144, "concurrency": 8}, "concurrency 1, required 8"),
    ],
)
def test_a_miss_names_the_dimension(point: Leaves, difference: str) -> None:
    assert [str(found) for found in Scope.of(SCOPE).differences(point)] == [difference]


def test_a_point_is_told_in_one_order() -> None:
    point: Leaves = {"draft_tokens": 7, "dcp": 1, "model": "m@r", "tp": 4, "concurrency": 1, "context_tokens": 131072}
    assert describe(point) == "131072 tokens, C1, draft 7, TP4/DCP1, model m@r"
    assert describe({}) == ""


_LEAVES = st.dictionaries(st.sampled_from(["tp", "dcp", "context_tokens", "concurrency", "draft_tokens"]), st.integers(1, 2), max_size=4)


@given(exact=_LEAVES, cells=st.lists(_LEAVES, max_size=3), point=_LEAVES, data=st.data())
def test_forgetting_a_leaf_never_helps(exact: dict[str, int], cells: list[dict[str, int]], point: Leaves, data: st.DataObject) -> None:
    """A pass that records less covers no more; a failure that records less covers no less."""
    outside = {leaf: value for leaf, value in exact.items() if leaf not in CELL_LEAVES}
    inside = [{leaf: value for leaf, value in cell.items() if leaf in CELL_LEAVES} for cell in cells] or [{}]
    scope = Scope(None, outside, tuple(inside))
    leaf = data.draw(st.sampled_from(["tp", "dcp", *CELL_LEAVES]))
    less = Scope(
        None,
        {name: value for name, value in outside.items() if name != leaf},
        tuple({name: value for name, value in cell.items() if name != leaf} for cell in inside),
    )
    assert scope.covers_as_pass(point) or not less.covers_as_pass(point)
    assert less.covers_as_failure(point) or not scope.covers_as_failure(point)


@given(exact=_LEAVES, cells=st.lists(_LEAVES, min_size=1, max_size=3), point=_LEAVES)
def test_what_covers_as_a_pass_covers_as_a_failure(exact: dict[str, int], cells: list[dict[str, int]], point: Leaves) -> None:
    scope = Scope(None, exact, tuple(cells))
    assert scope.covers_as_failure(point) or not scope.covers_as_pass(point)
    assert scope.covers_as_pass(point) is (scope.differences(point) == ())
