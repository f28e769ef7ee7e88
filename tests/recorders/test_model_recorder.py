"""`record model`: every byte is hashed, every promise of the layout is kept to, and what cannot be proven is said."""

import hashlib
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import CountermarkError, InputError, NothingError, UsageError
from countermark.attestations.schema import problems
from countermark.recorders.lfs import LfsPointer
from countermark.recorders.model import record_model
from countermark.recorders.model_check import check_model
from countermark.recorders.recording import Recording
from countermark.recorders.safetensors import tensor_names

from .builders import (
    REVISION,
    Json,
    commit_all,
    encoded,
    git,
    hub_cache,
    is_lfs,
    lfs_pointer,
    model_clone,
    model_files,
    safetensors,
    sha256,
    write_files,
)

SHARD = "model-00001-of-00002.safetensors"
GIVEN: Json = {"role": "target", "repository": "org/tiny", "revision": REVISION}


def manifest(files: dict[str, bytes]) -> list[Json]:
    return [{"name": name, "bytes": len(files[name]), "sha256": sha256(files[name])} for name in sorted(files)]


def predicate_of(recording: Recording) -> Json:
    assert problems("model", recording.predicate) == []
    return dict(recording.predicate)


def refused(error: type[CountermarkError], code: Code, path: Path, **options: Any) -> CountermarkError:
    with pytest.raises(error) as caught:
        record_model(path, **{"role": "target", **options})
    assert (caught.value.code, bool(caught.value.fix)) == (code, True), str(caught.value)
    return caught.value


def plain(where: Path, changes: dict[str, bytes] | None = None) -> Path:
    write_files(where, model_files() | (changes or {}))
    return where


def test_a_hub_cache_says_what_it_holds(tmp_path: Path) -> None:
    snapshot = hub_cache(tmp_path, model_files())
    for path in (snapshot, tmp_path / "models--org--tiny", snapshot / "model.safetensors.index.json", snapshot / "onnx/.."):
        recording = record_model(path, role="target")
        predicate = predicate_of(recording)
        assert (predicate["repository"], predicate["revision"], predicate["role"]) == ("org/tiny", REVISION, "target")
        assert predicate["files"] == manifest(model_files())
        assert predicate["verified"] is True
        assert predicate["licence"] == "apache-2.0"
        assert predicate["config_sha256"] == sha256(model_files()["config.json"])
        assert predicate["tokenizer_sha256"] == sha256(model_files()["tokenizer.json"])
        assert predicate["chat_template_sha256"] == sha256(b"{{ messages }}")
        assert recording.notes == ()
    (subject,) = recording.subjects
    assert subject.digests == {"gitCommit": REVISION}
    assert subject.uri == f"pkg:huggingface/org/tiny@{REVISION}"
    assert subject.annotations == {"role": "target"}


def test_a_link_to_a_snapshot_is_that_snapshot(tmp_path: Path) -> None:
    snapshot = hub_cache(tmp_path, model_files())
    (tmp_path / "current").symlink_to(snapshot)
    assert predicate_of(record_model(tmp_path / "current", role="target"))["revision"] == REVISION
    refused(InputError, Code.SCHEMA_INVALID, tmp_path / "current/config.json")


@pytest.mark.parametrize("name", ["config.json", SHARD])
def test_a_blob_that_is_not_what_its_name_says(tmp_path: Path, name: str) -> None:
    snapshot = hub_cache(tmp_path, model_files())
    blob = (snapshot / name).resolve()
    blob.write_bytes(blob.read_bytes().replace(b"1", b"2").replace(b"tiny", b"tinY"))
    assert str(refused(InputError, Code.SUBJECT_CONTRADICTION, snapshot).at) == name


def test_links_that_lead_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    for target in ("/etc/hostname", str(tmp_path / "secret"), "absent", "loop", "."):
        snapshot = hub_cache(tmp_path / sha256(target.encode()), model_files())
        (snapshot / "loop").symlink_to(target)
        assert "loop" in str(refused(InputError, Code.UNREADABLE, snapshot))


def test_special_files_are_not_waited_for(tmp_path: Path) -> None:
    path = plain(tmp_path / "model")
    os.mkfifo(path / "pipe")
    refused(InputError, Code.UNREADABLE, path, **{name: GIVEN[name] for name in ("repository", "revision")})


