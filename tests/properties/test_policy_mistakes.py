"""Each mistake in a policy has its own exit and its own message, from the installed program; none is taken for an answer."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from string import Template

import pytest
from program import Done, Program
from worlds import IMAGE

POLICY = Template("""\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {id: lab, version: 1}
spec:
  channel: lab
  subject: {kinds: [oci-config]}
  trust: $trust
  requires: [$requires]
  waivable: []
  $never_waive: [IMAGE_REJECTED]
  waiver_max_days: 14
""")
PROFILE = f"""\
apiVersion: countermark.dev/v1
kind: Profile
metadata: {{id: small, version: 1}}
spec:
  {{topology: {{tp: 2, dcp: 1, pp: 1}}, model: {{repository: a/b, revision: "{"42" * 20}"}},
  max_num_seqs: 1, max_model_len_tokens: 131072, draft_tokens: 7}}
"""
STARTUP = "{id: a, capability: service.startup}"


@dataclass(frozen=True)
class Mistake:
    """A policy that is wrong in one way, how the program exits, and what it says."""

    name: str
    exit: int
    says: tuple[str, ...]
    requires: str = STARTUP
    trust: str = "box/trust.yaml"
    never_waive: str = "never_waive"
    more: tuple[str, ...] = ()


PROFILED = ("--profile", "profile.yaml")
MISTAKES = (
    Mistake("unknown capability", 3, ("no capability 'service.startpu'", "UNKNOWN_NAME", "did you mean"), STARTUP.replace("tup", "tpu")),
    Mistake("misspelt field", 3, ("unknown field 'never_wave'", "SCHEMA_INVALID", "write 'never_waive'"), never_waive="never_wave"),
    Mistake(
        "misspelt field of a profile",
        3,
        ("a profile has no field 'max_num_seq'", "UNKNOWN_NAME"),
        "{id: a, capability: service.startup, when: {profile.max_num_seq: {gt: 1}}}",
        more=PROFILED,
    ),
    Mistake(
        "condition that is never true",
        5,
        ("it does not apply: profile.max_num_seqs is 1, required gt 5", "NOTHING_EVALUATED"),
        "{id: a, capability: service.startup, when: {profile.max_num_seqs: {gt: 5, lt: 3}}}",
        more=PROFILED,
    ),
    Mistake(
        "condition on a value of another type",
        3,
        ("profile.max_num_seqs is 1, and '1' is a value of another type", "SCHEMA_INVALID"),
        "{id: a, capability: service.startup, when: {profile.max_num_seqs: {eq: '1'}}}",
        more=PROFILED,
    ),
    Mistake(
        "condition without a profile",
        3,
        ("the policy asks for profile.max_num_seqs, and there is no profile", "give --profile"),
        "{id: a, capability: service.startup, when: {profile.max_num_seqs: {gt: 1}}}",
    ),
    Mistake("empty requires", 5, ("the policy requires nothing", "NOTHING_EVALUATED"), ""),
    Mistake(
        "missing must_name dimension",
        3,
        ("restore.correctness must name concurrency", "write concurrency: any"),
        "{id: a, capability: restore.correctness, scope: {topology: TP4/DCP1, context_tokens: 1}}",
    ),
    Mistake("other trust digest", 3, ("--trust is another trust policy",), more=("--trust", "other/trust.yaml")),
    Mistake("no trust policy there", 4, ("the policy's trust policy is not here", "UNTRUSTED"), trust="box/nobody.yaml"),
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program in a folder with a ledger, a profile, and a second trust policy that differs in its version."""
    folder = tmp_path_factory.mktemp("mistakes")
    made = Program(folder, folder / "state")
    assert made("init", "box").code == 0
    shutil.copytree(folder / "box", folder / "other")
    trust = folder / "other" / "trust.yaml"
    trust.write_text(trust.read_text().replace("version: 1", "version: 2"))
    (folder / "profile.yaml").write_text(PROFILE)
    return made


def gate(program: Program, mistake: Mistake) -> Done:
    text = POLICY.substitute(trust=mistake.trust, requires=mistake.requires, never_waive=mistake.never_waive)
    Path(program.folder / "policy.yaml").write_text(text)
    return program("gate", str(IMAGE), "--policy", "policy.yaml", "--ledger", "box/countermark.db", *mistake.more)


def test_without_a_mistake_the_policy_is_answered(program: Program) -> None:
    done = gate(program, Mistake("none", 1, ()))
    assert (done.code, done.err) == (1, "")
    assert "SUBJECT_UNKNOWN" in done.out


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_each_mistake_has_its_exit_and_its_message(program: Program, mistake: Mistake) -> None:
    done = gate(program, mistake)
    told = done.out + done.err
    assert done.code == mistake.exit, told
    assert [words for words in mistake.says if words not in told] == []
    assert "ALLOW" not in told
    assert ("policy.yaml:" in told) is (mistake.exit != 4 and "--trust" not in mistake.more), "a mistake in the document has its line"
    others = [other.says[0] for other in MISTAKES if other is not mistake]
    assert [words for words in others if words in told] == []
