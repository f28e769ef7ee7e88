"""Evidence documents from disk: which files are documents, what is found beside them, and that a second reading gives the same bytes."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import InputError, NothingError
from countermark.attestations.schema import problems
from countermark.attestations.statement import Statement
from countermark.contracts.adapters.reading import EvidenceReading
from countermark.recorders.evidence_files import check_evidence, gather_evidence, image_recordings, record_evidence
from countermark.recorders.recording import Recording

from ..gate_world import catalogue  # noqa: TID252  # tests are no package, so the folder above has no absolute name
from .evidence_records import COPIES, OF_IMAGE, OF_KIND

CHAIN = COPIES / "sparkring" / "snapshot-v1-safe"


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CHAIN, tmp_path / "chain"))


def recorded(*paths: Path, binds: Any = ()) -> tuple[EvidenceReading, Recording]:
    ((reading, recording),) = record_evidence(paths, catalogue(), binds)
    return reading, recording


def names(*paths: Path) -> list[tuple[str, set[str]]]:
    return [(files.root.name, set(files.referenced)) for files in gather_evidence(paths)]


def test_a_statement_is_about_the_bytes_of_the_document() -> None:
    reading, recording = recorded(CHAIN / "validation.json")
    digest = hashlib.sha256((CHAIN / "validation.json").read_bytes()).hexdigest()
    (subject,) = recording.subjects
    assert (recording.predicate_name, subject.digests, subject.annotations) == (
        "evidence-document",
        {"sha256": digest},
        {"digestKind": "file"},
    )
    assert problems("evidence-document", recording.predicate) == []
    assert reading.exit is ExitCode.YES
    assert any("source_publish_json" in note for note in recording.notes)


def test_the_files_beside_a_document_are_found_and_no_path_of_the_machine_is_kept(chain: Path) -> None:
    _, recording = recorded(chain / "validation.json")
    files: Any = recording.predicate["files"]
    assert [(file["path"], file["role"]) for file in files] == [
        ("validation.json", "root"),
        ("publish.json", "referenced"),
        ("restore.json", "referenced"),
        ("readiness.json", "referenced"),
        ("manifest-inspection.json", "referenced"),
    ]
    assert str(chain.parent) not in json.dumps(recording.predicate)


def test_the_same_files_elsewhere_in_another_order_give_the_same_bytes(chain: Path, tmp_path: Path) -> None:
    everywhere = sorted(chain.iterdir())
    other = Path(shutil.copytree(CHAIN, tmp_path / "elsewhere" / "deeper"))

    def payload(recording: Recording) -> bytes:
        return Statement(recording.subjects, recording.predicate_name, recording.predicate).encode()

    _, first = recorded(*everywhere)
    assert [payload(recorded(*paths)[1]) for paths in ([other / "validation.json"], everywhere[::-1])] == [payload(first)] * 2


def test_a_file_that_another_names_is_no_document_of_its_own() -> None:
    assert names(*sorted(CHAIN.iterdir())) == [
        ("validation.json", {"publish.json", "restore.json", "readiness.json", "manifest-inspection.json"})
    ]
    weschera, facts = COPIES / "weschera", COPIES / "facts" / "dual-spark-arms.json"
    assert names(weschera / "comparison.json") == [("comparison.json", {"dflash2-7/quality-report.json"})]
    assert names(weschera / "comparison.json", weschera / "dflash2-7" / "quality-report.json") == [
        ("comparison.json", {"dflash2-7/quality-report.json"})
    ]
    assert names(weschera / "comparison.json", facts, weschera / "dflash2-7" / "quality-report.json") == [
        ("dual-spark-arms.json", {"comparison.json", "quality-report.json"})
    ]


def test_several_documents_are_several_statements() -> None:
    live = COPIES / "sparkring" / "pr30" / "validation.json"
    found = record_evidence([live, CHAIN / "validation.json", live], catalogue())
    assert [reading.adapter[0] for reading, _ in found] == ["live-validation", "snapshot-safe"]


def test_a_changed_file_in_the_place_of_a_named_one_contradicts_the_document(chain: Path) -> None:
    (chain / "restore.json").write_text("{}")
    reading, _ = recorded(chain / "validation.json")
    assert (reading.exit, reading.claims[0]["outcome"]) == (ExitCode.NO, "inconclusive")


def test_a_missing_file_leaves_the_claim_open(chain: Path) -> None:
    (chain / "restore.json").unlink()
    reading, _ = recorded(chain / "validation.json")
    assert (reading.exit, reading.claims[0]["outcome"]) == (ExitCode.CANNOT_TELL, "inconclusive")


@pytest.mark.parametrize("name", ["publish.json", "LICENSE"])
def test_a_file_that_nobody_reads_or_names_is_refused(tmp_path: Path, name: str) -> None:
    shutil.copy(CHAIN / "publish.json", tmp_path / "publish.json")
    (tmp_path / "LICENSE").write_text("no JSON")
    with pytest.raises(InputError) as caught:
        gather_evidence([tmp_path / name])
    assert caught.value.code in (Code.RECORD_UNMAPPED, Code.SCHEMA_INVALID)


def test_no_file_at_all_is_nothing() -> None:
    with pytest.raises(NothingError):
        gather_evidence([])


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path, tmp_path / "none.json", tmp_path / "pipe.json"):
        with pytest.raises(InputError) as caught:
            gather_evidence([path])
        assert caught.value.code is Code.UNREADABLE


@pytest.mark.parametrize("variant", ["../outside", "/etc", "a/../../outside", "a\0b", "", "."])
def test_a_name_in_a_document_never_leads_out_of_its_folder(tmp_path: Path, variant: str) -> None:
    inside = tmp_path / "inside"
    for folder in (inside, tmp_path / "outside", inside / "a"):
        folder.mkdir()
    (tmp_path / "outside" / "quality-report.json").write_text("{}")
    arms = json.loads((COPIES / "weschera" / "comparison.json").read_bytes())
    arms[1]["variant"] = variant
    (inside / "comparison.json").write_text(json.dumps(arms))
    assert names(inside / "comparison.json") == [("comparison.json", set())]


def test_a_file_name_that_is_no_text_is_kept_readable(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"r\xffcord.json")
    try:
        shutil.copy(COPIES / "sparkring" / "pr30" / "validation.json", path)
    except OSError:
        pytest.skip("this file system takes no such name")
    _, recording = recorded(path)
    Statement(recording.subjects, recording.predicate_name, recording.predicate).encode()


def test_images_are_recorded_as_reported() -> None:
    reading, _ = recorded(COPIES / "sparkring" / "pr30" / "validation.json")
    (image,) = image_recordings(reading)
    assert (image.predicate_name, image.predicate["verified"], image.subjects[0].annotations) == ("image", False, {"ociLevel": "config"})
    assert problems("image", image.predicate) == []


def test_a_recorded_document_reads_the_same_again() -> None:
    facts = [COPIES / "facts" / "dual-spark-arms.json", COPIES / "weschera" / "comparison.json"]
    for paths, binds in (([CHAIN / "validation.json"], ()), (facts, [OF_KIND]), ([facts[1]], [OF_IMAGE])):
        _, recording = recorded(*paths, binds=binds)
        (files,) = gather_evidence(paths)
        checked = check_evidence(recording.predicate, files, catalogue())
        assert (checked.holds, checked.evaluated >= 9) == (True, True)


@pytest.mark.parametrize(
    ("field", "value"), [("claims", []), ("findings", []), ("adapter", {"name": "snapshot-safe", "version": 9}), ("not_here", None)]
)
def test_a_recorded_document_that_says_other_than_its_files_is_found(field: str, value: Any) -> None:
    _, recording = recorded(CHAIN / "validation.json")
    (files,) = gather_evidence([CHAIN / "validation.json"])
    checked = check_evidence({**recording.predicate, field: value}, files, catalogue())
    assert [finding.subject for finding in checked.findings] == [field]
