"""`verify claims` through the whole program, over a ledger of published records."""

import json
from pathlib import Path

import pytest
from program import Done, Program

from countermark.actions.demo import published
from countermark.attestations.schema import problems
from countermark.recorders.junit import read_report

LIVE, REJECTED, CHAIN, FENCED, CAMPAIGN = (
    image.rpartition(":")[2] for image in (published.LIVE, published.REJECTED, published.CHAIN, published.FENCED, published.CAMPAIGN)
)
RECORD = "payload:sha256:50a777a6a6311a0c362a360a38cfc0e70174c415194fcb71f7339d282c7d3df2"
REPLAY = "/measurements/persistent_restore_256k/replay_wall_seconds"
UNDER = ("--ledger", "demo/countermark.db", "--policy", "demo/policies/lab-as-published.yaml")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("claims")
    program = Program(folder, folder / "state")
    assert program("demo", "demo", "--quiet").code == 0
    return program


def verify(world: Program, text: str, *arguments: str) -> Done:
    (world.folder / "README.md").write_text(text)
    return world("verify", "claims", "README.md", *(arguments or (*UNDER, "-o", "json")))


def codes(done: Done) -> list[str]:
    return [finding["code"] for finding in done.json["findings"]]


def test_a_readme_that_calls_a_rejected_image_qualified(world: Program) -> None:
    done = verify(world, f"# Serving\n\nThe image sha256:{REJECTED} is qualified.\n")
    assert (done.code, done.json["verdict"], codes(done)) == (1, "FAIL", ["CLAIM_EXCEEDS"])
    (finding,) = done.json["findings"]
    assert (finding["location"]["file"], finding["location"]["line"]) == ("README.md", 3)
    assert finding["required"].startswith(f"at most rejected, which is derived for oci-config:sha256:{REJECTED} [IMAGE_REJECTED]")
    assert finding["evidence"]
    assert problems("report", done.json) == []


def test_whatever_the_policy_a_rejected_image_stays_rejected(world: Program) -> None:
    done = verify(world, f"The image sha256:{REJECTED} is qualified.\n", "--ledger", "demo/countermark.db", "-o", "json")
    assert (done.code, codes(done)) == (1, ["CLAIM_EXCEEDS"])


@pytest.mark.parametrize(
    "text",
    [
        f"sha256:{LIVE} is qualified.",
        f"`{LIVE[:12]}` is qualified for restore correctness at 131,072 and 262,144 tokens, TP4/DCP1, C1.",
        f"{LIVE} is research-only for restore performance.",
        f"The qualified single-reader artifact remains sha256:{CHAIN}.",
        f"{FENCED} is research-only.",
        f"oci-manifest:sha256:{CAMPAIGN} is qualified for longcontext.retrieval at 120,124 tokens.",
        f"The candidate image {REJECTED} is rejected for deployment.",
        f"The image {REJECTED} is rejected. Every other one is qualified.",
        f"## sha256:{REJECTED}\n\nrejected\n\n## Others\n\nqualified, all of them\n",
        f"<!-- claim: qualified restore.correctness@tp=4,dcp=1,context_tokens=131072,concurrency=1 oci-config:sha256:{CHAIN} -->",
        f"The replay took 7.835 s <!-- claim: number {RECORD}#{REPLAY} -->.",
        f"The replay took 7.8 s <!-- claim: number file:{RECORD.removeprefix('payload:')}#{REPLAY} -->.",
    ],
)
def test_as_much_as_the_records_bear(world: Program, text: str) -> None:
    done = verify(world, text)
    assert (done.code, done.json["findings"]) == (0, [])
    assert done.json["evaluated"] == done.json["of"] >= 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{LIVE} is qualified for restore correctness at 200,000 tokens.", "CLAIM_EXCEEDS"),
        (f"{LIVE} is qualified for restore performance.", "CLAIM_EXCEEDS"),
        (f"{LIVE} is qualified for longcontext.retrieval at 120,124 tokens.", "CLAIM_TRANSFER"),
        (f"{CHAIN} is qualified for restore.correctness at TP2.", "CLAIM_EXCEEDS"),
        (f"{FENCED} is qualified.", "CLAIM_EXCEEDS"),
        (f"{CAMPAIGN} is qualified for output.contract with 7 draft tokens.", "CLAIM_EXCEEDS"),
        (f"sha256:{LIVE[:-1]}c is qualified.", "CLAIM_EXCEEDS"),
        (f"oci-manifest:sha256:{LIVE} is qualified.", "CLAIM_EXCEEDS"),
        (f"sha256:{REJECTED} is _qualified_ and not fast.", "CLAIM_EXCEEDS"),
        (f"sha256:{REJECTED.upper()} is __qualified__.", "CLAIM_EXCEEDS"),
        (f"## sha256:{REJECTED}\n\nStatus: qualified\n", "CLAIM_EXCEEDS"),
        (f"## Release sha256:{REJECTED}\n\n### Serving\n\n- qualified\n", "CLAIM_EXCEEDS"),
        (f"- sha256:{REJECTED}:\n  - status: qualified\n", "CLAIM_EXCEEDS"),
        (f"This is sha256:{REJECTED}. It is qualified.", "CLAIM_EXCEEDS"),
        (f"Run engine@sha256:{REJECTED}.", "IMAGE_REJECTED"),
        (f"```\ndocker run engine@sha256:{REJECTED}\n```\n", "IMAGE_REJECTED"),
        (f"Run engine@sha256:{LIVE[:-1]}c.", "SUBJECT_UNKNOWN"),
        (f"The replay took 7.9 s <!-- claim: number {RECORD}#{REPLAY} -->.", "CLAIM_EXCEEDS"),
        (f"The replay took 7.9 s <!-- claim: number {RECORD}#/nothing -->.", "REF_NOT_HERE"),
    ],
)
def test_more_than_the_records_bear(world: Program, text: str, code: str) -> None:
    done = verify(world, text)
    assert (done.code, codes(done)) == (1, [code])


