"""Documents that are cut off, mixed up or made to hurt: a reading that conforms to its schema, or an `InputError`; never a crash."""

import copy
import hashlib
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.schema import problems
from countermark.contracts.adapters.receipts import receipts_of

from ..gate_world import catalogue  # noqa: TID252  # tests are no package, so the folder above has no absolute name
from .evidence_records import Record, copies

NAMES = ("live", "chain", "rejected", "event", "explainer", "campaign", "report")
PAYLOAD = Digest.of(DigestKind.PAYLOAD, b"payload")
SCALARS: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**53 - 1, -(2**53) + 1, 0.5, -0.0, 1e308, 1e-308),
    *("", " ", "red", "x" * 3000, "0" * 64, "a" * 40, "sha256:" + "b" * 64, "\u0000", "~1/~0", "```", "Final content exactly "),
    *("TP4/DCP1", "TP9999999/DCP1", "TP" + "9" * 5000 + "/DCP1", "TP4", "TP99999", "one NVIDIA systems", "four  systems"),
    *("2026-08-30T05:32:01Z", "0001-01-01T00:00:00+23:59", "../../etc/passwd"),
    *([], {}, [None], [[]], {"": {}}, ["red"] * 3, {"rank": 0}),
]
KEYS = st.sampled_from(["status", "artifact", "case", "runtime", "a/b", ""])
LEAVES = st.sampled_from([item for item in SCALARS if not isinstance(item, list | dict)])
JSON = st.recursive(LEAVES, lambda child: st.lists(child, max_size=3) | st.dictionaries(KEYS, child, max_size=4), max_leaves=12)


def judged(record: Record) -> None:
    """Read it; whatever comes out can be recorded and endorsed."""
    try:
        reading = record.read(check=False)  # receipts_of holds the predicate against its schema
    except InputError:
        return
    assert reading.exit in range(71)
    for draft in receipts_of(reading.predicate(), PAYLOAD, catalogue()):
        assert problems(str(draft.name), draft.predicate) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_document_cut_off_anywhere_is_refused(name: str) -> None:
    record = copies()[name]
    data = (record.data or b"").rstrip()
    for end in {0, 1, len(data) // 2, len(data) - 1, *random.Random(7).sample(range(len(data)), 20)}:
        record.data = data[:end]
        with pytest.raises(InputError):
            record.read()


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container and key of a value."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    for key in keys:
        found.append((value, key))
        found += places(value[key])
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(NAMES), st.data())
def test_any_few_values_may_be_replaced_removed_or_doubled(name: str, data: st.DataObject) -> None:
    record = copies()[name]
    record.data = None
    value = copy.deepcopy(record.value)
    for _ in range(data.draw(st.integers(1, 4))):
        container, key = data.draw(st.sampled_from(places(value)))
        match data.draw(st.sampled_from(["replace", "remove", "double"])):
            case "remove" if isinstance(container, dict):
                container.pop(key, None)
            case "double" if isinstance(container, list) and key < len(container):
                container.append(copy.deepcopy(container[key]))
            case _:
                container[key] = copy.deepcopy(data.draw(st.sampled_from(SCALARS)))
        if not places(value):
            break
    record.value = value
    judged(record)


@pytest.mark.parametrize("name", NAMES)
def test_each_single_value_may_be_missing_or_null(name: str) -> None:
    original = copies()[name]
    count = len(places(original.value))
    for number in range(0, count, count // 30 + 1):
        changed = original.changed(lambda value: None)
        container, key = places(changed.value)[number]
        container[key] = (None, "x", 10**12)[number % 3]
        judged(changed)


@settings(max_examples=40, deadline=None)
@given(JSON, st.sampled_from(NAMES))
def test_any_json_behind_a_known_schema_is_read(value: Any, name: str) -> None:
    record = copies()[name]
    stated = record.value if isinstance(record.value, dict) else {}
    known = {key: stated[key] for key in ("schema", "record_type", "schema_version") if key in stated}
    judged(Record(record.name, {**known, **value} if isinstance(value, dict) else value, {}, ()))


def test_a_referenced_file_that_is_no_json_is_refused_by_name() -> None:
    record = copies()["chain"]
    record.files["restore.json"] = b"\xff\xfe"
    changed = record.changed(lambda value: value["input_sha256"].update(repository_restore_json=hashlib.sha256(b"\xff\xfe").hexdigest()))
    with pytest.raises(InputError) as caught:
        changed.read()
    assert caught.value.at
    assert caught.value.at.file == "restore.json"
