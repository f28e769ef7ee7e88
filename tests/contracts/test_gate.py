"""The gate as a whole: contracts bound to an image, what holds for any requirement, and the text that people read."""

from dataclasses import replace
from typing import Any

import pytest

from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.times import Instant
from countermark.contracts.decision import Decision, DecisionHead, Mode, Verdict
from countermark.contracts.explain_text import explain
from countermark.contracts.gate import Question, decide
from countermark.contracts.policy import ReleasePolicy

from .gate_world import AT_131072, COMMIT, IMAGE, NOW, OTHER, OTHER_COMMIT, Ledger, ask, code, config, manifest, policy, requiring, trust
from .test_profile import profile

CONTRACT = "    - {id: contract, contract: serving}"
FINDING = {
    "code": "CONTRACT_VIOLATED",
    "severity": "block",
    "outcome": "fail",
    "checker": "pins.agree",
    "location": {"file": "profiles/a.yaml", "line": 4, "pointer": "/source/commit"},
    "required": COMMIT,
    "observed": OTHER_COMMIT,
    "evidence": [],
    "fix": "set /source/commit to the pinned commit",
}


def built(commit: str = COMMIT, **more: str) -> dict[str, dict[str, str]]:
    return {"engine": {"commit": f"git-commit:{commit}", **more}}


def image_built_from(commit: str = COMMIT) -> Ledger:
    ledger = Ledger()
    ledger.image(IMAGE, components=built(commit))
    return ledger


def asked(ledger: Ledger, requires: str = CONTRACT, subject: Digest = IMAGE, **more: Any) -> Decision:
    return ask(ledger, policy(requires), subject, **more)


def test_an_image_built_from_what_the_contract_pins_is_allowed() -> None:
    ledger = image_built_from()
    assert code(asked(ledger)) == "DENY CONTRACT_NOT_EVALUATED"
    verdict = ledger.verdict()
    decision = asked(ledger)
    assert code(decision) == "ALLOW OK"
    assert [(item.id, item.digest) for item in decision.inputs.contract_verdicts] == [("serving", verdict.payload)]
    assert decision.checkers == {"pins.agree": 1}


def test_a_violated_contract_denies_with_file_and_line() -> None:
    ledger = image_built_from()
    ledger.verdict()
    ledger.verdict("fail", findings=[FINDING], commit=OTHER_COMMIT)
    (result,) = asked(ledger).requirements
    assert result.code is Code.CONTRACT_VIOLATED
    assert "profiles/a.yaml:4 /source/commit pins.agree" in result.observed
    assert result.fix.startswith("set /source/commit to the pinned commit")
    assert [(item.index, item.used) for item in result.evidence] == [(2, True)]


def test_a_later_verdict_that_does_not_count_is_told() -> None:
    ledger = image_built_from()
    ledger.verdict()
    ledger.verdict("fail", by="mallory")
    (result,) = asked(ledger).requirements
    assert [(item.index, item.used) for item in result.evidence] == [(0, True), (1, True), (2, False)]
    assert result.evidence[2].why == "mallory may not make it as builder or qualifier [SIGNER_UNTRUSTED]"


def test_the_verdict_with_the_highest_index_counts() -> None:
    ledger = image_built_from()
    ledger.verdict("fail", findings=[FINDING])
    ledger.verdict(commit=OTHER_COMMIT)
    assert code(asked(ledger)) == "ALLOW OK"


