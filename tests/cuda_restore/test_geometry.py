"""Layouts and page counts: what is refused, and that any layout survives its document."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.geometry import (
    DTYPE_BYTES,
    MAX_DESTINATIONS,
    MAX_SLOTS,
    Geometry,
    Group,
    Layer,
    Layout,
    ReusePolicy,
    default_block_counts,
)
from countermark.cuda_restore.identity import Identity

Groups = list[Any]

LAYOUT_ROWS: list[tuple[str, Callable[[Groups], object], str | None, Code]] = [
    ("a list", lambda groups: groups.clear(), None, Code.SCHEMA_INVALID),
    ("groups are objects", lambda groups: groups.insert(0, 1), "/0", Code.SCHEMA_INVALID),
    ("group keys", lambda groups: groups[1].pop("reuse_policy"), "/1/reuse_policy", Code.SCHEMA_INVALID),
    ("no other group key", lambda groups: groups[0].update(eagle=True), "/0/eagle", Code.SCHEMA_INVALID),
    ("block size is an integer", lambda groups: groups[0].update(block_size=True), "/0/block_size", Code.BAD_NUMBER),
    ("block size is positive", lambda groups: groups[0].update(block_size=0), "/0/block_size", Code.SCHEMA_INVALID),
    ("some layers", lambda groups: groups[0].update(layers=[]), "/0/layers", Code.SCHEMA_INVALID),
    ("policy", lambda groups: groups[0].update(reuse_policy="half"), "/0/reuse_policy", Code.UNKNOWN_NAME),
    ("sliding has a window", lambda groups: groups[1].update(reuse_window_tokens=None), "/1/reuse_window_tokens", Code.SCHEMA_INVALID),
    ("a window is positive", lambda groups: groups[1].update(reuse_window_tokens=0), "/1/reuse_window_tokens", Code.SCHEMA_INVALID),
    ("full has no window", lambda groups: groups[0].update(reuse_window_tokens=256), "/0/reuse_window_tokens", Code.SCHEMA_INVALID),
    ("layers are sorted", lambda groups: groups[0]["layers"].reverse(), "/0/layers/1/name", Code.SCHEMA_INVALID),
    ("a layer once", lambda groups: groups[0]["layers"].append(groups[0]["layers"][1]), "/0/layers/2/name", Code.SCHEMA_INVALID),
    ("a layer has a name", lambda groups: groups[0]["layers"][0].update(name=""), "/0/layers/0/name", Code.SCHEMA_INVALID),
    ("layer keys", lambda groups: groups[0]["layers"][0].pop("dtype"), "/0/layers/0/dtype", Code.SCHEMA_INVALID),
    ("no other layer key", lambda groups: groups[0]["layers"][0].update(stride=1), "/0/layers/0/stride", Code.SCHEMA_INVALID),
    ("element type", lambda groups: groups[0]["layers"][0].update(dtype="nvfp4"), "/0/layers/0/dtype", Code.UNKNOWN_NAME),
    ("a shape", lambda groups: groups[0]["layers"][0].update(page_shape=[]), "/0/layers/0/page_shape", Code.SCHEMA_INVALID),
    (
        "a positive shape",
        lambda groups: groups[0]["layers"][0].update(page_shape=[-1, -512]),
        "/0/layers/0/page_shape",
        Code.SCHEMA_INVALID,
    ),
    ("an integer shape", lambda groups: groups[0]["layers"][0].update(page_shape=[1.0]), "/0/layers/0/page_shape/0", Code.BAD_NUMBER),
    (
        "shape and size agree",
        lambda groups: groups[0]["layers"][0].update(bytes_per_page=511),
        "/0/layers/0/bytes_per_page",
        Code.SCHEMA_INVALID,
    ),
]


@pytest.mark.parametrize(("rule", "break_it", "pointer", "code"), LAYOUT_ROWS, ids=[row[0] for row in LAYOUT_ROWS])
def test_layout_rules(layout: Layout, rule: str, break_it: Callable[[Groups], object], pointer: str | None, code: Code) -> None:
    groups: Groups = json.loads(layout.encode())
    break_it(groups)
    with pytest.raises(InputError) as caught:
        Layout.parse(json.dumps(groups).encode(), "layout.json")
    assert caught.value.at is not None
    assert (caught.value.at.file, caught.value.at.pointer, caught.value.code) == ("layout.json", pointer, code)
    assert caught.value.fix


def test_a_layout_is_a_list() -> None:
    with pytest.raises(InputError, match="list of groups"):
        Layout.parse(b"{}", "layout.json")


def test_more_layers_than_can_be_placed() -> None:
    layers = tuple(Layer(f"{number:05}", "uint8", (1,), 1) for number in range(MAX_DESTINATIONS + 1))
    Layout((Group(256, layers[1:]),))
    with pytest.raises(InputError, match="1025"):
        Layout((Group(256, layers),))


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"committed_tokens": 0}, "/committed_tokens"),
        ({"committed_tokens": 500}, "/committed_tokens"),
        ({"block_counts": (4, 2)}, "/block_counts"),
        ({"block_counts": (4, 2, 1, 1)}, "/block_counts"),
        ({"block_counts": (3, 2, 1)}, "/block_counts/0"),
        ({"block_counts": (5, 2, 1)}, "/block_counts/0"),
        ({"block_counts": (4, 0, 1)}, "/block_counts/1"),
        ({"block_counts": (4, 3, 1)}, "/block_counts/1"),
        ({"block_counts": (4, 2, 0)}, "/block_counts/2"),
        ({"block_counts": (4, 2, MAX_SLOTS)}, "/block_counts"),
        ({"layout": Layout((Group(192, (Layer("a", "uint8", (1,), 1),)),)), "block_counts": (3,)}, "/0/block_size"),
    ],
)
def test_geometry_rules(geometry: Geometry, change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(geometry, **change)
    assert caught.value.at is not None
    assert caught.value.at.pointer == pointer


def test_interleave_divides_the_block(geometry: Geometry) -> None:
    replace(geometry, identity=replace(geometry.identity, cp_kv_cache_interleave_size=64))
    with pytest.raises(InputError, match="interleave"):
        replace(geometry, identity=replace(geometry.identity, cp_kv_cache_interleave_size=256))


def test_a_sharded_full_group_counts_this_ranks_share(geometry: Geometry) -> None:
    identity = replace(geometry.identity, dcp_degree=2)
    assert replace(geometry, identity=identity, block_counts=(2, 2, 1)).payload_bytes == 2 * 768 + 2 * 96 + 160
    assert replace(geometry, identity=identity, block_counts=(4, 2, 1)).pages == 4 * 2 + 2 + 1
    with pytest.raises(InputError, match="2 or 4"):
        replace(geometry, identity=identity, block_counts=(3, 2, 1))


def test_default_counts(layout: Layout) -> None:
    assert default_block_counts(layout, 512) == (4, 2, 1)
    assert default_block_counts(layout, 131_072) == (1024, 2, 1)
    assert default_block_counts(layout, 131_072, (2, 1, 1)) == (512, 2, 1)
    assert default_block_counts(layout, 256) == (2, 1, 1)


layers = st.builds(
    lambda name, dtype, prefix, shape: (name, dtype, prefix, shape),
    st.text(min_size=1, max_size=8).filter(lambda text: text.isprintable()),
    st.sampled_from(sorted(DTYPE_BYTES)),
    st.sampled_from(["", "torch."]),
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """Any group of a size that divides, or is divided by, a chunk."""
    drawn = draw(st.lists(layers, min_size=1, max_size=4, unique_by=lambda layer: layer[0]))
    policy = draw(st.sampled_from(ReusePolicy))
    made = []
    for name, dtype, prefix, shape in sorted(drawn):
        size = DTYPE_BYTES[dtype]
        for extent in shape:
            size *= extent
        made.append(Layer(name, prefix + dtype, tuple(shape), size))
    window = draw(st.integers(1, 1024)) if policy is ReusePolicy.SLIDING else None
    return Group(draw(st.sampled_from([1, 16, 64, 256, 512, 2304])), tuple(made), policy, window)


layouts = st.lists(groups(), min_size=1, max_size=4).map(lambda found: Layout(tuple(found)))


@given(layout=layouts)
def test_any_layout_survives_its_document(layout: Layout) -> None:
    again = Layout.parse(layout.encode(), "layout.json")
    assert again == layout
    assert again.sha256 == layout.sha256


@given(layout=layouts, chunks=st.integers(1, 64))
def test_default_counts_are_always_allowed(identity: Identity, layout: Layout, chunks: int) -> None:
    counts = default_block_counts(layout, chunks * 256)
    geometry = Geometry(identity, chunks * 256, layout, counts)
    assert geometry.payload_bytes == sum(
        count * layer.bytes_per_page for group, count in zip(layout.groups, counts, strict=True) for layer in group.layers
    )
