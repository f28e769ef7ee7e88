"""The fixtures of the checkers: `fixtures/CHECKER.yaml` is a small repository that keeps the rule, and the edits that must show.

`contract` is the part of the contract below `spec`; `files` are the others. Each of `cases` edits the repository and says which outcome
must come of it, and the `file:line` of every finding, in reading order. An edit replaces the first `replace` in `file` by `by`, or gives
the whole file a `text`, or takes the file away.
"""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countermark.attestations import yamltext
from countermark.attestations.codes import Outcome
from countermark.contracts.contract import Contract
from countermark.contracts.verdict import ContractVerdict, evaluate

from .small_repository import MemoryTree

FIXTURES = Path(__file__).parent / "fixtures"
HEAD = "apiVersion: countermark.dev/v1\nkind: Contract\nmetadata: {id: fixture, version: 1}\nspec:\n"


@dataclass(frozen=True, slots=True)
class Variant:
    """A repository, what its checker must come to, and where the findings stand."""

    checker: str
    name: str
    files: Mapping[str, bytes]
    outcome: Outcome
    at: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.checker}: {self.name}"

    def judged(self) -> tuple[Outcome, ContractVerdict]:
        """What the one invariant with this checker comes to, and the verdict that it is part of."""
        verdict = evaluate(Contract.load(self.files["contract.yaml"], "contract.yaml"), MemoryTree(self.files))
        (judgement,) = [it for it in verdict.judgements if it.invariant.checker.name == self.checker]
        return judgement.result.outcome, verdict


def variants(checker: str) -> list[Variant]:
    """The passing repository of a checker, then each edit of it."""
    path = FIXTURES / f"{checker}.yaml"
    fixture = yamltext.loads_located(path.read_bytes(), str(path)).value
    assert isinstance(fixture, dict)
    base: dict[str, Any] = fixture
    contract = HEAD + textwrap.indent(base["contract"], "  ")
    files = {"contract.yaml": contract.encode(), **{name: text.encode() for name, text in base.get("files", {}).items()}}
    passing = Variant(checker, "as it is", files, Outcome.PASS, tuple(base.get("at", ())))
    return [passing, *(_edited(passing, case) for case in base["cases"])]


def _edited(passing: Variant, case: Mapping[str, Any]) -> Variant:
    files = dict(passing.files)
    for edit in case.get("edits", [case]):
        file = edit["file"]
        if "text" in edit:
            files[file] = edit["text"].encode()
        elif "replace" in edit:
            before = files[file].decode()
            assert edit["replace"] in before, f"{passing.checker}: {case['name']}: {edit['replace']!r} is not in {file}"
            files[file] = before.replace(edit["replace"], edit["by"], 1).encode()
        else:
            del files[file]
    return Variant(passing.checker, case["name"], files, Outcome(case["outcome"]), tuple(case.get("at", ())))


ALL = {path.stem: variants(path.stem) for path in sorted(FIXTURES.glob("*.yaml"))}
