"""The restore commands as a user runs them: exit codes, clean JSON, progress on a terminal, and the whole way to the gate."""

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from program import PROGRAM, Done, Program

from countermark.attestations.schema import problems
from countermark.cuda_restore.cuda_probe import probe_cuda
from countermark.cuda_restore.device import DriverState

IMAGE = f"oci-config:sha256:{'ab' * 32}"
STRUCTURAL = "restore.structural@tp=2,dcp=1,context_tokens=512"
LEDGER = ("--ledger", "box/countermark.db")
COMMIT = ("--engine-commit", "0a" * 20)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger, a recorded snapshot of two ranks, and a plan with few faults; copied by each test."""
    folder = tmp_path_factory.mktemp("prepared")
    program = Program(folder, folder / "state")
    write = ("restore", "write", "store", "--oracle", "red", "--tokens", "512", "--object-bytes", "100000")
    assert program("init", "box").code == 0
    done = program(*write, "--plan", "plan.yaml", "--image", IMAGE, "-o", "json")
    assert done.code == 0, done.err
    plan = folder / "plan.yaml"
    plan.write_text(plan.read_text().replace("faults: all", "faults: [page-swap, other-prompt]"))
    assert program("record", "snapshot", *manifests(folder), *LEDGER).code == 0
    return folder


@pytest.fixture
def program(prepared: Path, tmp_path: Path) -> Program:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return Program(tmp_path, tmp_path / "state")


def manifests(folder: Path) -> list[Path]:
    return sorted((folder / "store" / "manifests").rglob("*.json"))


def some_object(folder: Path) -> Path:
    return max((folder / "store" / "chunks").iterdir())


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


def fits(done: Done) -> bool:
    """Whether standard output is one report and nothing else."""
    return problems("report", done.json) == [] and done.json["exit"] == done.code


def test_from_a_snapshot_to_the_gate(program: Program) -> None:
    """A snapshot is qualified under attestation on the CPU, everything verifies, and the gate says why that serves nobody."""
    done = program("restore", "qualify", "plan.yaml", *LEDGER, *COMMIT, "-o", "text", "-o", "json=report.json")
    assert done.code == 0, done.err
    assert "which qualifies no image for serving" in done.out
    assert "OK  restore qualify · evaluated 4 of 4" in done.out
    stats = program("verify", "receipt", "4", "5", *LEDGER, "-o", "json")
    assert (stats.code, fits(stats)) == (0, True)
    assert program("verify", "snapshot", *manifests(program.folder), *LEDGER).code == 0
    decided = program("gate", IMAGE, "--require", STRUCTURAL, *LEDGER)
    assert decided.code == 1
    assert "CAP_UNQUALIFIED" in decided.out
    assert "it ran on no GPU" in decided.out
    assert program("verify", "ledger", *LEDGER).code == 0


def test_json_is_clean(program: Program) -> None:
    first, *_ = manifests(program.folder)
    commands: tuple[tuple[str | Path, ...], ...] = (
        ("restore", "inspect", first),
        ("restore", "run", *manifests(program.folder)),
        ("restore", "run", first, "--device", "cpu:random:7", "--batch-authenticate"),
        ("restore", "qualify", "plan.yaml", *LEDGER, *COMMIT),
        ("record", "snapshot", *manifests(program.folder), *LEDGER),
        ("verify", "snapshot", first, *LEDGER),
        ("restore", "write", "again", "--oracle", "blue", "--tokens", "512"),
    )
    for arguments in commands:
        done = program(*arguments, "-o", "json")
        assert (done.code, fits(done)) == (0, True), (arguments, done.out, done.err)


def test_a_run_tells_rate_decomposition_and_limit_together(program: Program) -> None:
    done = program("restore", "run", *manifests(program.folder), "--trace", "trace.jsonl")
    assert done.code == 0
    assert "MB/s" in done.out
    assert "% of the limit that this run measured" in done.out
    assert "lookup " in done.out
    assert " + unattributed " in done.out
    assert (program.folder / "trace.jsonl").read_text().count('"verified"') == 2
    assert program("verify", "ledger", *LEDGER, "-o", "json").json["ledger"]["size"] == 2, "a run writes nothing to a ledger"


@pytest.mark.parametrize("place", ["plan.yaml", "nowhere/trace.jsonl"])
def test_a_trace_that_could_not_be_written_is_told_before_anything_is_restored(program: Program, place: str) -> None:
    flip(some_object(program.folder))
    done = program("restore", "run", *manifests(program.folder), "--trace", place)
    assert (done.code, place in done.err) == (3, True), done
    assert "recompute" not in done.out


def test_a_changed_byte_is_recomputed(program: Program) -> None:
    flip(some_object(program.folder))
    done = program("restore", "run", *manifests(program.folder), "-o", "json", "--trace", "trace.jsonl")
    assert (done.code, done.json["verdict"], done.json["details"]["outcome"]) == (1, "FAIL", "recompute")
    (failure,) = [rank["failure"] for rank in done.json["details"]["ranks"] if rank["failure"]]
    assert failure["cause"] == "BAD_DIGEST"
    assert f'"object":{failure["object"]}' in (program.folder / "trace.jsonl").read_text()
    qualified = program("restore", "qualify", "plan.yaml", *LEDGER, *COMMIT, "--link", "link", "-o", "json")
    assert (qualified.code, qualified.json["details"]["outcome"], fits(qualified)) == (1, "recompute", True)
    assert any(f"object {failure['object']}" in str(finding.get("subject")) for finding in qualified.json["findings"])
    assert not (program.folder / "link").exists()
    assert program("verify", "snapshot", *manifests(program.folder), *LEDGER).code == 1


def test_exit_codes(program: Program) -> None:
    first, *_ = manifests(program.folder)
    assert program("restore", "run", "none.json").code == 3
    assert program("restore", "inspect", some_object(program.folder)).code == 3
    assert program("restore", "run", first, "--device", "gpu").code == 2
    assert program("restore", "write", "other").code == 2
    assert program("restore", "write", "other", "--arrays", "kv.npz").code == 2
    assert program("restore", "write", "other", "--oracle", "spark").code == 3
    other = program("restore", "write", "other", "--oracle", "blue", "--tokens", "512", "--plan", "other.yaml", "-o", "json")
    assert program("restore", "qualify", "other.yaml", *LEDGER, *COMMIT).code == 1
    assert program("verify", "snapshot", other.json["details"]["manifests"][0], *LEDGER).code == 5
    assert program("verify", "receipt", "1", *LEDGER).code == 3
    assert program("restore", "qualify", "plan.yaml", "--ledger", "none.db", *COMMIT).code == 4


def test_without_its_device_it_cannot_tell(program: Program) -> None:
    if probe_cuda().driver is DriverState.PRESENT:
        pytest.skip("this machine has a CUDA driver")
    done = program("restore", "run", *manifests(program.folder), "--device", "cuda", "-o", "json")
    assert (done.code, done.json["findings"][0]["code"]) == (4, "DEVICE_ABSENT")
    plan = program.folder / "plan.yaml"
    plan.write_text(plan.read_text().replace("device: cpu", "device: cuda:0"))
    assert program("restore", "qualify", plan, *LEDGER, *COMMIT).code == 4


def test_the_page_runs(tmp_path: Path) -> None:
    """Every command of the page, in its order; fewer faults, for time. The last one is a gate that denies."""
    page = (Path(__file__).parents[2] / "docs" / "restore.md").read_text()
    commands = [line.removeprefix("$ countermark ").split() for line in page.splitlines() if line.startswith("$ countermark ")]
    program = Program(tmp_path, tmp_path / "state")
    assert len(commands) == 8
    for words in commands:
        named = [sorted(tmp_path.glob(word)) if "*" in word else [Path(word)] for word in words]
        done = program(*(str(path) for paths in named for path in paths))
        assert done.code == (1 if words[0] == "gate" else 0), (words, done.err)
        if words[1] == "write":
            plan = tmp_path / "plan.yaml"
            plan.write_text(plan.read_text().replace("faults: all", "faults: [page-swap, other-prompt]"))


@pytest.mark.parametrize("work", ["restoring", "qualifying"])
def test_long_work_shows_how_much_of_it_is_done_on_a_terminal_only(program: Program, work: str) -> None:
    arguments: tuple[str | Path, ...] = ("qualify", "plan.yaml", *LEDGER, *COMMIT)
    if work == "restoring":
        arguments = ("run", *manifests(program.folder))
    terminal, behind = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"XDG_STATE_HOME": str(program.state), "TERM": "xterm"}
    command = [str(PROGRAM), "restore", *map(str, arguments), "-o", "json=report.json"]
    with subprocess.Popen(command, cwd=program.folder, env=environment, stdout=subprocess.DEVNULL, stderr=behind) as running:
        os.close(behind)
        shown = b"".join(iter(lambda: read_some(terminal), b""))
    os.close(terminal)
    assert running.returncode == 0
    assert work.encode() in shown
    fractions = re.findall(rb"(\d+\.\d)/(\d+\.\d) MB", shown)
    assert fractions
    assert fractions[-1][0] == fractions[-1][1]
    assert program("restore", *arguments).err == ""


def read_some(terminal: int) -> bytes:
    """What was written to a terminal, nothing once nobody can write to it any more."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says EIO where others say end of file
        return b""