def test_a_cache_of_several_snapshots_needs_a_choice(tmp_path: Path) -> None:
    hub_cache(tmp_path, {"config.json": b"{}"})
    hub_cache(tmp_path, {"config.json": b"{}"}, "f" * 40)
    assert "f" * 40 in str(refused(InputError, Code.SUBJECT_UNKNOWN, tmp_path / "models--org--tiny"))
    refused(InputError, Code.SUBJECT_CONTRADICTION, tmp_path / "models--org--tiny/snapshots" / REVISION, revision="f" * 40)
    refused(InputError, Code.SUBJECT_CONTRADICTION, tmp_path / "models--org--tiny/snapshots" / REVISION, repository="org/other")


def test_a_plain_folder_must_be_told_what_it_is(tmp_path: Path) -> None:
    path = plain(tmp_path / "model")
    refused(UsageError, Code.SUBJECT_UNKNOWN, path)
    refused(UsageError, Code.SUBJECT_UNKNOWN, path, repository="org/tiny")
    refused(InputError, Code.BAD_DIGEST, path, repository="org/tiny", revision="main")
    refused(UsageError, Code.UNKNOWN_NAME, path, repository="../x", revision=REVISION)
    recording = record_model(path, **GIVEN)
    assert predicate_of(recording)["files"] == manifest(model_files())
    assert any("as given" in note for note in recording.notes)
    named = plain(tmp_path / REVISION)
    assert predicate_of(record_model(named, role="target", repository="org/tiny"))["revision"] == REVISION


def test_roles_and_targets(tmp_path: Path) -> None:
    path = plain(tmp_path / "model")
    draft = GIVEN | {"role": "draft"}
    recording = record_model(path, **draft, drafts_for=f"org/big@{'f' * 40}")
    assert predicate_of(recording)["drafts_for"] == {"repository": "org/big", "revision": "f" * 40}
    assert recording.subjects[0].annotations == {"role": "draft"}
    assert "drafts_for" not in predicate_of(record_model(path, **draft))
    refused(UsageError, Code.UNKNOWN_NAME, path, **(GIVEN | {"drafts_for": f"org/big@{'f' * 40}"}))
    refused(UsageError, Code.UNKNOWN_NAME, path, **(GIVEN | {"role": "teacher"}))
    refused(InputError, Code.BAD_DIGEST, path, **(draft | {"drafts_for": "org/big"}))


def test_caches_and_git_folders_are_not_of_the_model(tmp_path: Path) -> None:
    path = plain(tmp_path / "model", {".cache/x": b"1", "sub/.cache/y": b"2"})
    names = [file["name"] for file in predicate_of(record_model(path, **GIVEN))["files"]]
    assert ".cache/x" not in names
    assert "sub/.cache/y" in names


def test_a_download_keeps_its_promises(tmp_path: Path) -> None:
    path = plain(tmp_path / "model")
    for name, data in model_files().items():
        blob = f"blob {len(data)}\0".encode() + data
        etag = sha256(data) if is_lfs(name) else hashlib.sha1(blob).hexdigest()
        write_files(path, {f".cache/huggingface/download/{name}.metadata": f"{REVISION}\n{etag}\n1700000000.0\n".encode()})
    assert predicate_of(record_model(path, role="target", repository="org/tiny"))["revision"] == REVISION
    (path / "config.json").write_bytes(b"{}")
    refused(InputError, Code.SUBJECT_CONTRADICTION, path, repository="org/tiny")
    write_files(path, {".cache/huggingface/download/config.json.metadata": f"{'f' * 40}\netag\n0\n".encode()})
    refused(InputError, Code.SUBJECT_CONTRADICTION, path, repository="org/tiny")


def test_a_clone_is_compared_with_its_revision(tmp_path: Path) -> None:
    clone = model_clone(tmp_path / "clone", model_files())
    predicate = predicate_of(record_model(clone, role="target"))
    assert predicate["revision"] == git(clone, "rev-parse", "HEAD")
    assert (predicate["repository"], predicate["verified"]) == ("org/tiny", True)
    assert predicate["files"] == manifest(model_files())
    (clone / "stray.txt").write_bytes(b"x")
    recording = record_model(clone, role="target")
    assert recording.predicate == predicate
    assert any("stray.txt" in note for note in recording.notes)
    (clone / "config.json").write_bytes(b"{ }")
    assert "config.json" in str(refused(InputError, Code.SUBJECT_CONTRADICTION, clone))
    (clone / "config.json").unlink()
    assert "config.json" in str(refused(InputError, Code.UNREADABLE, clone))


