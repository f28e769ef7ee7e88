"""The page stream: its frame, its header, and where every page lies."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.geometry import Geometry, Group, Layer, Layout, default_block_counts
from countermark.cuda_restore.identity import Identity
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.stream import HEADER_JSON_BYTES_MAX, StreamHeader, StreamLayout, header_of

HEX = "0" * 64


def framed(text: bytes, magic: bytes = b"SPHP1\0") -> bytes:
    return magic + len(text).to_bytes(4, "little") + text


def head_of(geometry: Geometry, change: Callable[[dict[str, Any]], object]) -> bytes:
    tree = json.loads(header_of(geometry).encode()[10:])
    change(tree)
    return framed(json.dumps(tree, sort_keys=True).encode())


HEADER_ROWS: list[tuple[str, Callable[[dict[str, Any]], object], str, Code]] = [
    ("schema", lambda tree: tree.update(schema="sparkcache-hybrid-pages/v2"), "/schema", Code.SCHEMA_INVALID),
    ("schema is there", lambda tree: tree.pop("schema"), "/schema", Code.SCHEMA_INVALID),
    ("layout is there", lambda tree: tree.pop("layout_sha256"), "/layout_sha256", Code.SCHEMA_INVALID),
    ("layout is a SHA-256", lambda tree: tree.update(layout_sha256=HEX[1:]), "/layout_sha256", Code.BAD_DIGEST),
    ("counts are there", lambda tree: tree.pop("block_counts"), "/block_counts", Code.SCHEMA_INVALID),
    ("counts are a list", lambda tree: tree.update(block_counts=4), "/block_counts", Code.SCHEMA_INVALID),
    ("a count is no boolean", lambda tree: tree.update(block_counts=[4, True, 1]), "/block_counts/1", Code.BAD_NUMBER),
    ("a count is no real", lambda tree: tree.update(block_counts=[4.0, 2, 1]), "/block_counts/0", Code.BAD_NUMBER),
    ("a count is positive", lambda tree: tree.update(block_counts=[4, 0, 1]), "/block_counts/1", Code.SCHEMA_INVALID),
    ("no other key", lambda tree: tree.update(format_abi=1), "/format_abi", Code.SCHEMA_INVALID),
]


@pytest.mark.parametrize(("rule", "break_it", "pointer", "code"), HEADER_ROWS, ids=[row[0] for row in HEADER_ROWS])
def test_header_rules(geometry: Geometry, rule: str, break_it: Callable[[dict[str, Any]], object], pointer: str, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        StreamHeader.decode(head_of(geometry, break_it), "object 0")
    assert caught.value.at is not None
    assert (caught.value.at.file, caught.value.at.pointer, caught.value.code) == ("object 0", pointer, code)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"", Code.SCHEMA_INVALID),
        (b"SPHP1", Code.SCHEMA_INVALID),
        (b"SPHP2\0" + bytes(64), Code.SCHEMA_INVALID),
        (b"SPCKV001" + bytes(64), Code.SCHEMA_INVALID),
        (framed(b"{}", b"SPHD1\0"), Code.UNKNOWN_NAME),
        (b"SPHP1\0\1\0\0", Code.TOO_LARGE),
        (b"SPHP1\0\3\0\0\0{}", Code.TOO_LARGE),
        (framed(b" " * (HEADER_JSON_BYTES_MAX + 1)), Code.TOO_LARGE),
        (framed(b""), Code.SCHEMA_INVALID),
        (framed(b"[]"), Code.SCHEMA_INVALID),
        (framed(b"{} {}"), Code.SCHEMA_INVALID),
        (framed(b'{"schema": "a", "schema": "b"}'), Code.DUPLICATE_KEY),
        (framed(b"\xff"), Code.UNREADABLE),
        (
            framed(b'{"schema":"sparkcache-hybrid-pages/v1","block_counts":[1],"layout_sha256":"' + HEX.encode() + b'"}'),
            Code.SCHEMA_INVALID,
        ),
    ],
)
def test_frames_that_are_none(head: bytes, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        StreamHeader.decode(head, "object 0")
    assert caught.value.code is code


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree.update(layout_sha256=HEX), "written for layout"),
        (lambda tree: tree.update(block_counts=[4, 2]), "2 block counts for 3 groups"),
        (lambda tree: tree.update(block_counts=[3, 2, 1]), "group 0 has 3 blocks"),
        (lambda tree: tree.update(block_counts=[4, 1, 1]), "header and pages take"),
    ],
)
def test_a_header_must_fit_manifest_and_cache(
    snapshot: LoadedManifest, geometry: Geometry, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        StreamLayout.read(head_of(geometry, change), snapshot.manifest, geometry.layout, "object 0")


def test_layout_of_what_was_written(snapshot: LoadedManifest, geometry: Geometry, layer_pages: dict[tuple[int, str], bytes]) -> None:
    stream = b"".join((snapshot.path.parents[2] / "chunks" / one.file_name).read_bytes() for one in snapshot.manifest.objects)
    found = StreamLayout.read(stream, snapshot.manifest, geometry.layout, "object 0")
    assert found == StreamLayout.of(geometry)
    for run in found.runs:
        name = geometry.layout.groups[run.group].layers[run.layer].name
        assert stream[run.start : run.end] == layer_pages[run.group, name]
        assert found.run(run.group, run.layer) == run


def test_spaces_in_a_header_move_the_pages(snapshot: LoadedManifest, geometry: Geometry) -> None:
    """The format asks for sorted keys and says nothing of spaces; the manifest's size tells whether the pages moved with them."""
    head = head_of(geometry, lambda tree: None)
    header, header_bytes = StreamHeader.decode(head, "object 0")
    assert (header, header_bytes) == (header_of(geometry), len(header_of(geometry).encode()) + 7)
    longer = replace(snapshot.manifest.objects[-1], size_bytes=snapshot.manifest.objects[-1].size_bytes + 7)
    manifest = replace(
        snapshot.manifest, encoded_bytes=snapshot.manifest.encoded_bytes + 7, objects=(*snapshot.manifest.objects[:-1], longer)
    )
    assert StreamLayout.read(head, manifest, geometry.layout, "object 0").runs[0].start == header_bytes
    with pytest.raises(InputError, match="header and pages take"):
        StreamLayout.read(head, snapshot.manifest, geometry.layout, "object 0")


