"""The demo's restores come out as the demo tells them, and say so when they do not."""

from pathlib import Path

import pytest

from countermark.actions.demo import restored, story
from countermark.actions.demo.restored import Restores
from countermark.actions.init import initialise
from countermark.actions.restore.engine_source import own_checkout
from countermark.attestations.digests import Digest, DigestKind

IMAGE = Digest(DigestKind.OCI_MANIFEST, "ab" * 32)
POLICY = """\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {id: serving, version: 1}
spec:
  channel: production
  subject: {kinds: [oci-manifest]}
  trust: trust.yaml
  evidence: {basis: [measured], max_age: 90d}
  requires:
    - {id: startup, capability: service.startup}
  waivable: []
  never_waive: [IMAGE_REJECTED]
  waiver_max_days: 14
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    if own_checkout() is None:
        pytest.skip("the tests do not run from a git checkout")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return []


def tell(folder: Path, lines: list[str]) -> list[str]:
    workspace = initialise(folder / "box").workspace
    (folder / "box" / "serving.yaml").write_text(POLICY)
    return list(Restores(workspace, folder / "box", lines.append).run(IMAGE, folder / "box" / "serving.yaml"))


def test_the_restores_come_out_as_told(told: list[str], tmp_path: Path) -> None:
    assert tell(tmp_path, told) == []
    text = "\n".join(told)
    for words in ("it ran on no GPU", "failed at object 2 [BAD_DIGEST]", "all ranks: recompute", "answers 'spark'", "nothing derived"):
        assert words in text


def test_an_oracle_that_answers_another_word_is_a_surprise(told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restored, "SPARK", "another word")
    assert tell(tmp_path, told) == ["a mis-ordered snapshot came out as recompute"]


def test_without_a_checkout_the_restores_are_left_out(told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "own_checkout", lambda: None)
    teller = story.Story(tmp_path / "demo", told.append)
    teller.run()
    assert teller.surprises == []
    assert any("Restores under attestation are left out" in line for line in told)