def test_a_changed_weight_of_a_clone_is_found(tmp_path: Path) -> None:
    clone = model_clone(tmp_path / "clone", model_files())
    (clone / SHARD).write_bytes(safetensors({"a": b"99", "b": b"3456"}))
    assert SHARD in str(refused(InputError, Code.SUBJECT_CONTRADICTION, clone))


def test_pointers_are_recorded_as_the_words_of_pointers(tmp_path: Path) -> None:
    clone = model_clone(tmp_path / "clone", model_files())
    (clone / SHARD).write_bytes(lfs_pointer(model_files()[SHARD]))
    recording = record_model(clone, role="target")
    predicate = predicate_of(recording)
    assert predicate["files"] == manifest(model_files())
    assert predicate["verified"] is False
    assert any(SHARD in note and "pointer" in note for note in recording.notes)
    assert any("2 of 3 tensors" in note for note in recording.notes)
    checked = check_model(predicate, clone)
    assert [(found.code, found.outcome) for found in checked.findings] == [(Code.REF_NOT_HERE, Outcome.INCONCLUSIVE)]
    (clone / SHARD).write_bytes(lfs_pointer(b"other"))
    refused(InputError, Code.SUBJECT_CONTRADICTION, clone)
    (clone / SHARD).write_bytes(lfs_pointer(model_files()[SHARD]).replace(b"size ", b"size 1"))
    refused(InputError, Code.SUBJECT_CONTRADICTION, clone)


def test_a_pointer_whose_content_is_in_the_clone(tmp_path: Path) -> None:
    clone = model_clone(tmp_path / "clone", model_files())
    data = model_files()[SHARD]
    (clone / SHARD).write_bytes(lfs_pointer(data))
    oid = sha256(data)
    write_files(clone, {f".git/lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}": data})
    assert predicate_of(record_model(clone, role="target"))["verified"] is True
    write_files(clone, {f".git/lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}": data[:-1]})
    assert SHARD in str(refused(InputError, Code.SUBJECT_CONTRADICTION, clone))


def test_another_revision_of_a_clone(tmp_path: Path) -> None:
    clone = model_clone(tmp_path / "clone", model_files())
    first = git(clone, "rev-parse", "HEAD")
    write_files(clone, {"onnx/extra.txt": b"changed"})
    commit_all(clone, "two")
    refused(InputError, Code.SUBJECT_CONTRADICTION, clone, revision=first)
    git(clone, "checkout", "-q", first, "--", "onnx")
    assert predicate_of(record_model(clone, role="target", revision=first))["revision"] == first


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        (lfs_pointer(b"x"), LfsPointer(sha256(b"x"), 1)),
        (lfs_pointer(b"x") + b"oid sha256:" + b"0" * 64 + b"\n", None),
        (lfs_pointer(b"x")[1:], None),
        (lfs_pointer(b"x").replace(b"sha256", b"sha1"), None),
        (lfs_pointer(b"x").replace(b"size 1", b"size 01"), None),
        (lfs_pointer(b"x") + b" " * 1024, None),
        (b"", None),
    ],
)
def test_pointer_grammar(data: bytes, pointer: LfsPointer | None) -> None:
    assert LfsPointer.parse(data) == pointer


INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({INDEX: encoded({"weight_map": {"a": "absent.safetensors"}})}, "absent.safetensors"),
        ({INDEX: encoded({"weight_map": {"z": SHARD}})}, "tensor z"),
        ({INDEX: encoded({"weight_map": {"a": "../outside.safetensors"}})}, "outside"),
        ({INDEX: encoded({"weight_map": {"a": 1}})}, "/weight_map/a"),
        ({INDEX: encoded({})}, "weight_map"),
        ({INDEX: b'{"weight_map": {"a": "x", "a": "y"}}'}, INDEX),
        ({INDEX: b"{"}, INDEX),
        ({SHARD: b""}, SHARD),
        ({SHARD: b"short"}, SHARD),
        ({SHARD: safetensors({"a": b"12", "b": b"3456"})[:-1]}, SHARD),
        ({SHARD: safetensors({"a": b"12", "b": b"3456"}) + b"x"}, SHARD),
        ({SHARD: struct.pack("<Q", 1 << 60) + b"{}"}, SHARD),
        ({SHARD: struct.pack("<Q", 2) + b"[]"}, SHARD),
        ({SHARD: struct.pack("<Q", 3) + b"{x}"}, SHARD),
    ],
)
def test_damaged_weights_are_named(tmp_path: Path, changes: dict[str, bytes], where: str) -> None:
    path = plain(tmp_path / "model", changes)
    with pytest.raises(InputError) as caught:
        record_model(path, **GIVEN)
    assert where in str(caught.value)
    assert caught.value.fix


