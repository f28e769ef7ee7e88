"""Reading contracts: what is understood, and every mistake in one go, with its line."""

import json

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, InvalidDocumentError, NothingError
from countermark.contracts.contract import Contract
from countermark.contracts.pins import ValueType

from .small_repository import COMMIT, CONTRACT, MANIFEST, small_contract

HEAD = "apiVersion: countermark.dev/v1\nkind: Contract\nmetadata: {id: x, version: 1}\n"


def mistakes(text: str) -> list[str]:
    """`line code` of each mistake."""
    with pytest.raises(InvalidDocumentError) as caught:
        small_contract(text)
    assert caught.value.exit is ExitCode.INVALID
    return [f"{mistake.at.line if mistake.at else 0} {mistake.code}" for mistake in caught.value.mistakes]


def changed(old: str, new: str) -> str:
    assert old in CONTRACT
    return CONTRACT.replace(old, new, 1)


def test_the_parts_of_a_contract_are_read_with_their_places() -> None:
    contract = small_contract()
    assert (contract.id, contract.version, contract.source) == ("small", 1, "contract.yaml")
    assert contract.digest == Digest.of(DigestKind.FILE, CONTRACT.encode())
    assert contract.binds_image == ("engine",)
    commit = contract.pins["engine.commit"]
    assert (commit.value, commit.type, commit.at.line, commit.at.pointer) == (COMMIT, ValueType.COMMIT, 7, "/spec/pins/engine/commit")
    assert contract.pins["image.manifest"].hex == MANIFEST.removeprefix("sha256:")
    assert contract.pins["geometry.tokens"].value == 256
    assert [place.at.line for place in contract.places] == [15, 16, 17, 18, 19, 20]
    assert [(invariant.id, invariant.checker.name, invariant.at.line) for invariant in contract.invariants] == [
        ("agree", "pins.agree", 22),
        ("whole", "pins.full-length", 23),
    ]


def test_profiles_commands_and_facts_are_read() -> None:
    more = """\
  profiles:
    one: {file: profiles/one.yaml, class: serving, config: /kv, fields: {model: /model}}
    two: {file: profiles/two.yaml, class: research, argv: /command, fields: {}}
  commands:
    start: {argv: [start, --execute]}
  facts:
    salts: {file: builder/pins.json, json: /salts}
  invariants:
"""
    contract = small_contract(changed("  invariants:\n", more))
    one, two = contract.profiles.values()
    assert (one.file, one.serves, one.config, one.argv, one.fields) == ("profiles/one.yaml", True, "/kv", None, {"model": "/model"})
    assert (two.serves, two.argv) == (False, "/command")
    assert contract.commands == {"start": ("start", "--execute")}
    assert (contract.facts["salts"].argument, contract.facts["salts"].target) == ("/salts", None)


def test_json_is_as_good_as_yaml() -> None:
    value = {
        "apiVersion": "countermark.dev/v1",
        "kind": "Contract",
        "metadata": {"id": "x", "version": 2},
        "spec": {"pins": {}, "places": [], "invariants": [{"id": "a", "check": "pins.agree"}]},
    }
    assert Contract.load(json.dumps(value).encode(), "c.json").version == 2


def test_a_contract_without_invariants_evaluates_nothing() -> None:
    with pytest.raises(NothingError) as caught:
        small_contract(HEAD + "spec: {pins: {}, places: [], invariants: []}\n")
    assert caught.value.exit is ExitCode.NOTHING
    assert caught.value.at
    assert caught.value.at.line == 4


def test_mistakes_come_before_the_lack_of_invariants() -> None:
    assert mistakes(HEAD + "spec: {pins: {}, places: [{file: a, json: /b, is: c.d}], invariants: []}\n") == ["4 UNKNOWN_NAME"]
    with pytest.raises(InputError) as caught:
        small_contract(HEAD.replace("kind: Contract", "kind: Contract\nkind: Contract") + "spec: {}\n")
    assert caught.value.code is Code.DUPLICATE_KEY


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("check: pins.agree", "check: pins.agre", "22 UNKNOWN_NAME"),
        ("check: pins.full-length", "check: config.keys-completed", "23 UNKNOWN_NAME"),
        ("check: pins.agree", "check: pins.agree, with: {prefx: 1}", "22 SCHEMA_INVALID"),
        ("id: whole", "id: agree", "23 DUPLICATE_KEY"),
        ("is: engine.source_sha256", "is: engine.source_sha265", "16 UNKNOWN_NAME"),
        ("binds_image: [engine]", "binds_image: [engin]", "13 UNKNOWN_NAME"),
        ("binds_image: [engine]", "binds_image: [geometry]", "13 SCHEMA_INVALID"),
        ("file: builder/pins.json, json: /engine/commit", "file: ../pins.json, json: /engine/commit", "15 SCHEMA_INVALID"),
        ("file: builder/pins.json, json: /engine/commit", "file: /etc/pins.json, json: /engine/commit", "15 SCHEMA_INVALID"),
        ("json: /geometry/tokens", 'text: "no group"', "17 UNSUPPORTED"),
        ("markdown: all-digests", "markdown: claims", "20 SCHEMA_INVALID"),
        ("markdown: all-digests, is: any-known", "markdown: all-digests, is: geometry.tokens", "20 SCHEMA_INVALID"),
        ("is: geometry.tokens", "is: geometry.tokens, type: commit", "17 SCHEMA_INVALID"),
        (
            "is: engine.commit}\n    - {file: builder/pins.json, json: /engine/source",
            "is: engine.commit, type: int}\n    - {file: builder/pins.json, json: /engine/source",
            "15 SCHEMA_INVALID",
        ),
        (f"commit: {COMMIT}", f"commit: {COMMIT[:9]}", "7 SCHEMA_INVALID"),
        (f"commit: {COMMIT}", "commit: 1234567", "7 SCHEMA_INVALID"),
        (MANIFEST, MANIFEST.removeprefix("sha256:"), "10 SCHEMA_INVALID"),
    ],
)
def test_each_mistake_is_told_with_its_line(old: str, new: str, found: str) -> None:
    assert mistakes(changed(old, new)) == [found]


def test_all_mistakes_are_told_at_once() -> None:
    text = CONTRACT.replace("check: pins.agree", "check: pins.agre").replace("is: engine.commit", "is: engine.comit", 1)
    assert mistakes(text) == ["15 UNKNOWN_NAME", "22 UNKNOWN_NAME"]


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [("pins.agree", "pins.agre", "pins.agree"), ("is: engine.commit", "is: engine.comit", "engine.commit")],
)
def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(old: str, new: str, meant: str) -> None:
    with pytest.raises(InputError) as caught:
        small_contract(changed(old, new))
    assert f"did you mean '{meant}'?" in str(caught.value)


def test_a_commit_of_forty_decimal_digits_stays_text() -> None:
    contract = small_contract(changed(f"commit: {COMMIT}", f"commit: {'1234567890' * 4}"))
    assert contract.pins["engine.commit"].value == "1234567890" * 4
