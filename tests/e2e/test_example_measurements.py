"""The example measurements are what their README says: a whole run that lacks its quality report, and probes that can be asked."""

import json
from pathlib import Path

from program import Program

from countermark.attestations.documents import load_document
from countermark.contracts.quality.probes import ProbeSet

EXAMPLE = Path(__file__).parents[2] / "examples" / "measurements"


def test_the_run_lacks_its_quality_report_and_nothing_else(program: Program, box: Path) -> None:
    done = program("verify", "evidence", EXAMPLE / "run.json", "-o", "json")
    assert (done.code, [finding["checker"] for finding in done.json["findings"]]) == (1, ["bench.quality-attached"])
    recorded = program("record", "benchmark", EXAMPLE / "run.json", "--ledger", box, "-o", "json")
    endorsed = program("endorse", str(recorded.json["recorded"][0]["index"]), "--ledger", box, "-o", "json")
    assert endorsed.json["statements"][0]["outcome"] == "inconclusive"


def test_the_probes_are_of_the_same_image() -> None:
    path = EXAMPLE / "probes.yaml"
    probes = ProbeSet.of(load_document(path.read_bytes(), path.name, "ProbeSet"))
    run = json.loads((EXAMPLE / "run.json").read_bytes())
    assert probes.used == {name: run["tuple"][name] for name in ("image", "model", "draft")}
    assert [probe.stops for probe in probes.probes] == [True, False, False]