def test_a_failure_that_is_said_again_counts_again() -> None:
    ledger = image_built_from()
    failure = ledger.verdict("fail", findings=[FINDING])
    ledger.verdict(commit=OTHER_COMMIT)
    ledger.records.append(replace(failure, index=len(ledger.records), signers=("lab",), roles=(), code=Code.SIGNER_UNTRUSTED))
    assert code(asked(ledger)) == "DENY CONTRACT_VIOLATED"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "ALLOW OK"),
        ({"evaluated": 0}, "DENY CONTRACT_NOT_EVALUATED"),
        ({"evaluated": 2}, "DENY CONTRACT_NOT_EVALUATED"),
        ({"outcome": "error"}, "DENY CONTRACT_NOT_EVALUATED"),
        ({"outcome": "inconclusive"}, "DENY CONTRACT_NOT_EVALUATED"),
        ({"findings": [FINDING]}, "DENY CONTRACT_VIOLATED"),
        ({"findings": [{**FINDING, "severity": "warn"}]}, "ALLOW OK"),
        ({"by": "lab"}, "DENY SIGNER_UNTRUSTED"),
        ({"by": "mallory"}, "DENY SIGNER_UNTRUSTED"),
        ({"outcome": "fail", "by": "lab"}, "DENY CONTRACT_VIOLATED"),
        ({"outcome": "fail", "by": "mallory"}, "DENY SIGNER_UNTRUSTED"),
    ],
)
def test_a_verdict_is_computed_again_and_its_signer_judged(fields: dict[str, Any], expected: str) -> None:
    ledger = image_built_from()
    ledger.verdict(**fields)
    assert code(asked(ledger)) == expected


def test_a_requirement_may_ask_for_a_version() -> None:
    ledger = image_built_from()
    ledger.verdict(version=3)
    ledger.verdict("fail", version=2, findings=[FINDING])
    line = "    - {{id: contract, contract: serving, min_version: {}}}"
    assert code(asked(ledger)) == "DENY CONTRACT_VIOLATED"
    assert code(asked(ledger, line.format(3))) == "ALLOW OK"
    (result,) = asked(ledger, line.format(4)).requirements
    assert (result.code, result.observed) == (Code.CONTRACT_NOT_EVALUATED, "verdicts for version 2, 3 only")


def test_a_verdict_that_is_taken_back_does_not_count() -> None:
    ledger = image_built_from()
    ledger.retract(ledger.verdict(), by="ci")
    assert code(asked(ledger)) == "DENY SIGNER_UNTRUSTED"


TREE, SOURCE = "7a" * 20, "8b" * 32
PIN = {"commit": COMMIT, "tree": TREE, "source_sha256": SOURCE}


@pytest.mark.parametrize(
    ("components", "pins", "expected"),
    [
        (built(), {"engine": PIN}, "ALLOW OK"),
        (built(tree=f"git-tree:{TREE}", source_sha256=SOURCE), {"engine": PIN, "geometry": {"tokens": "256"}}, "ALLOW OK"),
        (built(OTHER_COMMIT), {"engine": PIN}, "engine.commit is"),
        (built(tree=f"git-tree:{'7b' * 20}"), {"engine": PIN}, "engine.tree is"),
        (built(source_sha256="8c" * 32), {"engine": PIN}, "engine.source_sha256 is"),
        (built(), {"engine": {"tokens": "256"}}, "does not pin a commit, tree or source of engine"),
        (built(), {"other": PIN}, "no component of the image is recorded that the contract pins (other)"),
        (built(), {}, "it pins nothing"),
        (None, {"engine": PIN}, "no component of the image is recorded that the contract pins (engine)"),
        (built(), {"engine": {"source_sha256": SOURCE}}, "does not pin a commit, tree or source of engine"),
    ],
)
def test_the_pins_must_equal_the_components_of_the_image(
    components: dict[str, dict[str, str]] | None, pins: dict[str, dict[str, str]], expected: str
) -> None:
    ledger = Ledger()
    ledger.image(IMAGE, components=components)
    ledger.verdict(pins=pins)
    decision = asked(ledger)
    (result,) = decision.requirements
    assert code(decision) == (expected if expected == "ALLOW OK" else "DENY PIN_MISMATCH")
    assert expected == "ALLOW OK" or (expected in result.observed and "--component" in result.fix)


def test_the_contract_says_which_pins_bind_the_image() -> None:
    pins = {"engine": {"commit": COMMIT}, "kernels": {"commit": OTHER_COMMIT}}
    ledger = image_built_from()
    ledger.verdict(pins=pins, binds_image=["engine", "kernels"])
    (result,) = asked(ledger).requirements
    assert (result.code, result.observed) == (Code.PIN_MISMATCH, "no component kernels is recorded for the image")
    ledger.verdict(pins=pins, binds_image=["engine"], commit=OTHER_COMMIT)
    assert code(asked(ledger)) == "ALLOW OK"


