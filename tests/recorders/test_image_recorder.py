"""`record image`: digests are those of the bytes, levels are never mixed up, aliases are proven from bytes only."""

import gzip
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, NothingError, RefusedError, UsageError
from countermark.attestations.schema import problems
from countermark.recorders import image_store
from countermark.recorders.image import parse_component, record_image
from countermark.recorders.image_check import check_image

from .builders import (
    OCI_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    Json,
    LayoutBuilder,
    docker_archive,
    encoded,
    hex_of,
    sha256,
    write_files,
    write_tar,
)


def folder(where: Path, files: dict[str, bytes]) -> Path:
    write_files(where, files)
    return where


def recorded(path: Path, **options: Any) -> tuple[str, Json]:
    recording = record_image(path, **options)
    (subject,) = recording.subjects
    assert problems("image", recording.predicate) == []
    (digest,) = subject.typed
    return str(digest), dict(recording.predicate)


def aliases(predicate: Json) -> dict[str, bool]:
    return {alias["digest"]: alias["proven"] for alias in predicate["aliases"]}


def refused(error: type[CountermarkError], code: Code, path: Path, **options: Any) -> CountermarkError:
    with pytest.raises(error) as caught:
        record_image(path, **options)
    assert (caught.value.code, bool(caught.value.fix)) == (code, True), str(caught.value)
    return caught.value


@pytest.fixture
def layout() -> LayoutBuilder:
    return LayoutBuilder()


def test_a_single_image_by_its_manifest(tmp_path: Path, layout: LayoutBuilder) -> None:
    manifest = layout.image([b"one", b"two" * 9], labels={"org.example": "hearsay"})
    layout.top = [manifest]
    config = layout.config_of(manifest)
    for number, path in enumerate(
        [
            folder(tmp_path / "layout", layout.finished()),
            write_tar(tmp_path / "a.tar", layout.finished()),
            write_tar(tmp_path / "a.tar.gz", layout.finished(), "w:gz"),
            write_tar(tmp_path / "dotted.tar", {f"./{name}": data for name, data in layout.finished().items()}),
        ]
    ):
        subject, predicate = recorded(path)
        assert subject == f"oci-manifest:sha256:{hex_of(manifest)}", number
        assert predicate["level"] == "manifest"
        assert predicate["verified"] is True
        assert aliases(predicate) == {f"oci-config:sha256:{config}": True}
        assert predicate["platform"] == "linux/arm64"
        assert predicate["layers"] == [{"sha256": sha256(b"one"), "bytes": 3}, {"sha256": sha256(b"two" * 9), "bytes": 27}]
        assert predicate["labels"] == {"org.example": "hearsay"}
        assert "built_from" not in predicate
        assert hex_of(manifest) != config


def test_every_level_can_be_the_subject(tmp_path: Path, layout: LayoutBuilder) -> None:
    manifest = layout.image()
    index = layout.index(manifest)
    layout.top = [index]
    path = folder(tmp_path / "layout", layout.finished())
    levels = [
        f"oci-index:sha256:{hex_of(index)}",
        f"oci-manifest:sha256:{hex_of(manifest)}",
        f"oci-config:sha256:{layout.config_of(manifest)}",
    ]
    for level, digest in zip(("index", "manifest", "config"), levels, strict=True):
        for asked in (digest, digest.partition(":")[2], Digest.parse(digest)):
            subject, predicate = recorded(path, digest=asked)
            assert (subject, predicate["level"]) == (digest, level)
            assert aliases(predicate) == {other: True for other in levels if other != digest}
    assert recorded(path)[0] == levels[1]


def test_a_digest_of_another_level_is_refused(tmp_path: Path, layout: LayoutBuilder) -> None:
    manifest = layout.image()
    layout.top = [manifest]
    path = folder(tmp_path / "layout", layout.finished())
    config = layout.config_of(manifest)
    error = refused(InputError, Code.SUBJECT_KIND, path, digest=f"oci-manifest:sha256:{config}")
    assert f"oci-config:sha256:{config}" in error.fix
    refused(InputError, Code.SUBJECT_KIND, path, digest=f"oci-config:sha256:{hex_of(manifest)}")
    refused(InputError, Code.SUBJECT_UNKNOWN, path, digest="oci-config:sha256:" + "0" * 64)
    refused(InputError, Code.SUBJECT_UNKNOWN, path, digest=f"sha256:{sha256(layout.finished()['index.json'])}")
    refused(UsageError, Code.SUBJECT_KIND, path, digest="git-commit:" + "0" * 40)
    refused(InputError, Code.BAD_DIGEST, path, digest="sha256:abc")


