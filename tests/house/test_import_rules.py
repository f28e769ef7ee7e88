"""Each import rule is proven by breaking it: a rule that cannot fail guards nothing."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = ["attestations", "ledger", "contracts", "cuda_restore", "migrations", "apps"]
RULES = [rule["name"] for rule in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]]
LAYERS, PURE, PAGES, RECORDERS, READ_PATH, NETWORK, REFERENCE, FAULTS = RULES

BREAKS = [
    ("attestations/countermark/attestations/digests.py", "countermark.ledger.merkle", LAYERS),
    ("ledger/countermark/ledger/merkle.py", "countermark.contracts.scope", LAYERS),
    ("contracts/countermark/contracts/scope.py", "countermark.ledger.merkle", LAYERS),
    ("cuda_restore/countermark/cuda_restore/spans.py", "countermark.ledger.merkle", LAYERS),
    ("ledger/countermark/ledger/merkle.py", "countermark.cuda_restore.spans", LAYERS),
    ("ledger/countermark/ledger/merkle.py", "countermark.migrations.runner", LAYERS),
    ("contracts/countermark/contracts/scope.py", "countermark.actions.clock", LAYERS),
    ("apps/countermark/recorders/git.py", "countermark.migrations.runner", LAYERS),
    ("apps/countermark/actions/clock.py", "countermark.cli.report", LAYERS),
    *(("contracts/countermark/contracts/scope.py", name, PURE) for name in ("time", "os", "subprocess", "socket", "sqlite3")),
    *(("contracts/countermark/contracts/scope.py", name, PURE) for name in ("sqlalchemy", "random", "pathlib")),
    ("apps/countermark/actions/clock.py", "countermark.web.wording", LAYERS),
    *(("apps/countermark/web/matrix.py", name, PAGES) for name in ("countermark.ledger.merkle", "time", "os", "socket")),
    ("apps/countermark/recorders/git.py", "countermark.ledger.merkle", RECORDERS),
    ("ledger/countermark/ledger/read.py", "sqlalchemy", READ_PATH),
    ("ledger/countermark/ledger/snapshot.py", "alembic", READ_PATH),
    ("ledger/countermark/ledger/read.py", "countermark.ledger.tables", READ_PATH),
    ("cuda_restore/countermark/cuda_restore/reference.py", "countermark.cuda_restore.plan", REFERENCE),
    ("cuda_restore/countermark/cuda_restore/engine.py", "countermark.cuda_restore.faults", FAULTS),
    ("ledger/countermark/ledger/read.py", "urllib3", NETWORK),
    ("contracts/countermark/contracts/scope.py", "requests", NETWORK),
]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("house")
    for root in ROOTS:
        shutil.copytree(ROOT / root, folder / root, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture
def house(copied: Path) -> Iterator[Path]:
    """A copy of the rooms, whole again after each test."""
    kept = {path: path.read_bytes() for path, _, _ in ((copied / name, None, None) for name, _, _ in BREAKS)}
    yield copied
    for path, data in kept.items():
        path.write_bytes(data)


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(house / root) for root in ROOTS), "COLUMNS": "300"}
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=house, env=environment, capture_output=True, text=True, check=False)


def test_the_house_as_it_stands_keeps_every_rule(house: Path) -> None:
    done = lint(house)
    assert done.returncode == 0, done.stdout
    assert f"{len(RULES)} kept, 0 broken" in done.stdout


@pytest.mark.parametrize(("file", "imported", "rule"), BREAKS, ids=lambda value: str(value).rpartition("/")[2][:30])
def test_breaking_a_rule_is_noticed(house: Path, file: str, imported: str, rule: str) -> None:
    path = house / file
    path.write_text(f"import {imported}  # noqa\n{path.read_text()}")
    done = lint(house)
    assert done.returncode == 1, done.stdout
    assert f"{rule} BROKEN" in " ".join(done.stdout.split()), done.stdout


def test_every_rule_is_broken_once() -> None:
    assert {rule for _, _, rule in BREAKS} == set(RULES)
