"""Writing: what is published, in which order it becomes durable, and that a writer killed anywhere leaves nothing half."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CountermarkError, InputError, RefusedError
from countermark.cuda_restore.geometry import Geometry
from countermark.cuda_restore.manifest import OBJECT_BYTES_MAX
from countermark.cuda_restore.reader import LoadedManifest, check_snapshot, find_layout, load_manifest
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.stream import StreamLayout
from countermark.cuda_restore.writer import layers_in_order, write_snapshot

Pages = dict[tuple[int, str], bytes]


def manifests(root: Path) -> list[Path]:
    return sorted((root / "manifests").rglob("*")) if (root / "manifests").exists() else []


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".writing-*")]


@pytest.mark.parametrize("object_bytes", [61, 137, 1000, 3424, OBJECT_BYTES_MAX])
def test_written_snapshots_read_back(tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages, object_bytes: int) -> None:
    written = write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, layer_pages), object_bytes=object_bytes)
    assert load_manifest(written.path) == written
    assert written.manifest.encoded_bytes == StreamLayout.of(geometry).encoded_bytes
    assert len(written.manifest.objects) == -(-written.manifest.encoded_bytes // object_bytes)
    assert find_layout(tmp_path / "chunks", geometry.layout.sha256) == geometry.layout
    if object_bytes > 200:
        with Folder.at(tmp_path / "chunks") as chunks:
            check_snapshot(written.manifest, chunks, geometry.layout)
    assert leftovers(tmp_path) == []


def test_a_stream_that_ends_with_an_object(tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages) -> None:
    size = StreamLayout.of(geometry).encoded_bytes
    written = write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, layer_pages), object_bytes=size)
    assert [one.size_bytes for one in written.manifest.objects] == [size]


def test_pieces_of_any_size_make_the_same_snapshot(tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages) -> None:
    whole = b"".join(layers_in_order(geometry, layer_pages))
    written = set()
    for size in (1, 61, 1000, len(whole)):
        root = tmp_path / str(size)
        root.mkdir()
        pieces = (bytearray(whole[start : start + size]) for start in range(0, len(whole), size))
        written.add(write_snapshot(root, geometry, context, pieces, object_bytes=1000).digest)
    assert len(written) == 1


@pytest.mark.parametrize("by", [-1, 1])
def test_a_payload_of_another_size_publishes_nothing(tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages, by: int) -> None:
    whole = b"".join(layers_in_order(geometry, layer_pages)) + b"x"
    with pytest.raises(InputError, match="the pieces and the header hold"):
        write_snapshot(tmp_path, geometry, context, [whole[: len(whole) - 1 + by]], object_bytes=1000)
    assert (list((tmp_path / "manifests").rglob("*.json")), leftovers(tmp_path)) == ([], [])


def test_arrays_must_be_the_layers(geometry: Geometry, layer_pages: Pages) -> None:
    short = {**layer_pages, (0, "0.v"): layer_pages[0, "0.v"][:-1]}
    missing = {key: value for key, value in layer_pages.items() if key != (1, "1.attn")}
    for arrays in (short, missing, {**layer_pages, (1, "other"): b""}):
        with pytest.raises(InputError):
            list(layers_in_order(geometry, arrays))


@pytest.mark.parametrize("object_bytes", [0, -1, OBJECT_BYTES_MAX + 1])
def test_a_request_that_cannot_be_published_writes_nothing(tmp_path: Path, geometry: Geometry, context: str, object_bytes: int) -> None:
    with pytest.raises(InputError):
        write_snapshot(tmp_path, geometry, context, [], object_bytes=object_bytes)
    with pytest.raises(InputError):
        write_snapshot(tmp_path, geometry, "../../etc", [])
    with pytest.raises(InputError, match="record_schema"):
        write_snapshot(tmp_path, replace(geometry, identity=replace(geometry.identity, record_schema=())), context, [])
    assert list(tmp_path.iterdir()) == []


def test_the_same_again_is_no_error_and_another_is(
    tmp_path: Path, snapshot: LoadedManifest, geometry: Geometry, context: str, layer_pages: Pages
) -> None:
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*") if path.is_file()}
    again = write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, layer_pages), object_bytes=1000)
    assert again == snapshot
    assert {path: path.stat().st_ino for path in tmp_path.rglob("*") if path.is_file()} == before
    other = {**layer_pages, (1, "1.attn"): bytes(192)}
    with pytest.raises(RefusedError, match="another manifest") as caught:
        write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, other), object_bytes=1000)
    assert (caught.value.code, caught.value.exit) == (Code.DUPLICATE, ExitCode.NO)
    assert load_manifest(snapshot.path) == snapshot


def test_a_damaged_object_of_the_same_name_is_replaced(
    tmp_path: Path, snapshot: LoadedManifest, geometry: Geometry, context: str, layer_pages: Pages
) -> None:
    paths = [tmp_path / "chunks" / one.file_name for one in snapshot.manifest.objects]
    paths[0].write_bytes(bytes(1000))
    paths[1].write_bytes(b"short")
    write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, layer_pages), object_bytes=1000)
    with Folder.at(tmp_path / "chunks") as chunks:
        check_snapshot(snapshot.manifest, chunks)


def test_a_damaged_layout_document_stops_the_manifest(tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages) -> None:
    (tmp_path / "layouts").mkdir()
    (tmp_path / "layouts" / f"{geometry.layout.sha256}.json").write_bytes(b"[]")
    with pytest.raises(InputError, match="layout"):
        write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, layer_pages))
    assert list((tmp_path / "manifests").rglob("*.json")) == []


def test_links_in_the_store_are_not_followed(tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "chunks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError):
        write_snapshot(tmp_path / "store", geometry, context, layers_in_order(geometry, layer_pages))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_everything_is_durable_before_the_manifest_has_its_name(
    tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, link = os.fsync, os.link

    def recorded_fsync(fd: int) -> None:
        fsync(fd)
        name = Path(os.readlink(f"/proc/self/fd/{fd}")).name
        events.append("sync file" if name.startswith(".writing-") else f"sync {name}")

    def recorded_link(source: str, name: str, **folders: int) -> None:
        events.append(f"link {Path(name).suffix}")
        link(source, name, **folders)  # type: ignore[arg-type]  # the keywords of os.link, one of them a boolean

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "link", recorded_link)
    written = write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, layer_pages), object_bytes=1000)
    made = events.index("sync file")
    assert events[:made] == [f"sync {tmp_path.name}"] * 3 + ["sync manifests"]
    key = written.manifest.identity.storage_key
    assert events[made:] == [
        *["sync file", "link .spcc"] * 4,
        "sync chunks",
        *["sync file", "link .json", "sync layouts"],
        *["sync file", "link .json", f"sync {key}"],
    ]


@pytest.mark.parametrize("call", ["open", "write", "fsync", "link", "mkdir"])
def test_a_failing_disk_is_typed_and_publishes_nothing(
    tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The first call that makes something fails, then the second, and so on until one attempt gets through."""
    real = getattr(os, call)
    for failing in range(64):
        root = tmp_path / str(failing)
        root.mkdir()
        calls = iter(range(64))

        def broken(*args: object, **named: object) -> object:
            makes = call != "open" or int(str(args[1])) & os.O_CREAT
            if makes and next(calls) == failing:  # noqa: B023 - called within this turn of the loop only
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args, **named)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, broken)
            try:
                write_snapshot(root, geometry, context, layers_in_order(geometry, layer_pages), object_bytes=1000)
            except CountermarkError as error:
                message = error.message
            else:
                assert failing > 2
                return
        assert "No space left" in message
        published = [load_manifest(path) for path in root.rglob("manifests/*/*.json")]
        assert leftovers(root) == []
        for loaded in published:
            with Folder.at(root / "chunks") as chunks:
                check_snapshot(loaded.manifest, chunks)
    pytest.fail("no attempt got through")