def test_a_published_claim_under_rules_that_take_measurements_only(world: Program) -> None:
    text = f"sha256:{LIVE} is qualified for restore correctness at 131,072 tokens, TP4/DCP1, C1.\n"
    assert verify(world, text).code == 0
    done = verify(world, text, "--ledger", "demo/countermark.db", "--policy", "demo/policies/serving-production.yaml", "-o", "json")
    assert (done.code, codes(done)) == (1, ["CLAIM_EXCEEDS"])


def test_a_past_head_is_asked_as_it_was(world: Program) -> None:
    done = verify(world, f"sha256:{LIVE} is qualified.", *UNDER, "--at", "2020-01-01T00:00:00Z")
    assert (done.code, "the ledger began" in done.err) == (5, True)


def test_a_text_that_says_nothing_of_an_image_is_no_success(world: Program) -> None:
    done = verify(world, "# Serving\n\nEverything is qualified.\n")
    assert (done.code, done.json["verdict"], done.json["of"]) == (5, "NOTHING", 0)


def test_a_digest_that_nobody_recorded_is_said_to_be_none(world: Program) -> None:
    done = verify(world, f"{LIVE} is qualified. Layer sha256:{'0f' * 32}.\n")
    assert (done.code, done.json["evaluated"], done.json["of"]) == (0, 2, 3)
    assert done.json["not_evaluated"] == [f"README.md:1: sha256:{'0f' * 32}, which no record names"]


def test_a_marker_that_cannot_be_read_is_invalid(world: Program) -> None:
    done = verify(world, f"{REJECTED} is qualified.\n<!-- claim: best service.startup oci-config:sha256:{LIVE} -->\n")
    assert (done.code, codes(done)) == (3, ["CLAIM_EXCEEDS", "SCHEMA_INVALID"])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nothing.md", *UNDER), 3),
        (("empty", *UNDER), 5),
        (("README.md", "--ledger", "nothing.db"), 4),
        ((), 2),
        (("README.md", *UNDER, "--effective-time", "yesterday"), 3),
    ],
)
def test_what_cannot_be_answered(world: Program, arguments: tuple[str, ...], code: int) -> None:
    (world.folder / "README.md").write_text(f"{LIVE} is qualified.")
    (world.folder / "empty").mkdir(exist_ok=True)
    done = world("verify", "claims", *arguments)
    assert (done.code, "Traceback" in done.err) == (code, False)


def test_a_folder_is_read_and_every_format_tells_the_line(world: Program, tmp_path: Path) -> None:
    docs = world.folder / "docs"
    (docs / "deep").mkdir(parents=True, exist_ok=True)
    (docs / ".hidden").mkdir(exist_ok=True)
    (docs / "deep" / "GUIDE.md").write_text(f"One.\n\n{REJECTED} is qualified.\n")
    (docs / ".hidden" / "OLD.md").write_text(f"{REJECTED} is qualified.\n")
    (docs / "notes.txt").write_text(f"{LIVE} is qualified.\n")
    (docs / "data.json").write_text(json.dumps({"image": LIVE, "status": "qualified"}))
    (docs / "loose.json").write_text("{comments: true} // no record names an image here")
    done = world("verify", "claims", "docs", *UNDER, "-o", "github", "-o", f"sarif={tmp_path}/a.sarif", "-o", f"junit={tmp_path}/a.xml")
    assert done.code == 1
    assert done.out.startswith("::error file=docs/deep/GUIDE.md,line=3,col=")
    (result,) = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]) == ("claim.within-evidence", 3)
    cases = read_report((tmp_path / "a.xml").read_bytes(), "a.xml")
    assert [(case.name, bool(case.failed)) for case in cases] == [
        ("claims::docs/data.json", False),
        ("claims::docs/deep/GUIDE.md", True),
        ("claims::docs/loose.json", False),
        ("claims::docs/notes.txt", False),
    ]


SEEDS = Path(__file__).parents[3] / "shared" / "fixtures" / "seeds"


@pytest.mark.skipif(not SEEDS.exists(), reason="../shared fixtures, the change proposals, are not beside this checkout")
def test_two_change_proposals_say_what_the_records_bear(world: Program) -> None:
    done = world("verify", "claims", SEEDS / "seed-a.txt", SEEDS / "seed-b.txt", *UNDER, "-o", "json")
    assert (done.code, done.json["findings"]) == (0, [])
    assert done.json["evaluated"] >= 3
