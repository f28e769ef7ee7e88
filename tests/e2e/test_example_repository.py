"""The shipped example, from outside: each single edit is exactly one finding, at its file and line, with what mends it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from program import Done, Program

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "serving"
COMMIT = "27dfe854627c6eb5f0908d84297772e96b883aaf"
PLACES = {
    "builder/pins.json": 4,
    "builder/Dockerfile": 2,
    "profiles/dflash.yaml": 5,
    "profiles/adaptive-mtp.yaml": 5,
    "resolver/input.toml": 6,
    "deploy/.env": 2,
    "deploy/run.sh": 7,
    "docs/QUICKSTART.md": 4,
    "evidence/readiness.json": 5,
}
"""Where the one commit stands, and on which line."""
PROFILES = ("profiles/dflash.yaml", "profiles/adaptive-mtp.yaml")


@pytest.fixture
def example(tmp_path: Path) -> Program:
    shutil.copytree(EXAMPLE, tmp_path / "serving")
    return Program(tmp_path / "serving", tmp_path / "state")


def edit(example: Program, file: str, old: str, new: str) -> None:
    path = example.folder / file
    text = path.read_text()
    assert text.count(old) == 1, (file, old)
    path.write_text(text.replace(old, new))


def verify(example: Program, *arguments: str) -> Done:
    return example("verify", "contract", ".", "-o", "json", *arguments)


def only(done: Done) -> Mapping[str, Any]:
    (finding,) = done.json["findings"]
    assert isinstance(finding, dict)
    return finding


def place(finding: Mapping[str, Any]) -> str:
    return f"{finding['location']['file']}:{finding['location']['line']}"


def test_the_example_keeps_its_contract(example: Program) -> None:
    done = verify(example)
    assert (done.code, done.json["findings"], done.json["not_evaluated"]) == (0, [], [])
    assert done.json["evaluated"] == done.json["of"] == 14
    texts = {str(path.relative_to(EXAMPLE)): path.read_text() for path in EXAMPLE.rglob("*") if path.is_file()}
    assert {name: text.count(COMMIT) for name, text in texts.items() if name in PLACES} == dict.fromkeys(PLACES, 1)


@pytest.mark.parametrize(("file", "line"), PLACES.items())
def test_one_digit_in_each_of_nine_places(example: Program, file: str, line: int) -> None:
    digit = line * 5 % len(COMMIT)
    changed = COMMIT[:digit] + ("0" if COMMIT[digit] != "0" else "1") + COMMIT[digit + 1 :]
    edit(example, file, COMMIT, changed)
    done = verify(example)
    finding = only(done)
    assert (done.code, finding["checker"], place(finding)) == (1, "pins.agree", f"{file}:{line}")
    assert (finding["required"], finding["observed"]) == (f"{COMMIT} (8 of 9 places)", changed)
    assert "to the pinned commit" in finding["fix"]


@pytest.mark.parametrize(
    ("old", "new", "checker", "line", "required", "fix"),
    [
        (
            "    pagestore_cuda_io_workers: 8\n",
            "",
            "config.keys-complete",
            10,
            "pagestore_cuda_io_workers",
            "add pagestore_cuda_io_workers",
        ),
        ("pagestore_cuda_io_workers", "pagestore_native_io_workers", "config.keys-complete", 17, "pagestore_cuda_io_workers", "rename"),
        (
            "    pagestore_cuda_io_workers: 8\n",
            "    pagestore_cuda_io_workers: 8\n    pagestore_native_io_workers: 4\n",
            "config.keys-complete",
            18,
            "8",
            "keep",
        ),
        (
            "command:\n  - serve\n",
            "command:\n  - serve\n  - --mixed-prefill-interval=8\n",
            "config.flags-forbidden",
            20,
            "serving",
            "remove",
        ),
        (
            "command:\n  - serve\n",
            "command:\n  - sh\n  - -e\n  - -c\n  - exec serve --mixed_prefill_interval=8\n",
            "config.flags-forbidden",
            22,
            "serving",
            "remove",
        ),
        ("pagestore_cuda_restore: true", "pagestore_cuda_restore: 'true'", "config.types-strict", 13, "true or false", "write"),
        ("pagestore_cuda_arena_bytes: 268435456", "pagestore_cuda_arena_bytes: 3", "config.value-limits", 16, "67108864", "set"),
    ],
)
def test_one_edit_of_a_profile(example: Program, old: str, new: str, checker: str, line: int, required: str, fix: str) -> None:
    file = PROFILES[line % 2]
    edit(example, file, old, new)
    done = verify(example)
    finding = only(done)
    assert (done.code, finding["checker"], place(finding)) == (1, checker, f"{file}:{line}")
    assert required in finding["required"]
    assert fix in finding["fix"]


def test_one_key_twice_in_the_pins_is_told_once_whoever_reads_them(example: Program) -> None:
    edit(example, "builder/pins.json", '"commit":', f'"commit": "{"17" * 20}",\n    "commit":')
    done = verify(example)
    finding = only(done)
    assert (done.code, finding["code"], finding["location"]["file"]) == (3, "DUPLICATE_KEY", "builder/pins.json")


def test_one_key_twice_in_one_profile_is_told_once(example: Program) -> None:
    edit(
        example,
        "profiles/dflash.yaml",
        "    pagestore_cuda_io_workers: 8\n",
        "    pagestore_cuda_io_workers: 8\n    pagestore_cuda_io_workers: 4\n",
    )
    done = verify(example)
    finding = only(done)
    assert (done.code, finding["code"], place(finding)) == (3, "DUPLICATE_KEY", "profiles/dflash.yaml:18")


@pytest.mark.parametrize(
    ("command", "label", "line"),
    [
        ("$ tools/serving preflight --strict-placeholders --profile profiles/dflash.yaml\n", "preflight-strict", 1),
        ("$ tools/serving start --execute --profile profiles/dflash.yaml\n", "start", 9),
        ("$ docker logs --tail 50 serving-rank-0\n", "log-tail-rank0", 15),
        ("$ curl --fail http://127.0.0.1:8000/health\n", "health", 16),
        (
            """$ curl --fail http://127.0.0.1:8000/v1/completions --data '{"prompt": "2 + 2 =", "max_tokens": 1}'\n""",
            "generation-smoke",
            22,
        ),
        ("$ tools/serving set clear-once=dflash-2026-12 --profile profiles/dflash.yaml\n", "clear-token", 23),
    ],
)
def test_one_command_of_the_quickstart_is_gone(example: Program, command: str, label: str, line: int) -> None:
    edit(example, "docs/QUICKSTART.md", command, "")
    done = verify(example)
    finding = only(done)
    assert (done.code, finding["checker"], place(finding)) == (1, "docs.commands", f"docs/QUICKSTART.md:{line}")
    assert label in finding["required"]
    assert finding["observed"] == "none"
    assert finding["fix"] == f"show the command {label} behind this line"


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        ("docs/identity-wire.json", '{"name": "tp_degree", "bytes": 4}', '{"name": "tp_degree", "bytes": 8}', 7),
        ("docs/identity-wire.json", '{"name": "draft_identity", ', '{"name": "draft", ', 6),
        ("builder/pins.json", "pagestore/page/v2", "pagestore/page/v3", 9),
        ("builder/pins.json", '"logical_tokens": 256', '"logical_tokens": 512', 10),
        ("builder/pins.json", "7adb3d6f", "7adb3d60", 8),
        ("builder/pins.json", '"placement_abi": 5', '"placement_abi": 6', 13),
    ],
)
def test_one_field_of_the_wire_against_the_lock(example: Program, file: str, old: str, new: str, line: int) -> None:
    edit(example, file, old, new)
    done = verify(example)
    finding = only(done)
    assert (done.code, finding["checker"], place(finding)) == (1, "compat.fields-unchanged", f"{file}:{line}")
    assert "as in the baseline of" in finding["required"]
    assert "serving@1" in finding["fix"]