CHILD = """
import os, signal, sys
from pathlib import Path
from countermark.cuda_restore.manifest import Manifest
from countermark.cuda_restore.reader import find_layout, find_manifest
from countermark.cuda_restore.geometry import Geometry
from countermark.cuda_restore.writer import write_snapshot

golden, root, call, deadly = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
loaded = Manifest.parse(next(golden.rglob("manifests/*/*.json")).read_bytes(), "golden")
layout = find_layout(golden / "chunks", next(golden.glob("layouts/*")).stem)
stream = b"".join((golden / "chunks" / one.file_name).read_bytes() for one in loaded.objects)
geometry = Geometry(loaded.identity, loaded.committed_tokens, layout, (3, 2, 1))
payload = stream[-geometry.payload_bytes:]
real, seen = getattr(os, call), 0

def counted(*args, **named):
    global seen
    seen += 1
    if seen == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    found = real(*args, **named)
    if seen == -deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

setattr(os, call, counted)
write_snapshot(root, geometry, loaded.context_digest, [payload[:100], payload[100:]], object_bytes=2048)
"""

GOLDEN = Path(__file__).parent.parent / "data" / "golden_snapshot" / "store"
POINTS = [
    *[("write", number) for number in (1, 3, -5)],
    *[("fsync", number) for number in (1, 5, -8, 9, -10, 11, -12, 13)],
    *[("link", number) for number in (1, -4, 5, 6, -6)],
    *[("unlink", number) for number in (1, 6)],
]


