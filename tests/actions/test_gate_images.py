"""`gate --images`: one report over many images, read once; and bad lists of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from worlds import ALIAS, IMAGE, OTHER, THIRD, UNKNOWN, World

from countermark.actions.gate import Asked, gate
from countermark.attestations.digests import Digest, DigestKind
from countermark.cli.app import run

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture
def ask(full: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def act(text: str | bytes, *more: object) -> tuple[int, Any]:
        file = tmp_path / "images"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        policy = full.policy("serving", channel="production")
        arguments = ["gate", "--images", file, "--policy", policy, "--ledger", full.workspace.ledger, "-o", "json", *more]
        capsys.readouterr()
        code = run([str(item) for item in arguments])
        return code, json.loads(capsys.readouterr().out)

    return act


def test_one_report_over_all_images_each_decided_as_alone(ask: Ask, full: World) -> None:
    text = f"# the release\n{IMAGE}\n\n  {ALIAS}  # the manifest\n{OTHER}\n{THIRD}\n{UNKNOWN}\n{IMAGE}\n"
    code, report = ask(text, "--effective-time", "2024-06-11T00:00:00Z")
    cores = [item["core"] for item in report["decisions"]]
    assert [core["subject"] for core in cores] == [str(image) for image in (IMAGE, ALIAS, OTHER, THIRD, UNKNOWN)]
    assert (code, report["verdict"], report["exit"]) == (1, "DENY", 1)
    totals = report["details"]["totals"]
    assert (totals["named"], totals["images"], totals["allowed"], totals["denied"]) == (6, 5, 2, 3)
    assert totals["codes"] == {"CAP_FAILED": 1, "IMAGE_REJECTED": 1, "SUBJECT_UNKNOWN": 1}
    from countermark.attestations.times import Instant

    at = Instant.parse("2024-06-11T00:00:00Z")
    for core in cores:
        (alone,) = gate(full.workspace, Asked((core["subject"],), full.folder / "serving.yaml", effective_time=at)).decisions
        assert alone.core() == core
    assert [item["subject"] for item in report["findings"]] == [str(image) for image in (OTHER, THIRD, UNKNOWN)]


def test_a_json_list_and_bare_digests_are_taken(ask: Ask) -> None:
    code, report = ask(json.dumps([f"sha256:{IMAGE.hex}", str(ALIAS)]))
    assert (code, report["verdict"], len(report["decisions"])) == (0, "ALLOW", 2)


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        ("", 5, "NOTHING_EVALUATED"),
        ("# nothing\n\n   \n", 5, "NOTHING_EVALUATED"),
        ("[]", 5, "NOTHING_EVALUATED"),
        ("registry.example/app:latest\n", 3, "TAG_NOT_DIGEST"),
        (f"{IMAGE}\nsha256:abc\n", 3, "BAD_DIGEST"),
        (f"payload:sha256:{'a' * 64}\n", 3, "BAD_DIGEST"),
        ('["x", 3]', 3, "BAD_DIGEST"),
        ('["x"', 3, "SCHEMA_INVALID"),
        (b"\xff\xfe\x00", 3, "UNREADABLE"),
    ],
)
def test_a_bad_list_is_refused_with_every_line(ask: Ask, text: str | bytes, code: int, found: str) -> None:
    exit_code, report = ask(text)
    assert exit_code == code
    assert report["findings"][0]["code"] in (found, "BAD_DIGEST", "UNREADABLE")
    assert "decisions" not in report


def test_every_bad_line_is_told_up_to_a_hundred(ask: Ask) -> None:
    _, report = ask("\n".join(f"app:v{number}" for number in range(150)))
    assert [item["location"]["line"] for item in report["findings"][:100]] == list(range(1, 101))
    assert "and 50 more lines" in report["findings"][100]["observed"]


def test_too_many_lines_are_refused_at_once(ask: Ask) -> None:
    code, report = ask(f"sha256:{'a' * 64}\n" * 100_001)
    assert (code, report["findings"][0]["code"]) == (3, "TOO_LARGE")


def test_no_image_at_all_is_a_usage_error(full: World) -> None:
    assert run(["gate", "--policy", str(full.policy("serving", channel="production")), "--ledger", str(full.workspace.ledger)]) == 2


@pytest.mark.slow
def test_a_thousand_images(full: World) -> None:
    from countermark.actions.image_list import ListedImage
    from countermark.attestations.errors import Location

    images = tuple(ListedImage(str(Digest(DigestKind.OCI_CONFIG, f"{number:064x}")), Location("f", number)) for number in range(1000))
    heard: list[int] = []
    decided = gate(full.workspace, Asked((), full.folder / "serving.yaml", images=images), lambda done, total: heard.append(done))
    assert (len(decided.decisions), heard[-1]) == (1000, 1000)
