"""What crosses from one name of an image to another, and what does not."""

from dataclasses import replace

import pytest

from countermark.attestations.digests import Digest
from countermark.contracts.aliases import Names
from countermark.contracts.evidence import Evidence

from .gate_world import AT_131072, Ledger, ask, code, config, index, manifest, policy, requiring

CONFIG, MANIFEST, INDEX = config("a1"), manifest("a2"), index("a3")
SIBLING, SIBLING_CONFIG = manifest("b2"), config("b1")


def names(ledger: Ledger, subject: Digest, platform: str | None = None) -> Names:
    return Names.of(subject, Evidence.of(ledger.records, ledger.trust), platform)


def two_platforms() -> Ledger:
    """An index of two manifests, each with its config; all proven from bytes."""
    ledger = Ledger()
    ledger.image(INDEX, aliases=[(MANIFEST, True), (SIBLING, True)])
    ledger.image(MANIFEST, aliases=[(CONFIG, True)], platform="linux/arm64")
    ledger.image(SIBLING, aliases=[(SIBLING_CONFIG, True)], platform="linux/amd64")
    return ledger


def test_a_pass_crosses_a_proven_alias_both_ways() -> None:
    ledger = two_platforms()
    assert names(ledger, MANIFEST).passes == names(ledger, CONFIG).passes == {MANIFEST, CONFIG}
    ledger.receipt(CONFIG)
    assert code(ask(ledger, requiring(AT_131072), MANIFEST)) == "ALLOW OK"


def test_no_pass_crosses_an_index() -> None:
    ledger = two_platforms()
    assert names(ledger, INDEX).passes == {INDEX}
    ledger.receipt(MANIFEST)
    assert code(ask(ledger, requiring(AT_131072), INDEX)) == "DENY CAP_NO_EVIDENCE"
    assert code(ask(ledger, requiring(AT_131072), SIBLING)) == "DENY CAP_NO_EVIDENCE"


@pytest.mark.parametrize("how", ["not proven", "reported by a tool", "by a stranger", "by nobody who may", "taken back"])
def test_no_pass_crosses_an_alias_that_is_not_proven_by_someone_who_may(how: str) -> None:
    ledger = Ledger()
    by = {"by a stranger": "mallory", "by nobody who may": "lab"}.get(how, "ci")
    image = ledger.image(MANIFEST, aliases=[(CONFIG, how != "not proven")], verified=how != "reported by a tool", by=by)
    if how == "taken back":
        ledger.retract(image, by="ci")
    ledger.receipt(CONFIG)
    assert names(ledger, MANIFEST).passes == {MANIFEST}
    assert code(ask(ledger, requiring(AT_131072), MANIFEST)) == "DENY CAP_NO_EVIDENCE"


@pytest.mark.parametrize(("rejected", "subject"), [(CONFIG, MANIFEST), (MANIFEST, CONFIG)])
def test_a_rejection_crosses_any_alias_both_ways(rejected: Digest, subject: Digest) -> None:
    ledger = Ledger()
    ledger.image(MANIFEST, aliases=[(CONFIG, False)], verified=False, by="lab")
    ledger.receipt(subject)
    ledger.reject(rejected)
    assert code(ask(ledger, requiring(AT_131072), subject)) == "DENY IMAGE_REJECTED"


def test_an_alias_by_a_stranger_carries_nothing() -> None:
    ledger = Ledger()
    ledger.image(MANIFEST, aliases=[(CONFIG, True)], by="mallory")
    ledger.receipt(MANIFEST)
    ledger.reject(CONFIG)
    assert code(ask(ledger, requiring(AT_131072), MANIFEST)) == "ALLOW OK"


def test_a_failure_crosses_any_alias_too() -> None:
    ledger = Ledger()
    ledger.image(MANIFEST, aliases=[(CONFIG, False)])
    ledger.receipt(MANIFEST)
    ledger.receipt(CONFIG, outcome="fail")
    assert code(ask(ledger, requiring(AT_131072), MANIFEST)) == "DENY CAP_FAILED"


@pytest.mark.parametrize(
    ("subject", "rejections"),
    [
        (CONFIG, {CONFIG, MANIFEST, INDEX}),
        (MANIFEST, {CONFIG, MANIFEST, INDEX}),
        (INDEX, {INDEX, MANIFEST, CONFIG, SIBLING, SIBLING_CONFIG}),
    ],
)
def test_rejections_go_up_to_an_index_and_down_from_it_but_not_through_it(subject: Digest, rejections: set[Digest]) -> None:
    assert names(two_platforms(), subject).rejections == rejections


def test_a_rejected_member_speaks_against_an_index_for_its_platform_only() -> None:
    ledger = two_platforms()
    ledger.receipt(INDEX)
    ledger.reject(SIBLING_CONFIG)
    assert names(ledger, INDEX, "linux/amd64").rejections == {INDEX, SIBLING, SIBLING_CONFIG}
    assert names(ledger, INDEX, "linux/arm64").rejections == {INDEX, MANIFEST, CONFIG}
    unknown = manifest("c2")
    ledger.image(INDEX, aliases=[(unknown, True)])
    assert unknown in names(ledger, INDEX, "linux/arm64").rejections


def test_the_same_hex_of_another_kind_is_another_digest() -> None:
    ledger = Ledger()
    ledger.receipt(CONFIG)
    ledger.reject(manifest("a1"))
    assert code(ask(ledger, requiring(AT_131072), CONFIG)) == "ALLOW OK"
    assert code(ask(ledger, requiring(AT_131072), index("a1"))) == "DENY SUBJECT_UNKNOWN"


def test_a_platform_must_be_recorded_for_the_image() -> None:
    ledger = two_platforms()
    asked = policy("    - {id: c, contract: serving}")
    for wanted, subject, expected in [
        ("linux/arm64", MANIFEST, "DENY CONTRACT_NOT_EVALUATED"),
        ("linux/arm64", CONFIG, "DENY CONTRACT_NOT_EVALUATED"),
        ("linux/arm64", SIBLING, "DENY SUBJECT_KIND"),
        ("linux/arm64", INDEX, "DENY SUBJECT_KIND"),
    ]:
        assert code(ask(ledger, replace(asked, platform=wanted), subject)) == expected


def test_an_alias_makes_an_image_known() -> None:
    ledger = Ledger()
    ledger.image(MANIFEST, aliases=[(CONFIG, False)])
    assert code(ask(ledger, requiring(AT_131072), CONFIG)) == "DENY CAP_NO_EVIDENCE"