def test_several_images_need_a_choice(tmp_path: Path, layout: LayoutBuilder) -> None:
    arm, amd = layout.image(), layout.image([b"other"], architecture="amd64")
    attestation = layout.image([b"{}"], architecture="unknown", os="unknown") | {
        "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
        "platform": {"os": "unknown", "architecture": "unknown"},
    }
    index = layout.index(arm, amd, attestation)
    layout.top = [index]
    path = folder(tmp_path / "layout", layout.finished())
    error = refused(InputError, Code.SUBJECT_UNKNOWN, path)
    assert all(text in str(error) for text in ("linux/arm64", "linux/amd64", hex_of(arm), hex_of(amd)))
    refused(InputError, Code.SUBJECT_UNKNOWN, path, platform="linux/s390x")
    typed = f"oci-index:sha256:{hex_of(index)}"
    refused(InputError, Code.SUBJECT_UNKNOWN, path, digest=typed)
    subject, predicate = recorded(path, digest=typed, platform="linux/amd64")
    assert subject == typed
    assert aliases(predicate) == {f"oci-manifest:sha256:{hex_of(amd)}": True, f"oci-config:sha256:{layout.config_of(amd)}": True}
    subject, predicate = recorded(path, platform="linux/arm64")
    assert subject == f"oci-manifest:sha256:{hex_of(arm)}"
    assert aliases(predicate) == {typed: False, f"oci-config:sha256:{layout.config_of(arm)}": True}


def test_an_image_beside_one_that_is_not_there_is_not_alone_in_its_index(tmp_path: Path, layout: LayoutBuilder) -> None:
    arm, amd = layout.image(), layout.image([b"other"], architecture="amd64")
    outer = layout.index(layout.index(arm, amd))
    layout.top = [outer]
    del layout.files[f"blobs/sha256/{hex_of(amd)}"]
    subject, predicate = recorded(folder(tmp_path / "layout", layout.finished()))
    assert subject.endswith(hex_of(arm))
    assert aliases(predicate)[f"oci-index:sha256:{hex_of(outer)}"] is False
    assert list(aliases(predicate).values()) == [False, False, True]


def test_one_image_under_two_names_is_one_image(tmp_path: Path, layout: LayoutBuilder) -> None:
    manifest = layout.image()
    layout.top = [manifest | {"annotations": {"org.opencontainers.image.ref.name": name}} for name in ("a", "b")] + [layout.index(manifest)]
    subject, predicate = recorded(folder(tmp_path / "layout", layout.finished()))
    assert subject == f"oci-manifest:sha256:{hex_of(manifest)}"
    assert len(predicate["aliases"]) == 2


def test_the_variant_of_a_platform(tmp_path: Path, layout: LayoutBuilder) -> None:
    layout.top = [
        layout.image(architecture="arm", variant="v7"),
        layout.image([b"2"], variant="v8"),
        layout.image([b"3"], os="", architecture=""),
    ]
    path = folder(tmp_path / "layout", layout.finished())
    for descriptor, platform in zip(layout.top, ("linux/arm/v7", "linux/arm64", None), strict=True):
        assert recorded(path, digest=descriptor["digest"])[1]["platform"] == platform


def test_an_index_that_calls_the_platform_otherwise_is_noted(tmp_path: Path, layout: LayoutBuilder) -> None:
    layout.top = [layout.image() | {"platform": {"os": "linux", "architecture": "amd64"}}]
    recording = record_image(folder(tmp_path / "layout", layout.finished()))
    assert recording.predicate["platform"] == "linux/arm64"
    assert any("linux/amd64" in note for note in recording.notes)