@pytest.mark.parametrize(("call", "number"), POINTS)
def test_a_writer_killed_anywhere_leaves_no_half_snapshot(tmp_path: Path, call: str, number: int) -> None:
    """SIGKILL before (positive) or behind (negative) the n-th call; only one behind the manifest's link may leave a manifest."""
    child = subprocess.run([sys.executable, "-c", CHILD, str(GOLDEN), str(tmp_path), call, str(number)], check=False)
    assert child.returncode == -signal.SIGKILL
    found = list(tmp_path.rglob("manifests/*/*.json"))
    assert bool(found) is ((call, number) in {("link", -6), ("unlink", 6), ("fsync", 13)})
    for path in found:
        with Folder.at(tmp_path / "chunks") as chunks:
            check_snapshot(load_manifest(path).manifest, chunks)
    assert leftovers(tmp_path) or call in ("unlink", "fsync")
    assert rewritten(tmp_path).digest == load_manifest(next(GOLDEN.rglob("manifests/*/*.json"))).digest


@pytest.mark.slow
@pytest.mark.parametrize("call", ["open", "mkdir", "write", "fsync", "link", "unlink"])
def test_a_writer_killed_at_every_single_call_leaves_no_manifest_that_does_not_verify(tmp_path: Path, call: str) -> None:
    for number in range(1, 200):
        for point in (number, -number):
            root = tmp_path / f"{point}"
            root.mkdir()
            child = subprocess.run([sys.executable, "-c", CHILD, str(GOLDEN), str(root), call, str(point)], check=False)
            for path in root.rglob("manifests/*/*.json"):
                with Folder.at(root / "chunks") as chunks:
                    check_snapshot(load_manifest(path).manifest, chunks)
            if child.returncode == 0:  # there is no such call any more
                assert number > 1
                return
            assert child.returncode == -signal.SIGKILL
            assert rewritten(root).digest == load_manifest(next(GOLDEN.rglob("manifests/*/*.json"))).digest


def test_drafts_of_a_living_writer_stay(tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages) -> None:
    """While one writer holds the lock, another leaves drafts alone; the first writer's own end removes its own."""

    def slowly() -> Iterator[bytes]:
        yield bytes(1500)
        write_snapshot(tmp_path, geometry, "f" * 64, layers_in_order(geometry, layer_pages), object_bytes=1000)
        assert len(leftovers(tmp_path)) == 1
        yield bytes(geometry.payload_bytes - 1500)

    write_snapshot(tmp_path, geometry, context, slowly(), object_bytes=1000)
    assert len(list(tmp_path.rglob("manifests/*/*.json"))) == 2
    assert leftovers(tmp_path) == []


def rewritten(root: Path) -> LoadedManifest:
    """The snapshot published over what the killed writer left."""
    subprocess.run([sys.executable, "-c", CHILD, str(GOLDEN), str(root), "write", "1000"], check=True)
    assert leftovers(root) == []
    return load_manifest(next(root.rglob("manifests/*/*.json")))


def stalling(payload: bytes) -> Iterator[bytes]:
    yield payload
    raise KeyboardInterrupt


def test_an_interrupted_writer_cleans_up(tmp_path: Path, geometry: Geometry, context: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_snapshot(tmp_path, geometry, context, stalling(bytes(1500)), object_bytes=1000)
    assert (list(tmp_path.rglob("manifests/*/*.json")), leftovers(tmp_path)) == ([], [])
