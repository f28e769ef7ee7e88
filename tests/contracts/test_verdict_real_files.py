"""Contracts over files that somebody published, and the contract that the design page shows; both lie beside this repository."""

import re
from pathlib import Path

import pytest

from countermark.attestations.codes import ExitCode
from countermark.contracts.contract import Contract
from countermark.contracts.verdict import evaluate
from countermark.recorders.file_trees import FolderTree

from .small_repository import lines, small_contract

SHARED = Path(__file__).parents[3] / "shared"
FIXTURES = SHARED / "fixtures"
DESIGN = SHARED / "design" / "07-documents.md"

HEAD = "apiVersion: countermark.dev/v1\nkind: Contract\nmetadata: {id: real, version: 1}\nspec:\n"
RULES = "  invariants: [{id: agree, check: pins.agree}, {id: whole, check: pins.full-length}]\n"


@pytest.mark.skipif(not FIXTURES.exists(), reason="../shared fixtures, the published records, are not beside this checkout")
def test_a_published_commit_of_nine_digits_is_found_and_its_full_twin_is_not() -> None:
    contract = small_contract(
        HEAD
        + "  pins: {vllm: {commit: e2666d9a65f41fc376607531453cbd57c4c71016}}\n"
        + "  places:\n"
        + "    - {file: sparkring/runtime/exl3-r7/pins.json, json: /components/vllm/base_commit, is: vllm.commit}\n"
        + "    - {file: sparkcache/deploy/*/tp4_profile.json, json: /vllm/commit, is: vllm.commit}\n"
        + RULES
    )
    verdict = evaluate(contract, FolderTree(FIXTURES))
    assert verdict.exit is ExitCode.NO
    assert lines(verdict, "pins.agree") == lines(verdict, "pins.full-length") == ["sparkcache/deploy/deepseek_v4/tp4_profile.json:45"]
    assert {finding.observed for finding in verdict.findings} == {"e2666d9a6"}


@pytest.mark.skipif(not FIXTURES.exists(), reason="../shared fixtures, the published records, are not beside this checkout")
def test_published_facts_that_agree_are_left_alone() -> None:
    receipt = "file: '**/dflash7-python-overlay-pr30/*.json'"
    contract = small_contract(
        HEAD
        + "  pins:\n"
        + "    sparkcache:\n"
        + "      commit: 5ec6a9953ad5d39120298bbfc26e95a6fa4b1dc3\n"
        + "      tree: 94c236b9dfbf5f70075eb47877fd9caaa5d8c249\n"
        + "      source_sha256: bc238f96e550c7ec27d4081dd1f2e741d404aaf5c8572d89ccc5e76812be4d63\n"
        + "    image: {config: 'sha256:eef863d8bc578815a80b0e2d9f0d745102b6363415225101fd92171a2e5a55cb'}\n"
        + "  places:\n"
        + f"    - {{{receipt}, json: /artifact/sparkcache_revision, is: sparkcache.commit, type: revision}}\n"
        + f"    - {{{receipt}, json: /artifact/sparkcache_tree, is: sparkcache.tree}}\n"
        + f"    - {{{receipt}, json: /artifact/sparkcache_source_sha256, is: sparkcache.source_sha256}}\n"
        + f"    - {{{receipt}, json: /artifact/image_id, is: image.config}}\n"
        + RULES
    )
    verdict = evaluate(contract, FolderTree(FIXTURES))
    assert (verdict.exit, verdict.evaluated, verdict.of, verdict.findings) == (ExitCode.YES, 2, 2, ())


@pytest.mark.skipif(not DESIGN.exists(), reason="../shared design, with the page of this contract, is not beside this checkout")
def test_the_contract_of_the_design_page_is_understood() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", DESIGN.read_text(encoding="utf-8"), re.DOTALL)
    (text,) = [example for example in examples if "kind: Contract\n" in example]
    contract = Contract.load(text.encode(), "contract.yaml")
    assert [invariant.checker.name for invariant in contract.invariants] == re.findall(r"check: ([a-z.-]+)", text)