def test_overlapping_tensors_and_holes(tmp_path: Path) -> None:
    for offsets in ([[0, 4], [2, 6]], [[0, 2], [3, 6]], [[0, 6], [6, 5]], [[1, 6]], [[0, 6, 7]], [[0, -1]], [[0, True]], [["0", 6]]):
        header = encoded({f"t{number}": {"dtype": "U8", "shape": [1], "data_offsets": pair} for number, pair in enumerate(offsets)})
        (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + bytes(6))
        with pytest.raises(InputError):
            tensor_names(tmp_path / "x", "x")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_header_is_whole_or_an_error(tmp_path: Path, data: st.DataObject) -> None:
    good = safetensors({"a": b"12", "b": b"3456"})
    cut = data.draw(st.integers(0, len(good)))
    at = data.draw(st.integers(0, len(good) - 1))
    changed = bytearray(good)
    changed[at] ^= data.draw(st.integers(0, 255))
    (tmp_path / "x").write_bytes(changed[:cut] if data.draw(st.booleans()) else changed)
    try:
        assert len(tensor_names(tmp_path / "x", "x")) == 2
    except InputError as error:
        caught = error
    else:
        return
    assert caught.fix


def test_a_nested_index_names_shards_beside_it(tmp_path: Path) -> None:
    nested = {f"sub/{INDEX}": encoded({"weight_map": {"c": "w.safetensors"}}), "sub/w.safetensors": safetensors({"c": b"1"})}
    path = plain(tmp_path / "model", nested)
    assert predicate_of(record_model(path, **GIVEN))["verified"] is True
    (path / "sub/w.safetensors").rename(path / "w.safetensors")
    with pytest.raises(InputError):
        record_model(path, **GIVEN)


@pytest.mark.parametrize(
    ("changes", "template"),
    [
        ({"chat_template.jinja": b"jinja"}, sha256(b"jinja")),
        (
            {
                "tokenizer_config.json": encoded(
                    {"chat_template": [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]}
                )
            },
            sha256(b"d"),
        ),
        ({"tokenizer_config.json": encoded({"chat_template": []})}, None),
        ({"tokenizer_config.json": encoded({})}, None),
        ({"tokenizer_config.json": b"[]"}, None),
    ],
)
def test_the_chat_template(tmp_path: Path, changes: dict[str, bytes], template: str | None) -> None:
    path = plain(tmp_path / "model", changes)
    predicate = predicate_of(record_model(path, **GIVEN))
    assert predicate.get("chat_template_sha256") == template
    assert check_model(predicate, path).holds


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        (b"---\nlicense: mit\n---\n", "mit"),
        (b'---\r\ntags: [a]\r\nlicense: "cc-by-nc-nd-4.0" # non commercial\r\n---\r\n', "cc-by-nc-nd-4.0"),
        (b"---\nlicense:\n- mit\n---\n", None),
        (b"license: mit\n", None),
        (b"---\nlicense: mit\n", None),
        (b"---\nx: 1\n---\nlicense: mit\n", None),
        (b"\xff\xfe", None),
        (b"", None),
    ],
)
def test_the_licence(tmp_path: Path, card: bytes, licence: str | None) -> None:
    assert predicate_of(record_model(plain(tmp_path / "model", {"README.md": card}), **GIVEN))["licence"] == licence


def test_a_tokenizer_config_that_is_not_json(tmp_path: Path) -> None:
    for data in (b"{", b"\xff", b"[" * 100_000):
        refused(
            InputError,
            Code.UNREADABLE,
            plain(tmp_path / "model", {"tokenizer_config.json": data}),
            repository="org/tiny",
            revision=REVISION,
        )


def test_a_manifest_is_reported(tmp_path: Path) -> None:
    listing = manifest(model_files())
    path = tmp_path / "manifest.json"
    path.write_bytes(encoded(list(reversed(listing))))
    recording = record_model(path, **GIVEN)
    predicate = predicate_of(recording)
    assert (predicate["files"], predicate["verified"]) == (listing, False)
    assert predicate["config_sha256"] == sha256(model_files()["config.json"])
    assert recording.notes
    path.write_bytes(encoded({"repository": "org/tiny", "revision": REVISION, "files": listing}))
    assert predicate_of(record_model(path, role="target")) == predicate
    refused(InputError, Code.SUBJECT_CONTRADICTION, path, revision="f" * 40)
    assert {found.code for found in check_model(predicate, path).findings} == {Code.REF_NOT_HERE}