@pytest.mark.parametrize(
    ("file", "old", "new", "checker", "line"),
    [
        (
            "profiles/adaptive-mtp.yaml",
            "pagestore_root: /var/cache/pagestore/adaptive-mtp",
            "pagestore_root: /var/cache/pagestore/dflash",
            "identity.distinct",
            11,
        ),
        ("profiles/adaptive-mtp.yaml", "tested_context_tokens: 131072", "tested_context_tokens: 262145", "config.limits-ordered", 8),
        ("evidence/readiness.json", "2d4764c1", "2d4764c0", "pins.agree", 3),
        ("evidence/readiness.json", '"model_revision": "a2f18d2b', '"model_revision": "2b', "evidence.subject", 9),
        ("docs/QUICKSTART.md", "127.0.0.1:8000/health", "10.0.0.7:8000/health", "publish.no-secrets", 22),
    ],
)
def test_other_single_edits(example: Program, file: str, old: str, new: str, checker: str, line: int) -> None:
    edit(example, file, old, new)
    done = verify(example)
    finding = only(done)
    assert (done.code, finding["checker"], place(finding)) == (1, checker, f"{file}:{line}")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("check: pins.agree}", "check: pins.agre}", 3),
        ("legacy: reject", "legacies: reject", 3),
        ("json: /pagestore/commit", "json: /pagestore/commits", 5),
        ("resolver/input.toml", "resolver/inputs.toml", 5),
    ],
)
def test_a_mistake_in_the_contract_is_never_a_yes(example: Program, old: str, new: str, code: int) -> None:
    edit(example, "contract.yaml", old, new)
    assert verify(example).code == code


def test_a_contract_without_invariants_is_never_a_yes(example: Program) -> None:
    path = example.folder / "contract.yaml"
    path.write_text(path.read_text().partition("  invariants:")[0] + "  invariants: []\n")
    assert verify(example).code == 5


def test_the_baseline_is_what_contract_lock_writes(example: Program) -> None:
    (example.folder / "contracts" / "serving@1.lock.json").unlink()
    text = (example.folder / "contract.yaml").read_text()
    (example.folder / "first.yaml").write_text(text.replace("{id: serving, version: 2}", "{id: serving, version: 1}"))
    assert example("contract", "lock", "first.yaml", "--to", "contracts").code == 0
    (example.folder / "first.yaml").unlink()
    assert verify(example).code == 0


def test_the_evidence_is_read_by_its_mapping(example: Program) -> None:
    done = example("verify", "evidence", "evidence/readiness.json", "--adapter", "evidence/mapping.yaml", "-o", "json")
    assert (done.code, done.json["findings"]) == (0, [])
    (document,) = done.json["details"]["documents"]
    assert [(claim["capability"], claim["outcome"]) for claim in document["claims"]] == [
        ("service.startup", "pass"),
        ("restore.correctness", "pass"),
    ]


def test_an_inferred_contract_finds_the_same_drift(example: Program) -> None:
    (example.folder / "contract.yaml").unlink()
    assert example("contract", "infer", ".", "--write", "contract.yaml").code == 0
    assert verify(example).code == 0
    edit(example, "profiles/dflash.yaml", COMMIT, COMMIT[:-1] + "0")
    done = verify(example)
    assert (done.code, json.dumps(done.json["findings"]).count("profiles/dflash.yaml")) == (1, 1)
