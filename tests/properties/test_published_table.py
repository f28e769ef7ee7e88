"""What published records yield: read from their files, endorsed, and asked one row after the other."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from program import Program

from countermark.actions.demo import published
from countermark.actions.workspace import Workspace
from countermark.attestations.predicate_types import PredicateName

from .real_ledgers import ROOT, SHARED, answer, ask, envelopes

ROWS_FILE = SHARED / "acceptance" / "seeds_rows.yaml"
FIXTURES = SHARED / "fixtures"
FLASH = FIXTURES / "sparkring" / "performance" / "receipts" / "glm53-flash"
SAFE = FLASH / "dflash7-snapshot-v1-safe"
SPARKCACHE = FIXTURES / "sparkcache" / "evidence" / "glm53-flash-dflash7-bf16"
WESCHERA = FIXTURES / "weschera" / "evidence" / "text128-dflash-resume"
KIND = "/reported_results/*/conditions/executed_image_digest=kind oci-manifest because two public repositories pair it with a config"
RECORDS: tuple[tuple[tuple[Path, ...], tuple[str, ...]], ...] = (
    ((FLASH / "dflash7-python-overlay-pr30" / "validation.json",), ()),
    (tuple(SAFE / f"{name}.json" for name in ("validation", "publish", "restore", "readiness", "manifest-inspection")), ()),
    ((SPARKCACHE / "flat-v2-four-reader-semantic-rejection-eabe7fd.json",), ()),
    ((SPARKCACHE / "event-fenced-flat-restore-861a965.json",), ()),
    ((FIXTURES / "seeds" / "seed-c.json", WESCHERA / "comparison.json"), (KIND,)),
)
POLICIES = ROOT / "apps" / "countermark" / "actions" / "demo" / "policies"
ABSENT = "../shared acceptance rows and fixtures are not beside this checkout"


def rows() -> list[dict[str, Any]]:
    """The rows of the table with their images written out; a row that is skipped where the table is absent."""
    if not ROWS_FILE.exists():
        return [{"require": "absent", "policy": "", "image": "", "digest": ""}]
    document = yaml.safe_load(ROWS_FILE.read_text())
    named = {name: f"{image['kind']}:sha256:{image['hex']}" for name, image in document["images"].items()}
    return [{**row, "digest": named[row["image"]]} for row in document["rows"]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A ledger to which the installed program recorded the published files, and in which it endorsed all of them."""
    if not ROWS_FILE.exists() or not FIXTURES.exists():
        pytest.skip(ABSENT)
    program = Program(tmp_path_factory.mktemp("published"), tmp_path_factory.mktemp("state"))
    assert program("init", "box").code == 0
    ledger = ["--ledger", "box/countermark.db", "-o", "json"]
    documents = [document for files, binds in RECORDS for document in recorded(program, files, binds, ledger)]
    done = program("endorse", *documents, *ledger)
    assert (done.code, done.err) == (0, ""), done.err
    folder = program.folder / "box" / "policies"
    folder.mkdir()
    for path in POLICIES.glob("*.yaml"):
        (folder / path.name).write_bytes(path.read_bytes())
    return Workspace.at(str(program.folder / "box" / "countermark.db"))


def recorded(program: Program, files: tuple[Path, ...], binds: tuple[str, ...], ledger: list[str]) -> list[str]:
    """The entries of the documents among the files."""
    done = program("record", "evidence", *files, *(part for bind in binds for part in ("--bind", bind)), *ledger)
    assert done.code == 0, done.err
    pairs = zip(done.json["recorded"], done.json["statements"], strict=True)
    return [str(entry["index"]) for entry, statement in pairs if "adapter" in statement]


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['image']} {row['require']} {row['policy']}")
def test_each_row_out_of_the_published_files(workspace: Workspace, row: dict[str, Any]) -> None:
    decision = ask(workspace, row["digest"], workspace.ledger.parent / "policies" / f"{row['policy']}.yaml", row["require"], at=None)
    verdict, code = answer(decision)
    codes = row["code"] if isinstance(row["code"], list) else [row["code"]]
    assert (verdict, int(decision.exit)) == (row["verdict"], row["exit"])
    assert code in codes


def test_nothing_is_believed_but_what_was_endorsed(workspace: Workspace) -> None:
    """Every statement of the ledger is of a type that `record evidence` and `endorse` write; none was written by hand."""
    written = {PredicateName.EVIDENCE_DOCUMENT, PredicateName.IMAGE, PredicateName.QUALIFICATION_RECEIPT, PredicateName.REJECTION}
    assert {item.predicate_type for item in envelopes(workspace)} == {name.uri for name in written}


@pytest.mark.skipif(not ROWS_FILE.exists(), reason=ABSENT)
def test_the_rows_of_the_demo_are_rows_of_the_table() -> None:
    table = {(row["digest"], row["require"], row["policy"]): row for row in rows()}
    for row in published.ROWS:
        asked = table[row.image, row.require, row.policy]
        codes = asked["code"] if isinstance(asked["code"], list) else [asked["code"]]
        assert (asked["verdict"], set(codes)) == (row.verdict, set(row.codes))