def test_image_statements_that_disagree_are_a_mismatch() -> None:
    ledger = image_built_from()
    ledger.verdict()
    wrong = ledger.image(IMAGE, components=built(OTHER_COMMIT))
    assert code(asked(ledger)) == "DENY PIN_MISMATCH"
    ledger.retract(wrong, by="ci")
    assert code(asked(ledger)) == "ALLOW OK"


def test_a_component_counts_when_someone_who_may_has_recorded_it() -> None:
    ledger = Ledger()
    ledger.image(IMAGE, components=built(), by="lab")
    ledger.verdict()
    assert code(asked(ledger)) == "DENY PIN_MISMATCH"


def test_a_component_of_a_proven_alias_is_one_of_the_image() -> None:
    ledger = Ledger()
    ledger.image(manifest("c3"), aliases=[(IMAGE, True)], components=built())
    ledger.verdict()
    assert code(asked(ledger)) == "ALLOW OK"
    assert code(asked(ledger, subject=OTHER)) == "DENY SUBJECT_UNKNOWN"


# What holds whatever is asked


BOTH = f"{CONTRACT}\n    - {{id: startup, capability: service.startup}}"


def test_every_failing_requirement_is_listed_in_the_order_of_the_policy() -> None:
    ledger = Ledger()
    ledger.image(IMAGE)
    decision = asked(ledger, BOTH)
    assert [(result.id, result.code) for result in decision.requirements] == [
        ("contract", Code.CONTRACT_NOT_EVALUATED),
        ("startup", Code.CAP_NO_EVIDENCE),
    ]
    assert (decision.evaluated, decision.satisfied, decision.exit) == (2, 0, ExitCode.NO)
    ledger.reject()
    assert [result.code for result in asked(ledger, BOTH).requirements] == [Code.IMAGE_REJECTED] * 2


def test_nobody_knows_the_image() -> None:
    ledger = image_built_from()
    assert [result.code for result in asked(ledger, BOTH, config("ff")).requirements] == [Code.SUBJECT_UNKNOWN] * 2


def publishing() -> ReleasePolicy:
    return replace(policy(CONTRACT), kinds=frozenset({DigestKind.OCI_MANIFEST}))


def test_another_kind_of_digest_is_refused_unless_there_is_worse() -> None:
    ledger = image_built_from()
    ledger.verdict()
    (result,) = ask(ledger, publishing()).requirements
    assert (result.code, result.observed) == (Code.SUBJECT_KIND, "oci-config, and the policy takes oci-manifest")
    assert code(ask(ledger, publishing(), config("ff"))) == "DENY SUBJECT_UNKNOWN"
    ledger.reject()
    assert code(ask(ledger, publishing())) == "DENY IMAGE_REJECTED"


def test_a_profile_for_another_image_is_refused() -> None:
    ledger = image_built_from()
    ledger.verdict()
    for image, expected in [(IMAGE, "ALLOW OK"), (OTHER, "DENY SUBJECT_MISMATCH")]:
        assert code(ask(ledger, policy(CONTRACT, profile=profile(image=f'"{image}"')))) == expected


def test_requirements_that_do_not_apply_are_shown_and_not_counted() -> None:
    ledger = image_built_from()
    ledger.verdict()
    line = "    - {id: wide, when: {profile.max_num_seqs: {gt: 1}}, capability: service.startup}"
    decision = ask(ledger, policy(f"{CONTRACT}\n{line}", profile=profile()))
    assert (decision.verdict, decision.evaluated, decision.satisfied) == (Verdict.ALLOW, 1, 1)
    assert decision.requirements[1].outcome is Outcome.NOT_APPLICABLE
    idle = ask(ledger, policy(line, profile=profile()))
    assert (idle.verdict, idle.evaluated, idle.exit) == (Verdict.DENY, 0, ExitCode.NOTHING)
    assert ask(ledger, policy(line, profile=profile()), mode=Mode.WARN).exit is ExitCode.NOTHING