@pytest.mark.parametrize("which", ["manifest", "config", "layer"])
@pytest.mark.parametrize("kind", ["folder", "tar", "gzip"])
def test_a_blob_that_is_not_what_is_promised_is_refused(tmp_path: Path, layout: LayoutBuilder, which: str, kind: str) -> None:
    manifest = layout.image()
    layout.top = [manifest]
    name = {"manifest": hex_of(manifest), "config": layout.config_of(manifest), "layer": sha256(b"layer")}[which]
    for data in (layout.files[f"blobs/sha256/{name}"] + b" ", layout.files[f"blobs/sha256/{name}"].replace(b"a", b"b", 1)):
        files = layout.finished() | {f"blobs/sha256/{name}": data}
        path = tmp_path / f"{kind}-{len(data)}"
        if kind == "folder":
            folder(path, files)
        else:
            write_tar(path, files, "w" if kind == "tar" else "w:gz")
        assert name in str(refused(RefusedError, Code.SUBJECT_CONTRADICTION, path))


@pytest.mark.parametrize("which", ["config", "layer"])
def test_a_blob_that_is_not_there_is_refused(tmp_path: Path, layout: LayoutBuilder, which: str) -> None:
    manifest = layout.image()
    layout.top = [manifest]
    name = layout.config_of(manifest) if which == "config" else sha256(b"layer")
    del layout.files[f"blobs/sha256/{name}"]
    assert name in str(refused(InputError, Code.UNREADABLE, folder(tmp_path / "layout", layout.finished())))


def test_a_foreign_layer_may_be_elsewhere(tmp_path: Path, layout: LayoutBuilder) -> None:
    layer = layout.blob(b"layer", "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")
    config = layout.blob(encoded({"os": "windows", "architecture": "amd64"}), "application/vnd.docker.container.image.v1+json")
    media_type = "application/vnd.docker.distribution.manifest.v2+json"
    layout.top = [layout.blob(encoded({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]}), media_type)]
    del layout.files[f"blobs/sha256/{sha256(b'layer')}"]
    recording = record_image(folder(tmp_path / "layout", layout.finished()))
    assert any("elsewhere" in note for note in recording.notes)


def test_documents_that_could_be_two_things_are_refused(tmp_path: Path, layout: LayoutBuilder) -> None:
    good = layout.image()
    document = {"schemaVersion": 2, "config": {}, "layers": [], "manifests": []}
    bad: list[bytes] = [
        encoded(document),
        encoded({"schemaVersion": 2, "manifests": []}),
        encoded({"schemaVersion": 1, "config": {}, "layers": []}),
        encoded({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "config": {}, "layers": []}),
        b'{"schemaVersion": 2, "schemaVersion": 2, "config": {}, "layers": []}',
        encoded({"schemaVersion": 2, "config": {"mediaType": OCI_CONFIG, "digest": "sha512:00", "size": 1}, "layers": []}),
        encoded({"schemaVersion": 2, "config": {"mediaType": OCI_CONFIG, "digest": f"sha256:{'0' * 64}", "size": -1}, "layers": []}),
        encoded({"schemaVersion": 2, "config": {"mediaType": 7}, "layers": []}),
        b"[]",
        b"{",
        b"not JSON",
        b"[" * 100_000,
    ]
    for number, data in enumerate(bad):
        layout.top = [good, layout.blob(data, OCI_MANIFEST)]
        with pytest.raises(InputError) as caught:
            record_image(folder(tmp_path / str(number), layout.finished()))
        assert caught.value.fix


def test_layers_that_are_not_those_of_the_config(tmp_path: Path, layout: LayoutBuilder) -> None:
    manifest = layout.image([b"one", b"two"])
    document: Json = json.loads(layout.files[f"blobs/sha256/{hex_of(manifest)}"])
    document["layers"].append(layout.blob(b"three", OCI_LAYER))
    layout.top = [layout.blob(encoded(document), OCI_MANIFEST)]
    refused(RefusedError, Code.SUBJECT_CONTRADICTION, folder(tmp_path / "layout", layout.finished()))


def test_layouts_that_hold_nothing(tmp_path: Path, layout: LayoutBuilder) -> None:
    refused(NothingError, Code.NOTHING_EVALUATED, folder(tmp_path / "empty", layout.finished()))
    layout.top = [layout.blob(b"{}", "application/vnd.in-toto+json")]
    refused(NothingError, Code.NOTHING_EVALUATED, folder(tmp_path / "artifact", layout.finished()))
    artifact = layout.blob(b"{}", "application/vnd.example.config+json")
    layout.top = [layout.blob(encoded({"schemaVersion": 2, "config": artifact, "layers": []}), OCI_MANIFEST)]
    refused(NothingError, Code.NOTHING_EVALUATED, folder(tmp_path / "artifact2", layout.finished()))
    layout.top = [layout.image()]
    del layout.files[f"blobs/sha256/{hex_of(layout.top[0])}"]
    assert hex_of(layout.top[0]) in str(refused(NothingError, Code.NOTHING_EVALUATED, folder(tmp_path / "absent", layout.finished())))
    (tmp_path / "folder").mkdir()
    refused(InputError, Code.UNREADABLE, tmp_path / "folder")
    layout.files["oci-layout"] = encoded({"imageLayoutVersion": "2.0.0"})
    refused(InputError, Code.UNSUPPORTED, folder(tmp_path / "newer", layout.finished()))