def test_pages_are_counted(geometry: Geometry) -> None:
    run = StreamLayout.of(geometry).runs[0]
    assert run.page_start(3) + run.bytes_per_page == run.end
    for page in (-1, 4):
        with pytest.raises(InputError, match="page"):
            run.page_start(page)


def test_one_shift_aligns_every_page(geometry: Geometry) -> None:
    layout = StreamLayout.of(geometry)
    shift = layout.slot_shift(16)
    assert 0 <= shift < 16
    assert {(shift + run.page_start(page)) % 16 for run in layout.runs for page in range(run.pages)} == {0}


counts = st.lists(st.integers(1, 2**24), min_size=1, max_size=16)


@given(counts=counts, digest=st.binary(min_size=32, max_size=32), tail=st.binary(max_size=16))
def test_any_header_survives(counts: list[int], digest: bytes, tail: bytes) -> None:
    header = StreamHeader(digest.hex(), tuple(counts))
    assert StreamHeader.decode(header.encode() + tail, "object 0") == (header, len(header.encode()))


shapes = st.lists(st.lists(st.integers(1, 97), min_size=1, max_size=4), min_size=1, max_size=4)


@given(shapes=shapes, chunks=st.integers(1, 16), object_bytes=st.integers(1, 5000))
def test_runs_cover_the_stream_exactly_however_it_is_cut(
    identity: Identity, shapes: list[list[int]], chunks: int, object_bytes: int
) -> None:
    layout = Layout(
        tuple(Group(256, tuple(Layer(f"{number:02}", "uint8", (size,), size) for number, size in enumerate(sizes))) for sizes in shapes)
    )
    geometry = Geometry(identity, chunks * 256, layout, default_block_counts(layout, chunks * 256))
    found = StreamLayout.of(geometry)
    position = found.header_bytes
    for start in range(0, found.encoded_bytes, object_bytes):
        for run, first, last in found.between(start, min(start + object_bytes, found.encoded_bytes)):
            assert (first, run.start <= first < last <= run.end) == (position, True)
            position = last
    assert position == found.encoded_bytes


def test_no_page_lies_in_the_header(geometry: Geometry) -> None:
    layout = StreamLayout.of(geometry)
    assert list(layout.between(0, layout.header_bytes)) == []
    assert [part[1:] for part in layout.between(0, layout.header_bytes + 1)] == [(layout.header_bytes, layout.header_bytes + 1)]
