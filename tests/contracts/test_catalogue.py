"""The capability catalogue that is shipped, and what it says to a name it does not know."""

import re
from pathlib import Path

import pytest
import yaml

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import InputError, Location

from .gate_world import catalogue

DESIGN = Path(__file__).parents[3] / "shared" / "design" / "07-documents.md"


def test_the_shipped_catalogue_is_valid_and_its_own() -> None:
    found = catalogue()
    assert (found.id, found.version) == ("countermark", 1)
    assert all(capability.controls and capability.evidence for capability in found.capabilities.values())


@pytest.mark.skipif(not DESIGN.is_file(), reason="the design pages are not beside this checkout")
def test_it_holds_what_the_design_page_says_in_words_of_its_own() -> None:
    block = next(text for text in re.findall(r"```yaml\n(.*?)```", DESIGN.read_text(), re.DOTALL) if "kind: CapabilityCatalog" in text)
    wanted = yaml.safe_load(block)["spec"]["capabilities"]
    found = catalogue().capabilities
    assert list(found) == list(wanted)
    for name, fields in wanted.items():
        capability = found[name]
        assert capability.must_name == tuple(fields["must_name"])
        assert capability.evidence == set(fields["evidence"])
        assert capability.controls == tuple(fields["controls"])
        assert capability.gpu == ("device" in fields)
        assert capability.means != fields["means"]


def test_an_unknown_capability_names_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        catalogue().get("restore.corectness", Location("policy.yaml", 3))
    assert (caught.value.code, caught.value.exit) == (Code.UNKNOWN_NAME, ExitCode.INVALID)
    assert "restore.correctness" in caught.value.fix
    assert str(caught.value.at) == "policy.yaml:3"