def test_an_index_that_nests_without_end(tmp_path: Path, layout: LayoutBuilder) -> None:
    descriptor = layout.image()
    for _ in range(12):
        descriptor = layout.index(descriptor)
    layout.top = [descriptor]
    refused(InputError, Code.TOO_LARGE, folder(tmp_path / "deep", layout.finished()))
    layout.top = [layout.image()] * 5000
    refused(InputError, Code.TOO_LARGE, folder(tmp_path / "wide", layout.finished()))


def test_a_pipe_in_a_layout_is_not_waited_for(tmp_path: Path, layout: LayoutBuilder) -> None:
    layout.top = [layout.image()]
    path = folder(tmp_path / "layout", layout.finished())
    blob = path / "blobs/sha256" / hex_of(layout.top[0])
    blob.unlink()
    os.mkfifo(blob)
    refused(InputError, Code.UNREADABLE, path)
    blob.unlink()
    blob.symlink_to(blob)
    refused(InputError, Code.UNREADABLE, path)


def test_a_docker_archive_proves_the_image_id_alone(tmp_path: Path) -> None:
    image_id, files = docker_archive([b"one", b"two"])
    for path in (write_tar(tmp_path / "a.tar", files), write_tar(tmp_path / "a.tgz", files, "w:gz")):
        subject, predicate = recorded(path)
        assert subject == f"oci-config:sha256:{image_id}"
        assert (predicate["level"], predicate["verified"], predicate["aliases"]) == ("config", True, [])
        assert predicate["platform"] == "linux/amd64"
        assert predicate["layers"] == [{"sha256": sha256(b"one"), "bytes": 3}, {"sha256": sha256(b"two"), "bytes": 3}]


def test_a_docker_archive_that_contradicts_itself(tmp_path: Path) -> None:
    image_id, files = docker_archive()
    layer = f"{sha256(b'layer')}/layer.tar"
    refused(RefusedError, Code.SUBJECT_CONTRADICTION, write_tar(tmp_path / "layer.tar", files | {layer: b"another"}))
    config = files[f"{image_id}.json"]
    refused(RefusedError, Code.SUBJECT_CONTRADICTION, write_tar(tmp_path / "config.tar", files | {f"{image_id}.json": config + b" "}))
    fewer = encoded([{"Config": f"{image_id}.json", "Layers": []}])
    refused(RefusedError, Code.SUBJECT_CONTRADICTION, write_tar(tmp_path / "fewer.tar", files | {"manifest.json": fewer}))
    refused(InputError, Code.UNREADABLE, write_tar(tmp_path / "absent.tar", {name: data for name, data in files.items() if name != layer}))
    refused(NothingError, Code.NOTHING_EVALUATED, write_tar(tmp_path / "none.tar", {"manifest.json": b"[]"}))
    refused(InputError, Code.UNREADABLE, write_tar(tmp_path / "empty.tar", {"x": b""}))


def test_a_compressed_layer_of_a_docker_archive_is_noted(tmp_path: Path) -> None:
    _, files = docker_archive()
    layer = f"{sha256(b'layer')}/layer.tar"
    recording = record_image(write_tar(tmp_path / "a.tar", files | {layer: gzip.compress(b"layer", mtime=0)}))
    assert any("compressed" in note for note in recording.notes)


def test_an_archive_that_is_both_must_be_one_image(tmp_path: Path, layout: LayoutBuilder) -> None:
    manifest = layout.image()
    layout.top = [manifest]
    both = [{"Config": f"blobs/sha256/{layout.config_of(manifest)}", "RepoTags": None, "Layers": [f"blobs/sha256/{sha256(b'layer')}"]}]
    subject, _ = recorded(write_tar(tmp_path / "both.tar", layout.finished() | {"manifest.json": encoded(both)}))
    assert subject == f"oci-manifest:sha256:{hex_of(manifest)}"
    _, other = docker_archive([b"evil"])
    refused(RefusedError, Code.SUBJECT_CONTRADICTION, write_tar(tmp_path / "two.tar", layout.finished() | other))


