"""Baselines: what a lock holds, and that a version has one."""

import json
from pathlib import Path

import pytest

from countermark.actions.contract_tools import lock
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.located import JsonValue
from countermark.attestations.schema import problems
from countermark.contracts.locators.registry import locator_for
from countermark.contracts.lock import MAX_DOCUMENT_BYTES, Lock, locked
from countermark.contracts.pins import ValueType
from countermark.contracts.places import Occurrence
from countermark.contracts.terms import Place

AT = Location("f", 1)
CONTRACT = """\
apiVersion: countermark.dev/v1
kind: Contract
metadata: {id: wire, version: 3}
spec:
  pins: {}
  places: []
  facts:
    wire: {file: wire.json, json: "", type: document}
    salts: {file: pins.yaml, yaml: /salts}
    sizes: {file: pins.yaml, yaml: /sizes/*}
  invariants:
    - {id: unchanged, check: compat.fields-unchanged, with: {baseline: wire@3.lock.json, fields: [wire, salts, sizes]}}
"""


def occurrence(value: JsonValue, kind: ValueType | None = None) -> Occurrence:
    return Occurrence(Place("f", locator_for("json", "", AT), "", AT, None, kind), value, AT)


def repository(folder: Path) -> Path:
    (folder / "wire.json").write_text('{"tp": "u32"}')
    (folder / "pins.yaml").write_text("salts: {context: v2}\nsizes: [1, 2]\n")
    (folder / "contract.yaml").write_text(CONTRACT)
    return folder / "contract.yaml"


def test_a_lock_holds_values_as_they_are() -> None:
    assert locked([occurrence("x")]) == "x"
    assert locked([occurrence(1), occurrence(2)]) == [1, 2]
    assert locked([occurrence({"b": 1, "a": [True]}, ValueType.DOCUMENT)]) == {"b": 1, "a": [True]}


def test_a_large_document_is_held_by_a_digest_that_its_layout_does_not_change() -> None:
    large: JsonValue = {"key": "x" * MAX_DOCUMENT_BYTES, "other": 1}
    turned: JsonValue = {"other": 1, "key": "x" * MAX_DOCUMENT_BYTES}
    digest = locked([occurrence(large, ValueType.DOCUMENT)])
    assert isinstance(digest, str)
    assert digest.startswith("file:sha256:")
    assert locked([occurrence(turned, ValueType.DOCUMENT)]) == digest
    assert locked([occurrence(large)]) == large


def test_the_lock_of_a_version_is_written_once(tmp_path: Path) -> None:
    contract = repository(tmp_path)
    done = lock(contract, tmp_path, None)
    assert (done.path, done.facts, done.written) == (tmp_path / "wire@3.lock.json", 3, True)
    value = json.loads(done.path.read_text())
    assert problems("lock", value) == []
    assert value["facts"] == {"salts": {"context": "v2"}, "sizes": [1, 2], "wire": {"tp": "u32"}}
    assert Lock.load(done.path.read_bytes(), "l.json").facts == value["facts"]
    assert lock(contract, tmp_path, None).written is False
    (tmp_path / "wire.json").write_text('{"tp": "u64"}')
    with pytest.raises(InputError, match="other facts is already there") as caught:
        lock(contract, tmp_path, None)
    assert caught.value.code is Code.DUPLICATE
    assert json.loads(done.path.read_text()) == value


def test_a_fact_without_a_value_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    contract = repository(tmp_path)
    (tmp_path / "pins.yaml").write_text("sizes: [1]\n")
    with pytest.raises(InputError, match="fact salts") as caught:
        lock(contract, tmp_path, None)
    assert caught.value.at
    assert caught.value.at.file == "pins.yaml"
    assert not list(tmp_path.glob("*.lock.json"))


def test_a_contract_without_facts_has_nothing_to_lock(tmp_path: Path) -> None:
    contract = repository(tmp_path)
    contract.write_text(CONTRACT[: CONTRACT.index("  facts:")] + "  invariants: [{id: a, check: pins.agree}]\n")
    with pytest.raises(NothingError):
        lock(contract, tmp_path, None)


@pytest.mark.parametrize("data", [b"[]", b'{"id": "x"}', b'{"id": "x", "version": 1.0, "contract": "y", "facts": {}}', b"{"])
def test_a_lock_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        Lock.load(data, "l.json")
    assert caught.value.at
    assert caught.value.at.file == "l.json"
