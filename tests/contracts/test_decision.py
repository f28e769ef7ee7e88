"""The decision as bytes: its id, and that equal questions give equal bytes."""

import base64
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from countermark.attestations.statement import canonical
from countermark.contracts.decision import core_id

from .gate_world import AT_131072, IMAGE, Ledger, ask, policy, requiring
from .test_profile import profile

DESIGN = Path(__file__).parents[3] / "shared" / "design" / "07-documents.md"


def world() -> Ledger:
    ledger = Ledger()
    ledger.image(IMAGE)
    ledger.receipt()
    ledger.receipt(outcome="inconclusive")
    ledger.receipt(by="ci", runs=3)
    return ledger


def test_the_id_is_that_of_the_core() -> None:
    decision = ask(world(), requiring(AT_131072))
    digest = hashlib.sha256(decision.core_bytes).digest()
    assert decision.id == base64.b32encode(digest).decode().lower()[:26]
    assert len(decision.id) == 26
    assert decision.core_bytes == canonical(json.loads(decision.core_bytes))


def test_equal_questions_give_equal_bytes_whatever_the_order_of_the_records() -> None:
    ledger = world()
    wanted = ask(ledger, requiring(AT_131072)).core_bytes
    for seed in range(5):
        records = [*ledger.records, *ledger.records]
        random.Random(seed).shuffle(records)
        assert ask(ledger, requiring(AT_131072), records=records).core_bytes == wanted


def test_another_policy_profile_or_time_is_another_decision() -> None:
    ledger, line = world(), "    - {id: s, capability: service.startup}"
    ids = {
        ask(ledger, policy(line)).id,
        ask(ledger, policy(line + " ")).id,
        ask(ledger, policy(line, profile=profile())).id,
        ask(ledger, policy(line, profile=profile(draft_tokens=3))).id,
        ask(ledger, policy(line), at_override=True).id,
    }
    assert len(ids) == 5


@pytest.mark.skipif(not DESIGN.is_file(), reason="the design pages are not beside this checkout")
def test_the_core_has_the_fields_of_the_design_page_and_no_others() -> None:
    text = DESIGN.read_text()
    start = text.index('{"core": {"verdict": "DENY"')
    shown: dict[str, Any] = json.JSONDecoder().raw_decode(text[start:])[0]["core"]
    core = ask(world(), policy("    - {id: s, capability: service.startup}")).core()
    assert core.keys() == shown.keys()
    assert core["inputs"].keys() == shown["inputs"].keys()
    assert core["ledger"].keys() == shown["ledger"].keys()
    assert core["requirements"][0].keys() == shown["requirements"][0].keys()
    assert len(core_id(canonical(shown))) == 26