def test_a_warning_stops_nothing_and_stays_a_denial() -> None:
    decision = asked(Ledger(), mode=Mode.WARN)
    assert (decision.verdict, decision.exit, decision.core()["mode"]) == (Verdict.DENY, ExitCode.YES, "warn")
    assert "mode warn: told, not enforced" in explain(decision)


def test_notes_say_what_a_reader_must_know() -> None:
    ledger = Ledger(trust(single_operator=True))
    ledger.image(IMAGE)
    head = DecisionHead("o", 9, "e" * 64, 2, 4)
    question = Question(IMAGE, policy(CONTRACT), ledger.trust, tuple(ledger.records), head, NOW, at_override=True, quarantined_rejections=2)
    assert decide(question).notes == ("SINGLE_OPERATOR", "AT_OVERRIDE", "QUARANTINED_REJECTIONS:2", "UNPROTECTED_TAIL:5")
    alone = decide(replace(question, head=replace(head, protected_to=None)))
    assert alone.notes[-1] == "UNPROTECTED_TAIL:9"


def test_only_an_image_can_be_asked_about() -> None:
    with pytest.raises(InputError) as caught:
        ask(Ledger(), policy(CONTRACT), Digest(DigestKind.FILE, "a" * 64))
    assert caught.value.code is Code.BAD_DIGEST


def test_the_effective_time_is_cut_to_whole_seconds() -> None:
    ledger = Ledger()
    ledger.receipt(observed={"from": None, "to": "2026-09-02T00:00:00Z"})
    late = Instant.parse("2026-12-01T00:00:00.999Z")
    decision = ask(ledger, requiring(AT_131072, "{basis: [reported]}"), now=late)
    assert (code(decision), str(decision.effective_time)) == ("ALLOW OK", "2026-12-01T00:00:00Z")


# The text


def test_the_text_of_a_denial() -> None:
    ledger = Ledger()
    ledger.receipt()
    rejection = ledger.reject(
        required="red", observed={"raw_sha256": "a" * 64, "text": " Spark", "normalised": "s", "normalisation": ["strip"]}
    )
    decision = asked(ledger, CONTRACT)
    assert explain(decision, report="gate.json").splitlines() == [
        f"DENY  oci-config:sha256:{IMAGE.hex[:12]}…  policy lab@1  evaluated 1, satisfied 0",
        "✗ contract  rejected  [IMAGE_REJECTED]",
        "    required  contract serving",
        '    observed  image rejected by lab: the answer was wrong; required "red"; observed " Spark"',
        f"    evidence  {rejection.payload.hex[:12]}… (entry 2) by lab",
        "    fix       build a new image; this rejection is image-wide and cannot be waived",
        "    policy    policy.yaml:12",
        "verdict DENY · exit 1 · report gate.json · ledger countermark.local/test/00000000 size 3 · at 2026-12-01T00:00:00Z"
        f" · decision {decision.id}",
    ]


def test_the_text_of_an_allowance_shows_what_was_left_open() -> None:
    ledger = Ledger()
    ledger.receipt()
    text = explain(ask(ledger, requiring("restore.correctness@tp=4,dcp=1,context_tokens=131072", "{basis: [reported]}")))
    assert text.startswith("ALLOW  oci-config:sha256:")
    assert "✓ restore.correctness  qualified  [OK]" in text
    assert "note      left open: concurrency" in text
    assert "expires   2027-02-27T01:00:00Z" in text
    assert "· exit 0 ·" in text


def test_the_text_shows_no_control_characters_that_a_statement_says() -> None:
    ledger = Ledger()
    ledger.reject(reason="bad\x1b[2J\nverdict ALLOW \u202e x")
    text = explain(asked(ledger))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"bad\x1b[2J\nverdict ALLOW \u202e x" in text
    assert sum(line.startswith("verdict") for line in text.splitlines()) == 1
