"""A user's own record, read by pointers and word tables alone."""

from typing import Any

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.documents import load_document
from countermark.attestations.errors import InputError
from countermark.contracts.adapters.fields import Field, File
from countermark.contracts.adapters.mapping import MappingAdapter
from countermark.contracts.adapters.read import read_document
from countermark.contracts.adapters.registry import ADAPTERS, adapter_for, adapter_named

from ..gate_world import catalogue  # noqa: TID252  # tests are no package, so the folder above has no absolute name
from .evidence_records import COPIES, IMAGES, copies, outcomes


def mapping(change: str = "", into: str = "") -> MappingAdapter:
    text = (COPIES / "mapping.yaml").read_text(encoding="utf-8")
    assert change in text
    return MappingAdapter.of(load_document(text.replace(change, into).encode(), "mapping.yaml", "EvidenceMapping"), catalogue())


def test_a_mapping_reads_what_it_points_at_and_computes_nothing() -> None:
    reading = copies()["chain"].read(mapping())
    predicate: Any = reading.predicate()
    (claim,) = predicate["claims"]
    assert predicate["adapter"] == {"name": "snapshot-safe-by-pointers", "version": 1}
    assert (claim["capability"], claim["outcome"], claim["source"]) == ("restore.correctness", "pass", "/status")
    assert claim["scope"] == {"image": IMAGES["chain"], "topology": {"tp": 4, "dcp": 1}, "cells": [{"context_tokens": 131072}]}
    assert set(claim["controls"].values()) == {"not-recorded"}
    assert [file["path"] for file in predicate["files"]] == ["validation.json", "publish.json", "restore.json"]
    (image,) = reading.images
    assert image.predicate["built_from"]["components"]["sparkcache"]["tree"] == "git-tree:4d5b8eb8c5c13793ee7a1e67b2b34bd38fcf4ddb"  # type: ignore[index,call-overload]  # an object
    assert reading.exit is ExitCode.YES


def test_what_it_points_at_must_be_at_hand_with_the_stated_bytes() -> None:
    record = copies()["chain"]
    record.files["restore.json"] += b" "
    changed = record.read(mapping())
    assert (outcomes(changed), changed.exit) == ({("restore.correctness", "inconclusive")}, ExitCode.NO)
    del record.files["restore.json"]
    missing = record.read(mapping())
    assert (outcomes(missing), missing.exit) == ({("restore.correctness", "inconclusive")}, ExitCode.CANNOT_TELL)


def test_a_word_that_it_does_not_list_is_refused() -> None:
    reading = copies()["chain"].changed(lambda value: value.update(status="accepted")).read(mapping())
    assert (reading.claims, reading.exit) == ((), ExitCode.NOTHING)
    assert [(item.pointer, "accepted" in item.why) for item in reading.refused] == [("/status", True)]


@pytest.mark.parametrize("status", [True, None, 1, ["qualified"], {"qualified": "qualified"}])
def test_only_text_is_a_word(status: Any) -> None:
    assert copies()["chain"].changed(lambda value: value.update(status=status)).read(mapping()).claims == ()


def test_a_cell_that_the_record_does_not_hold_is_not_recorded() -> None:
    reading = copies()["chain"].changed(lambda value: value["case"].update(committed_tokens="131072")).read(mapping())
    assert reading.claims[0]["scope"]["cells"] == [{}]  # type: ignore[index,call-overload]  # a scope


def test_a_capability_that_the_catalogue_does_not_have_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        mapping("capability: restore.correctness", "capability: restore.correctnes")
    assert (caught.value.code, "restore.correctness" in caught.value.fix) == (Code.UNKNOWN_NAME, True)


def test_a_mapping_reads_no_other_schema() -> None:
    with pytest.raises(InputError) as caught:
        copies()["live"].read(mapping())
    assert caught.value.code is Code.RECORD_UNMAPPED


def test_a_mapped_record_may_be_yaml() -> None:
    text = f"schema: mine/v1\nstatus: good\nimage: sha256:{'a' * 64}\nn: 5\n"
    spec = (
        "apiVersion: countermark.dev/v1\nkind: EvidenceMapping\nmetadata: {id: mine, version: 3}\n"
        "spec: {schema_pointer: /schema, schema: mine/v1, image: {pointer: /image, kind: oci-manifest},\n"
        "  claims: [{capability: service.health, cells: {concurrency: /n}, outcome: {pointer: /status, words: {good: pass}}}]}\n"
    )
    adapter = MappingAdapter.of(load_document(spec.encode(), "mine.yaml", "EvidenceMapping"), catalogue())
    reading = read_document(File("record.yaml", text.encode()), {}, catalogue(), adapter=adapter)
    assert outcomes(reading) == {("service.health", "pass")}


def test_a_document_that_no_adapter_reads_is_refused_with_the_names_of_all() -> None:
    for data in (b'{"schema": "sparkcache-glm53-recovery-canary/v1"}', b"[]", b'"text"', b'{"schema": 3}', b"null"):
        with pytest.raises(InputError) as caught:
            read_document(File("x.json", data), {}, catalogue())
        assert (caught.value.code, caught.value.exit) == (Code.RECORD_UNMAPPED, ExitCode.INVALID)
        assert all(name in caught.value.fix for name in ADAPTERS)


def test_an_adapter_that_is_named_must_recognise_the_document() -> None:
    root = Field.of(File("x.json", b'{"schema": "sparkcache-glm53-flat-v2-reader-research/v1"}'))
    assert adapter_for(root).name == "reader-research"
    with pytest.raises(InputError, match="snapshot-safe does not read"):
        adapter_for(root, adapter_named("snapshot-safe"))
    with pytest.raises(InputError) as caught:
        adapter_named("snapshot-saef")
    assert caught.value.fix == "did you mean 'snapshot-safe'?"
