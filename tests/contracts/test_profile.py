"""Profiles: fields by name, a maintainers' own file through a map, and conditions over them."""

from typing import Any

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.documents import load_document, read_structured
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.contracts.condition import unmet
from countermark.contracts.profile import Profile, with_map, without_map

AT = Location("policy.yaml", 7)
OWN = b'{"serving": {"tensor_parallel": 4, "dcp": 1}, "limits": [16, 2]}'


def profile(**more: Any) -> Profile:
    fields = {
        "topology": "{tp: 2, dcp: 1, pp: 1}",
        "model": f"{{repository: org/model, revision: '{'5e' * 20}'}}",
        "max_num_seqs": 1,
        "max_model_len_tokens": 131072,
        "draft_tokens": 7,
        **more,
    }
    spec = "\n".join(f"  {name}: {value}" for name, value in fields.items())
    text = f"apiVersion: countermark.dev/v1\nkind: Profile\nmetadata: {{id: p, version: 3}}\nspec:\n{spec}\n"
    return Profile.of(load_document(text.encode(), "profile.yaml", "Profile"))


def mapped(*fields: str) -> Profile:
    spec = "\n".join(f"    {field}" for field in fields)
    text = f"apiVersion: countermark.dev/v1\nkind: ProfileMap\nmetadata: {{id: own, version: 1}}\nspec:\n  fields:\n{spec}\n"
    both = with_map(OWN, text.encode())
    assert without_map(both) == (OWN, text.encode())
    return Profile.mapped(both, read_structured(OWN, "own.json"), load_document(text.encode(), "map.yaml", "ProfileMap"))


@pytest.mark.parametrize(("name", "value"), [("topology.tp", 2), ("topology", {"tp": 2, "dcp": 1, "pp": 1}), ("max_num_seqs", 1)])
def test_a_field_is_read_by_its_dotted_name(name: str, value: JsonValue) -> None:
    assert profile().value(name, AT) == value


def test_a_maintainers_own_file_is_read_through_a_map() -> None:
    own = mapped("topology.tp: /serving/tensor_parallel", "topology.dcp: /serving/dcp", "max_num_seqs: /limits/0", "shards: /limits/1")
    assert own.value("topology", AT) == {"tp": 4, "dcp": 1}
    assert own.value("max_num_seqs", AT) == 16
    assert own.value("shards", AT) == 2
    assert own.id == "own"
    assert own.digest != profile().digest


def test_a_part_may_be_mapped_over_a_whole() -> None:
    own = read_structured(OWN, "own.json")
    assert mapped("topology: /serving", "topology.tp: /limits/0").value("topology", AT) == {"tensor_parallel": 4, "dcp": 1, "tp": 16}
    assert own == read_structured(OWN, "own.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["max_num_seqs: /limits/2"], "nothing stands at /limits/2"),
        (["max_num_seqs: /limits/-1"], "nothing stands at"),
        (["max_num_seqs: /limits/0", "max_num_seqs.x: /limits/0"], "mapped below a value"),
    ],
)
def test_a_map_that_leads_nowhere_is_an_error(fields: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mapped(*fields)


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ({"profile.max_num_seqs": {"gt": 0}}, None),
        ({"profile.max_num_seqs": {"gt": 1}}, "profile.max_num_seqs is 1, required gt 1"),
        ({"profile.max_num_seqs": {"ge": 1, "le": 1, "lt": 2}}, None),
        ({"profile.max_num_seqs": {"lt": 1}}, "profile.max_num_seqs is 1, required lt 1"),
        ({"profile.topology.tp": {"eq": 2}, "profile.draft_tokens": {"eq": 6}}, "profile.draft_tokens is 7, required eq 6"),
        ({"profile.max_num_seqs": {"ne": 1}}, "profile.max_num_seqs is 1, required ne 1"),
        ({"profile.draft_tokens": {"in": [3, 7]}}, None),
        ({"profile.draft_tokens": {"in": [3]}}, "profile.draft_tokens is 7, required in [3]"),
        ({"profile.publication_mode": {"exists": False}}, None),
        ({"profile.publication_mode": {"eq": "x", "exists": True}}, "profile.publication_mode is not stated, required exists True"),
    ],
)
def test_conditions(when: dict[str, dict[str, JsonValue]], why: str | None) -> None:
    assert unmet(when, profile(), lambda _: AT) == why


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ({"profile.max_num_seq": {"exists": True}}, "a profile has no field 'max_num_seq'"),
        ({"profile.publication_mode": {"ne": "x"}}, "does not state profile.publication_mode"),
        ({"profile.topology": {"gt": 1}}, "has no order"),
        ({"profile.max_num_seqs": {"eq": True}}, "is 1, and True is a value of another type"),
        ({"profile.max_num_seqs": {"gt": 5}, "profile.draft_tokens": {"in": ["7"]}}, "a value of another type"),
    ],
)
def test_a_condition_that_could_never_be_met_is_an_error(when: dict[str, dict[str, JsonValue]], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        unmet(when, profile(), lambda _: AT)
    assert caught.value.at == AT


def test_a_condition_needs_a_profile() -> None:
    with pytest.raises(InputError, match="there is no profile") as caught:
        unmet({"profile.max_num_seqs": {"gt": 1}}, None, lambda _: AT)
    assert (caught.value.code, caught.value.fix) == (Code.UNKNOWN_NAME, "give --profile FILE")
