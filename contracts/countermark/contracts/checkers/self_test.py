"""`contracts.self-test` (catalogue QA-28): a contract can be kept, and can be broken."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import NothingError
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import fields, many, text, texts
from countermark.contracts.tree import Tree


@dataclass(frozen=True, slots=True)
class Below:
    """The files of a tree below one folder."""

    inner: Tree
    folder: str

    def read(self, path: str) -> bytes:
        """The file of that path below the folder."""
        return self.inner.read(f"{self.folder}/{path}")

    def glob(self, pattern: str) -> Sequence[str]:
        """The paths below the folder that match."""
        return [path.removeprefix(f"{self.folder}/") for path in self.inner.glob(f"{self.folder}/{pattern}")]


class SelfTest(Checker):
    """Evaluates another contract over a golden folder, and over folders with one mistake each."""

    name = "contracts.self-test"
    rule = "The contract passes over the good files, and over none of the bad ones."
    ids = ("QA-28",)
    parameters = fields(
        "contract",
        "good",
        "bad",
        contract=text("the path of the contract that is tested"),
        good=text("the folder with files that keep it"),
        bad=many("folders with files that break it", text("a folder"), minimum=0),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for a contract that nothing can keep, and one for each bad folder that it lets through."""
        bad = texts(given["bad"])
        if not bad:
            return Result(0)
        return Result(1 + len(bad), tuple(self._tried(case, str(given["contract"]), str(given["good"]), bad)))

    def _tried(self, case: Case, path: str, good: str, bad: Sequence[str]) -> Iterator[Finding]:
        from countermark.contracts.contract import Contract  # contracts are made of checkers
        from countermark.contracts.verdict import evaluate

        contract = Contract.load(case.tree.read(path), path)
        verdict = evaluate(contract, Below(case.tree, good))
        if verdict.outcome is not Outcome.PASS:
            names = ", ".join(dict.fromkeys(finding.checker or str(finding.code) for finding in verdict.findings))
            fix = "mend the good files, or the invariants that nothing can keep together"
            yield self.violation(case.at, required=f"a pass over {good}", observed=f"{verdict.outcome}: {names}", fix=fix)
        for folder in bad:
            if not case.tree.glob(f"{folder}/**"):
                raise NothingError(Code.NOTHING_EVALUATED, f"no files in {folder}", at=case.at, fix="correct the folder, or add the files")
            if evaluate(contract, Below(case.tree, folder)).outcome is Outcome.PASS:
                fix = "add the invariant that these files break"
                yield self.violation(case.at, required=f"no pass over {folder}", observed="pass", fix=fix)