def member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


@pytest.mark.parametrize(
    "entry",
    [
        member("blobs/link", tarfile.SYMTYPE, "/etc/passwd"),
        member("blobs/link", tarfile.LNKTYPE, "index.json"),
        member("dev", tarfile.CHRTYPE),
        member("pipe", tarfile.FIFOTYPE),
        member("/etc/passwd", tarfile.REGTYPE),
        member("a/../../b", tarfile.REGTYPE),
        member("a//b", tarfile.REGTYPE),
        member("index.json", tarfile.REGTYPE),
        member("./index.json", tarfile.REGTYPE),
    ],
    ids=lambda entry: f"{entry.name}-{entry.type!r}",
)
def test_archives_that_readers_would_read_differently(tmp_path: Path, layout: LayoutBuilder, entry: tarfile.TarInfo) -> None:
    layout.top = [layout.image()]
    with pytest.raises(InputError) as caught:
        record_image(write_tar(tmp_path / "a.tar", layout.finished(), extra=[entry]))
    assert caught.value.fix


def test_archives_that_are_too_much(tmp_path: Path, layout: LayoutBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.top = [layout.image()]
    path = write_tar(tmp_path / "a.tar", layout.finished())
    monkeypatch.setattr(image_store, "MAX_MEMBERS", 3)
    refused(InputError, Code.TOO_LARGE, path)
    monkeypatch.setattr(image_store, "MAX_MEMBERS", 100)
    monkeypatch.setattr(image_store, "MAX_KEPT_BYTES", 100)
    refused(InputError, Code.TOO_LARGE, path)
    monkeypatch.setattr(image_store, "MAX_DOCUMENT_BYTES", 40)
    refused(InputError, Code.UNREADABLE, path)


def test_a_header_of_gigabytes_is_not_read_into_memory(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("././@PaxHeader")
    entry.type, entry.size = tarfile.XHDTYPE, 3 << 30
    (tmp_path / "a.tar").write_bytes(entry.tobuf() + b"0" * 1024)
    refused(InputError, Code.TOO_LARGE, tmp_path / "a.tar")


def test_truncated_archives(tmp_path: Path, layout: LayoutBuilder) -> None:
    layout.top = [layout.image([b"layer" * 1000])]
    for mode in ("w", "w:gz"):
        data = write_tar(tmp_path / "whole", layout.finished(), "w" if mode == "w" else "w:gz").read_bytes()
        used = len(data) if mode == "w:gz" else data.rindex(b"]}") + 2
        for cut in range(0, used, max(1, used // 60)):
            (tmp_path / "cut").write_bytes(data[:cut])
            with pytest.raises(CountermarkError) as caught:
                record_image(tmp_path / "cut")
            assert caught.value.fix


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_byte_of_an_archive_can_crash_the_reader_or_change_an_identity(tmp_path: Path, data: st.DataObject) -> None:
    layout = LayoutBuilder()
    layout.top = [layout.image()]
    mode = data.draw(st.sampled_from(["w", "w:gz"]))
    archive = bytearray(write_tar(tmp_path / "whole", layout.finished(), "w" if mode == "w" else "w:gz").read_bytes())
    at = data.draw(st.integers(0, len(archive) - 1))
    archive[at] ^= data.draw(st.integers(1, 255))
    (tmp_path / "changed").write_bytes(archive)
    try:
        subject, _ = recorded(tmp_path / "changed")
    except CountermarkError:
        return
    assert subject == f"oci-manifest:sha256:{hex_of(layout.top[0])}"


INSPECT: Json = {
    "Id": "sha256:" + "a" * 64,
    "RepoTags": ["lab/x:latest"],
    "RepoDigests": ["lab/x@sha256:" + "b" * 64],
    "Os": "linux",
    "Architecture": "arm64",
    "Variant": "v8",
    "Config": {"Labels": {"commit": "hearsay"}},
    "RootFS": {"Type": "layers", "Layers": ["sha256:" + "c" * 64]},
}


def inspect_file(tmp_path: Path, value: object) -> Path:
    (tmp_path / "inspect.json").write_bytes(encoded(value))
    return tmp_path / "inspect.json"


def test_inspect_output_is_reported_and_proves_nothing(tmp_path: Path) -> None:
    for value in ([INSPECT], INSPECT):
        subject, predicate = recorded(inspect_file(tmp_path, value))
        assert subject == "oci-config:sha256:" + "a" * 64
        assert (predicate["level"], predicate["verified"], predicate["aliases"]) == ("config", False, [])
        assert predicate["published"] == ["lab/x@sha256:" + "b" * 64]
        assert (predicate["platform"], predicate["labels"], predicate["layers"]) == ("linux/arm64", {"commit": "hearsay"}, [])


def test_an_id_that_is_a_registry_digest_is_not_called_an_image_id(tmp_path: Path) -> None:
    """Where docker keeps images in containerd, `Id` is the digest of an index or manifest."""
    same = INSPECT | {"RepoDigests": ["lab/x@sha256:" + "a" * 64]}
    path = inspect_file(tmp_path, [same])
    refused(InputError, Code.SUBJECT_KIND, path)
    refused(InputError, Code.SUBJECT_KIND, path, digest="oci-config:sha256:" + "a" * 64)
    assert recorded(path, digest="oci-manifest:sha256:" + "a" * 64)[1]["level"] == "manifest"
    descriptor = {"mediaType": "application/vnd.oci.image.index.v1+json", "digest": "sha256:" + "a" * 64, "size": 1}
    subject, predicate = recorded(inspect_file(tmp_path, [same | {"Descriptor": descriptor}]))
    assert (subject, predicate["level"]) == ("oci-index:sha256:" + "a" * 64, "index")


def test_inspect_output_of_several_or_none(tmp_path: Path) -> None:
    other = INSPECT | {"Id": "sha256:" + "d" * 64}
    path = inspect_file(tmp_path, [INSPECT, other])
    assert "d" * 64 in str(refused(InputError, Code.SUBJECT_UNKNOWN, path))
    assert recorded(path, digest="sha256:" + "d" * 64)[0] == "oci-config:sha256:" + "d" * 64
    refused(NothingError, Code.NOTHING_EVALUATED, inspect_file(tmp_path, []))
    wrongs: list[object] = [
        {},
        [1],
        [{"Id": 1}],
        [{"Id": "abc"}],
        [INSPECT | {"RepoDigests": [1]}],
        [INSPECT | {"Config": []}],
        [INSPECT | {"Os": "A B"}],
    ]
    for wrong in wrongs:
        with pytest.raises(InputError):
            record_image(inspect_file(tmp_path, wrong))


def test_registry_references_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for tag in ("ghcr.io/org/image:latest", "localhost:5000/image", "image:1.0"):
        assert "skopeo copy" in refused(CannotTellError, Code.TAG_NOT_DIGEST, Path(tag)).fix
    refused(CannotTellError, Code.UNSUPPORTED, Path("ghcr.io/org/image@sha256:" + "a" * 64))
    for path in ("absent", "absent.tar", "./folder/absent.json", "/absent", "a b/c"):
        refused(InputError, Code.UNREADABLE, Path(path))


def test_other_packings_are_named(tmp_path: Path) -> None:
    for magic, word in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz"), (b"BZh9", "bzip2")):
        (tmp_path / "packed").write_bytes(magic + bytes(100))
        assert word in str(refused(InputError, Code.UNSUPPORTED, tmp_path / "packed"))
    for data in (b"", b"text", bytes(2000)):
        (tmp_path / "junk").write_bytes(data)
        refused(InputError, Code.UNREADABLE, tmp_path / "junk")


def test_components_are_stated_and_never_taken_from_labels(tmp_path: Path, layout: LayoutBuilder) -> None:
    layout.top = [layout.image(labels={"org.opencontainers.image.revision": "f" * 40})]
    path = folder(tmp_path / "layout", layout.finished())
    text = f"sparkcache={'a' * 40},tree=git-tree:{'b' * 40},source_sha256={'c' * 64},repository=https://example.com/x"
    _, predicate = recorded(path, components=[text, f"other=git-commit:{'d' * 64}"])
    assert predicate["built_from"]["components"] == {
        "sparkcache": {
            "commit": f"git-commit:{'a' * 40}",
            "tree": f"git-tree:{'b' * 40}",
            "source_sha256": "c" * 64,
            "repository": "https://example.com/x",
        },
        "other": {"commit": f"git-commit:{'d' * 64}"},
    }
    for bad in (
        "",
        "x",
        "x=",
        "=aa",
        "x=abc",
        f"x={'a' * 40},tree",
        f"x={'a' * 40},color=red",
        f"x=git-tree:{'a' * 40}",
        f"x={'a' * 40},tree={'b' * 40},tree={'b' * 40}",
    ):
        with pytest.raises(CountermarkError) as caught:
            parse_component(bad)
        assert caught.value.fix
    with pytest.raises(UsageError):
        record_image(path, components=[f"x={'a' * 40}", f"x={'b' * 40}"])


def test_base_and_test_results_are_stated(tmp_path: Path) -> None:
    _, files = docker_archive()
    base, result = Digest.parse("oci-manifest:sha256:" + "a" * 64), Digest.parse("payload:sha256:" + "b" * 64)
    _, predicate = recorded(write_tar(tmp_path / "a.tar", files), base=base, test_results=[result])
    assert (predicate["base"], predicate["test_results"]) == (str(base), [str(result)])


def test_a_record_is_checked_against_the_bytes(tmp_path: Path, layout: LayoutBuilder) -> None:
    arm, amd = layout.image(labels={"a": "b"}), layout.image([b"other"], architecture="amd64")
    index = layout.index(arm, amd)
    layout.top = [index]
    path = folder(tmp_path / "layout", layout.finished())
    for platform, digest in (("linux/arm64", None), ("linux/amd64", f"oci-index:sha256:{hex_of(index)}")):
        recording = record_image(path, platform=platform, digest=digest)
        (subject,) = recording.subjects[0].typed
        checked = check_image(subject, recording.predicate, path)
        assert checked.holds
        assert checked.evaluated == 5
    recording = record_image(path, platform="linux/arm64")
    (subject,) = recording.subjects[0].typed
    lies: Json = {
        "level": "config",
        "platform": "linux/amd64",
        "labels": {},
        "layers": [],
        "aliases": [{"digest": f"oci-config:sha256:{layout.config_of(amd)}", "proven": True, "how": "said so"}],
    }
    for name, lie in lies.items():
        checked = check_image(subject, recording.predicate | {name: lie}, path)
        assert [found.code for found in checked.findings] == [Code.RECORD_CONTRADICTED], name
        assert str(checked.findings[0].location).startswith(f"predicate /{name}")
    elsewhere = check_image(Digest.parse("oci-manifest:sha256:" + "0" * 64), recording.predicate, path)
    assert [found.code for found in elsewhere.findings] == [Code.SUBJECT_MISMATCH]


def test_a_reported_record_is_checked_where_both_sides_speak(tmp_path: Path) -> None:
    image_id, files = docker_archive()
    archive = write_tar(tmp_path / "a.tar", files)
    reported = INSPECT | {"Id": f"sha256:{image_id}", "Architecture": "amd64", "Variant": "", "Config": {"Labels": {"a": "b"}}}
    recording = record_image(inspect_file(tmp_path, [reported]))
    (subject,) = recording.subjects[0].typed
    assert check_image(subject, recording.predicate, archive).holds
    assert check_image(subject, recording.predicate, inspect_file(tmp_path, [reported])).holds
    assert not check_image(subject, recording.predicate | {"platform": "linux/arm64"}, archive).holds


def told_by(path: Path) -> list[tuple[int, int]]:
    told: list[tuple[int, int]] = []
    record_image(path, progress=lambda done, total: told.append((done, total)))
    return told


def test_progress_reaches_the_total(tmp_path: Path, layout: LayoutBuilder) -> None:
    layout.top = [layout.image([os.urandom(3 << 20)])]
    for path in (folder(tmp_path / "layout", layout.finished()), write_tar(tmp_path / "a.tgz", layout.finished(), "w:gz")):
        told = told_by(path)
        assert told == sorted(told)
        assert told[-1][0] == pytest.approx(told[-1][1], rel=0.01)
        assert len(told) > 3


def test_nothing_is_extracted(tmp_path: Path) -> None:
    _, files = docker_archive()
    write_tar(tmp_path / "a.tar", files)
    before = sorted(tmp_path.iterdir())
    record_image(tmp_path / "a.tar")
    assert sorted(tmp_path.iterdir()) == before
    assert io.BytesIO((tmp_path / "a.tar").read_bytes()).read(1)