def test_manifests_that_are_refused(tmp_path: Path) -> None:
    good = {"name": "a", "bytes": 1, "sha256": "0" * 64}
    path = tmp_path / "manifest.json"
    wrongs: list[object] = [
        [good, good],
        [good | {"name": "../a"}],
        [good | {"name": "/a"}],
        [good | {"name": ""}],
        [good | {"bytes": -1}],
        [good | {"bytes": True}],
        [good | {"sha256": "abc"}],
        [{}],
        [1],
        "text",
        {"files": 7},
        {},
    ]
    for wrong in wrongs:
        path.write_bytes(encoded(wrong))
        with pytest.raises(InputError) as caught:
            record_model(path, **GIVEN)
        assert caught.value.fix
    empties: list[object] = [[], {"files": []}]
    for nothing in empties:
        path.write_bytes(encoded(nothing))
        refused(NothingError, Code.NOTHING_EVALUATED, path)
    refused(InputError, Code.UNREADABLE, tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    refused(NothingError, Code.NOTHING_EVALUATED, tmp_path / "empty")


def test_every_difference_is_a_finding_of_its_own(tmp_path: Path) -> None:
    snapshot = hub_cache(tmp_path, model_files())
    predicate = predicate_of(record_model(snapshot, role="target"))
    assert check_model(predicate, snapshot).holds
    assert check_model(predicate, snapshot).evaluated == len(model_files())
    blob = (snapshot / SHARD).resolve()
    blob.write_bytes(blob.read_bytes()[:-1])
    (snapshot / "config.json").unlink()
    (snapshot / "onnx/added").write_bytes(b"x")
    checked = check_model(predicate, snapshot)
    assert sorted(str(found.subject) for found in checked.findings) == ["config.json", SHARD, "onnx/added"]
    assert {found.code for found in checked.findings} == {Code.RECORD_CONTRADICTED}
    assert all(found.fix for found in checked.findings)


def test_false_words_of_a_record(tmp_path: Path) -> None:
    snapshot = hub_cache(tmp_path, model_files())
    predicate = predicate_of(record_model(snapshot, role="target"))
    lies: Json = {
        "revision": "f" * 40,
        "repository": "org/other",
        "config_sha256": "0" * 64,
        "tokenizer_sha256": "0" * 64,
        "chat_template_sha256": "0" * 64,
    }
    for name, lie in lies.items():
        assert [found.subject for found in check_model(predicate | {name: lie}, snapshot).findings] == [name]
    with pytest.raises(NothingError):
        check_model(predicate | {"files": []}, snapshot)
    wrongs: list[Any] = [None, [], {"files": [1]}, {"files": [{"name": 1}]}]
    for wrong in wrongs:
        with pytest.raises(InputError):
            check_model(wrong, snapshot)


def test_a_clone_is_checked_by_the_record_alone(tmp_path: Path) -> None:
    clone = model_clone(tmp_path / "clone", model_files())
    predicate = predicate_of(record_model(clone, role="target"))
    assert check_model(predicate, clone).holds
    (clone / "stray.safetensors").write_bytes(b"x")
    (clone / "config.json").write_bytes(b"{ }")
    assert sorted(str(found.subject) for found in check_model(predicate, clone).findings) == ["config.json", "stray.safetensors"]


def test_progress_is_told_one_thread_at_a_time(tmp_path: Path) -> None:
    path = plain(tmp_path / "model", {f"big{number}": bytes(3 << 20) for number in range(6)})
    told: list[tuple[int, int]] = []
    record_model(path, **GIVEN, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    assert len(told) > 18


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    path = plain(tmp_path / "model", {"big": bytes(3 << 20)})

    def grow(_done: int, _total: int) -> None:
        with (path / "big").open("ab") as file:
            file.write(b"x")

    with pytest.raises(InputError) as caught:
        record_model(path, **GIVEN, progress=grow)
    assert "changed" in str(caught.value)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    path = plain(tmp_path / "model")
    Path(os.fsdecode(os.fsencode(path) + b"/caf\xe9")).write_bytes(b"x")
    refused(InputError, Code.UNREADABLE, path)
