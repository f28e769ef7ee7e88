"""The plan document: every field with its default, and the rules that a schema cannot say."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from snapshots import small_snapshot

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, InvalidDocumentError
from countermark.cuda_restore.request import Authenticate
from countermark.cuda_restore.restore_plan import LivePlan, Metrics, Prompt, RankPlan, RestorePlan
from countermark.cuda_restore.slabs import Bounds

CONTEXT = "b" * 64
RANK = {"rank": 0, "manifest": "rank0/manifest.json", "chunks": "rank0/chunks", "device": "cpu"}
LIVE: dict[str, Any] = {
    "endpoint": "http://127.0.0.1:8000/v1/completions",
    "model": "m",
    "prompts": [
        {"file": "red.json", "required": "red", "normalisation": ["strip"]},
        {"file": "blue.json", "required": "blue", "normalisation": ["none"]},
    ],
    "control": {"file": "control.json", "required": "green"},
    "metrics": {"url": "http://127.0.0.1:8000/metrics", "restored_tokens": "r", "local_hit_tokens": "l"},
    "timeout_s": "120.5",
}


def load(folder: Path, **spec: Any) -> RestorePlan:
    value = {
        "apiVersion": "countermark.dev/v1",
        "kind": "RestorePlan",
        "metadata": {"id": "plan", "version": 3},
        "spec": {"ranks": [RANK], "context_digest": CONTEXT, "committed_tokens": 512} | spec,
    }
    path = folder / "plan.json"
    path.write_text(json.dumps(value))
    return RestorePlan.load(path)


def test_a_short_plan_has_every_default(tmp_path: Path) -> None:
    plan = load(tmp_path)
    assert plan.ranks == (RankPlan(0, tmp_path / "rank0/manifest.json", tmp_path / "rank0/chunks", "cpu"),)
    assert plan.bounds == Bounds(4, 268_435_456)
    assert plan.authenticate is Authenticate.OBJECT
    assert plan.rungs == (1, 2, 3, 4)
    assert (plan.faults, plan.image, plan.live, plan.scope) == (None, None, None, None)
    assert (plan.id, plan.version, plan.context_digest, plan.committed_tokens) == ("plan", 3, CONTEXT, 512)
    assert plan.digest == Digest.of(DigestKind.FILE, (tmp_path / "plan.json").read_bytes())


def test_a_full_plan_has_every_value(tmp_path: Path) -> None:
    image = Digest.of(DigestKind.OCI_CONFIG, b"")
    plan = load(
        tmp_path,
        image=str(image),
        readers=2,
        retained_bytes=4096,
        authenticate="batch",
        rungs=[5, 1],
        faults=["page-swap"],
        live=LIVE,
        scope={"publication_mode": "snapshot-v1"},
    )
    assert plan.image == image
    assert plan.bounds == Bounds(2, 4096)
    assert plan.authenticate is Authenticate.BATCH
    assert plan.rungs == (1, 5)
    assert plan.faults == ("page-swap",)
    assert plan.scope == {"publication_mode": "snapshot-v1"}
    assert plan.live == LivePlan(
        endpoint=LIVE["endpoint"],
        model="m",
        prompts=(Prompt(tmp_path / "red.json", "red", ("strip",)), Prompt(tmp_path / "blue.json", "blue", ("none",))),
        control=Prompt(tmp_path / "control.json", "green"),
        metrics=Metrics("http://127.0.0.1:8000/metrics", "r", "l"),
        timeout_s=Decimal("120.5"),
    )
    source = plan.sources()[0]
    assert (source.rank, source.bounds, source.authenticate) == (0, plan.bounds, plan.authenticate)


def test_no_faults_are_not_all_of_them(tmp_path: Path) -> None:
    assert load(tmp_path, faults=[]).faults == ()
    assert load(tmp_path, faults="all").faults is None


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"ranks": [RANK, RANK]}, "/spec/ranks/1/rank"),
        ({"committed_tokens": 0}, "/spec/committed_tokens"),
        ({"committed_tokens": 300}, "/spec/committed_tokens"),
        ({"rungs": [5]}, "/spec/rungs"),
        ({"live": LIVE | {"timeout_s": "0"}}, "/spec/live/timeout_s"),
        ({"live": LIVE | {"prompts": [LIVE["prompts"][0], LIVE["prompts"][0]]}}, "/spec/live/prompts"),
        ({"readers": 0}, "/spec/readers"),
        ({"ranks": []}, "/spec/ranks"),
        ({"authenticate": "none"}, "/spec/authenticate"),
        ({"ranks": [RANK | {"device": "cpu:eager"}]}, "/spec/ranks/0/device"),
    ],
)
def test_a_mistake_is_told_at_its_place(tmp_path: Path, spec: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        load(tmp_path, **spec)
    assert [mistake.at.pointer for mistake in caught.value.mistakes if mistake.at] == [pointer]


def test_all_mistakes_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        load(tmp_path, ranks=[RANK, RANK], committed_tokens=1, rungs=[5])
    assert len(caught.value.mistakes) == 3


def test_a_manifest_of_another_context_is_refused(tmp_path: Path) -> None:
    loaded = small_snapshot(tmp_path / "store").loaded
    load(tmp_path, context_digest=loaded.manifest.context_digest).check([loaded])
    for spec, pointer in (
        ({}, "/context_digest"),
        ({"context_digest": loaded.manifest.context_digest, "committed_tokens": 256}, "/committed_tokens"),
        ({"context_digest": loaded.manifest.context_digest, "ranks": [RANK | {"rank": 1}]}, "/identity/tp_shard_rank"),
    ):
        with pytest.raises(InputError) as caught:
            load(tmp_path, **spec).check([loaded])
        assert caught.value.code is Code.SUBJECT_MISMATCH
        assert caught.value.at is not None
        assert caught.value.at.pointer == pointer
