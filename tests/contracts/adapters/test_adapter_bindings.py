"""Bindings say what a record does not, are kept as such, and never stand against the record."""

from typing import Any

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import InputError
from countermark.contracts.adapters.bindings import Binding

from .evidence_records import IMAGES, OF_IMAGE, copies

DIGEST = IMAGES["campaign"]


def bound(name: str, *texts: str) -> Any:
    record = copies()[name]
    record.binds = [Binding.parse(text) for text in texts]
    return record.read().predicate()


def refused(name: str, *texts: str) -> Code:
    with pytest.raises(InputError) as caught:
        bound(name, *texts)
    assert caught.value.fix
    assert caught.value.exit is ExitCode.INVALID
    return caught.value.code


def test_a_binding_is_kept_with_its_reason_and_told_in_each_claim() -> None:
    predicate = bound("campaign", f"/image={DIGEST} because the third seed names it")
    assert predicate["bound_by"] == [{"field": "/image", "value": DIGEST, "why": "the third seed names it"}]
    assert all(claim["scope"]["image"] == DIGEST for claim in predicate["claims"])
    assert all(claim["derived"][0]["rule"].startswith("stated by --bind") for claim in predicate["claims"])


def test_without_a_reason_it_says_whose_word_it_is() -> None:
    assert bound("campaign", f"/image={DIGEST}")["bound_by"][0]["why"] == "stated by the signer; the record does not say it"


@pytest.mark.parametrize(
    "text",
    [
        "/reported_results/*/conditions/executed_image_digest=kind oci-manifest",
        f"/reported_results/*/conditions/executed_image_digest={DIGEST}",
        f"/image={DIGEST}",
        "/image=kind oci-manifest",
    ],
)
def test_the_kind_of_a_digest_is_bound_at_its_place_or_for_the_image(text: str) -> None:
    predicate = bound("explainer", text)
    assert {claim["scope"]["image"] for claim in predicate["claims"]} == {DIGEST}
    assert predicate["claims"][0]["derived"][0]["rule"] == "stated by --bind, the document names no kind"


def test_scope_is_bound_where_the_record_leaves_it_open() -> None:
    model = f"nvidia/GLM@{'a' * 40}"
    predicate = bound(
        "report", f"/image={DIGEST}", "/scope/draft_tokens=7", "/scope/topology=TP2/DCP1", "/scope/nodes=2", f"/scope/model={model}"
    )
    (claim,) = predicate["claims"]
    assert claim["scope"] == {
        "image": DIGEST,
        "topology": {"tp": 2, "dcp": 1},
        "nodes": 2,
        "model": {"repository": "nvidia/GLM", "revision": "a" * 40},
        "cells": [{"draft_tokens": 7}],
    }


def test_a_recorded_topology_is_completed_and_stays_as_it_is() -> None:
    predicate = bound("chain", "/scope/topology=TP4/DCP1/PP1")
    assert predicate["claims"][0]["scope"]["topology"] == {"tp": 4, "dcp": 1, "pp": 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("live", f"/image={DIGEST}"),
        ("live", "/artifact/image_id=kind oci-manifest"),
        ("live", f"/image=oci-config:sha256:{'0' * 64}"),
        ("explainer", f"/image=oci-manifest:sha256:{'0' * 64}"),
        ("chain", "/scope/topology=TP2/DCP1"),
        ("chain", "/scope/context_tokens=262144"),
        ("live", "/scope/draft_tokens=3"),
    ],
)
def test_a_binding_against_the_record_is_refused(name: str, text: str) -> None:
    assert refused(name, text) is Code.RECORD_CONTRADICTED


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("live", "/artifact/other=1", Code.UNKNOWN_NAME),
        ("live", "/observed/to=2026-12-01T00:00:00Z", Code.UNKNOWN_NAME),
        ("live", "/scope/boots=a", Code.UNKNOWN_NAME),
        ("live", "/scope/hardware=H200", Code.UNKNOWN_NAME),
        ("campaign", "/image=latest", Code.TAG_NOT_DIGEST),
        ("campaign", "/image=file:sha256:" + "0" * 64, Code.BAD_DIGEST),
        ("campaign", "/image=sha256:" + "0" * 64, Code.BAD_DIGEST),
        ("chain", "/scope/draft_tokens=-1", Code.SCHEMA_INVALID),
        ("chain", "/scope/draft_tokens=7.0", Code.SCHEMA_INVALID),
        ("chain", "/scope/draft_tokens=" + "9" * 400, Code.SCHEMA_INVALID),
        ("chain", "/scope/model=nvidia/GLM@main", Code.SCHEMA_INVALID),
        ("chain", "/scope/topology=two by two", Code.SCHEMA_INVALID),
        ("chain", "/scope/platform=arm", Code.SCHEMA_INVALID),
        ("live", "image=1", Code.SCHEMA_INVALID),
        ("live", "/image", Code.SCHEMA_INVALID),
        ("live", "/image=", Code.SCHEMA_INVALID),
    ],
)
def test_a_binding_of_another_form_or_for_nothing_is_refused(name: str, text: str, code: Code) -> None:
    assert refused(name, text) is code


def test_a_reading_without_its_image_says_which_binding_it_needs() -> None:
    record = copies()["report"]
    record.binds = ()
    reading = record.read()
    assert (reading.claims, reading.exit) == ((), ExitCode.CANNOT_TELL)
    assert "--bind /image=" in reading.findings[0].fix
    assert OF_IMAGE.field == "/image"
