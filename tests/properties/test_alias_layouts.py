"""What crosses between the digests of real image layouts: a rejection both ways, a pass only where bytes prove that it is one image."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from worlds import World

from countermark.actions.appending import record
from countermark.attestations.digests import Digest, DigestKind
from countermark.recorders.image import record_image

from .real_ledgers import answer, ask

OCI = "application/vnd.oci.image"
ALLOWED, REJECTED, NOTHING = ("ALLOW", "OK"), ("DENY", "IMAGE_REJECTED"), ("DENY", "CAP_NO_EVIDENCE")


@dataclass
class Layout:
    """An image layout in a folder: an index over one image for each of some platforms, all bytes in place."""

    folder: Path
    names: dict[str, Digest] = field(default_factory=dict)

    def write(self, *architectures: str) -> "Layout":
        (self.folder / "blobs" / "sha256").mkdir(parents=True)
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        manifests = [self._image(architecture) for architecture in architectures]
        index = self._blob("index", DigestKind.OCI_INDEX, "index.v1+json", {"schemaVersion": 2, "manifests": manifests})
        (self.folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [index]}))
        return self

    def _image(self, architecture: str) -> dict[str, Any]:
        layer = self._stored(f"layer of {architecture}".encode(), "layer.v1.tar")
        inside = {"os": "linux", "architecture": architecture, "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
        config = self._blob(f"{architecture} config", DigestKind.OCI_CONFIG, "config.v1+json", inside)
        outside = {"schemaVersion": 2, "config": config, "layers": [layer]}
        manifest = self._blob(f"{architecture} manifest", DigestKind.OCI_MANIFEST, "manifest.v1+json", outside)
        return {**manifest, "platform": {"os": "linux", "architecture": architecture}}

    def _blob(self, name: str, kind: DigestKind, media: str, value: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps({**value, **({} if kind is DigestKind.OCI_CONFIG else {"mediaType": f"{OCI}.{media}"})}).encode()
        self.names[name] = Digest.of(kind, data)
        return self._stored(data, media)

    def _stored(self, data: bytes, media: str) -> dict[str, Any]:
        hexed = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / "sha256" / hexed).write_bytes(data)
        return {"mediaType": f"{OCI}.{media}", "digest": f"sha256:{hexed}", "size": len(data)}


NAMES = ("index", "arm64 manifest", "arm64 config", "amd64 manifest", "amd64 config")


@dataclass
class Lab:
    """A world, and a layout of two platforms whose images are recorded from their bytes."""

    world: World
    layout: Layout

    def record(self, name: str, platform: str | None = None) -> None:
        recording = record_image(self.layout.folder, digest=self.layout.names[name], platform=platform)
        record(self.world.workspace, recording, "builder", str(self.world.key("ci")))

    def record_all(self) -> None:
        for architecture in ("arm64", "amd64"):
            self.record("index", f"linux/{architecture}")
            self.record(f"{architecture} manifest")

    def answers(self) -> dict[str, tuple[str, str]]:
        """What the gate says of each name, and nothing of those that are unknown to the ledger."""
        policy = self.world.folder / "lab.yaml"
        found = {name: answer(ask(self.world.workspace, self.layout.names[name], policy)) for name in NAMES}
        return {name: said for name, said in found.items() if said != ("DENY", "SUBJECT_UNKNOWN")}


@pytest.fixture
def lab(world: World, tmp_path: Path) -> Lab:
    return Lab(world, Layout(tmp_path / "layout").write("arm64", "amd64"))


def of_one(allowed: str) -> dict[str, tuple[str, str]]:
    """What is said when both names of one image are allowed, and of nothing else anything is known to hold."""
    return {name: ALLOWED if name.startswith(allowed) else NOTHING for name in NAMES}


@pytest.mark.parametrize("tested", ["arm64 manifest", "arm64 config"])
def test_a_pass_crosses_between_a_manifest_and_its_config_and_no_further(lab: Lab, tested: str) -> None:
    lab.world.receipt(lab.layout.names[tested])
    assert lab.answers() == {tested: ALLOWED}
    lab.record_all()
    assert lab.answers() == of_one("arm64")


@pytest.mark.parametrize("recorded", ["arm64 manifest", "arm64 config"])
def test_either_level_proves_the_other(lab: Lab, recorded: str) -> None:
    lab.world.receipt(lab.layout.names["arm64 config"])
    lab.record(recorded)
    assert lab.answers() == {"index": NOTHING, "arm64 manifest": ALLOWED, "arm64 config": ALLOWED}


def test_the_index_alone_says_which_image_is_rejected_and_not_which_two_digests_are_proven_one(lab: Lab) -> None:
    lab.record("index", "linux/arm64")
    for name in ("arm64 manifest", "amd64 manifest"):
        lab.world.receipt(lab.layout.names[name])
    assert lab.answers() == {"index": NOTHING, "arm64 manifest": ALLOWED, "arm64 config": NOTHING, "amd64 manifest": ALLOWED}
    lab.world.reject(lab.layout.names["arm64 config"])
    assert lab.answers() == {**dict.fromkeys(("index", "arm64 manifest", "arm64 config"), REJECTED), "amd64 manifest": ALLOWED}


def test_a_pass_of_an_index_is_for_nothing_below_it(lab: Lab) -> None:
    lab.record_all()
    lab.world.receipt(lab.layout.names["index"])
    assert lab.answers() == of_one("index")


def test_an_index_of_one_image_is_not_that_image(lab: Lab, tmp_path: Path) -> None:
    single = Lab(lab.world, Layout(tmp_path / "single").write("arm64"))
    single.record("index")
    single.record("arm64 manifest")
    single.world.receipt(single.layout.names["arm64 manifest"])
    policy = single.world.folder / "lab.yaml"
    assert answer(ask(single.world.workspace, single.layout.names["index"], policy)) == NOTHING


@pytest.mark.parametrize(
    ("rejected", "reached"),
    [
        ("arm64 config", {"arm64 config", "arm64 manifest", "index"}),
        ("arm64 manifest", {"arm64 config", "arm64 manifest", "index"}),
        ("index", set(NAMES)),
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=["rejected first", "recorded first"])
def test_a_rejection_reaches_every_name_of_the_image_and_the_index_above_it(
    lab: Lab, rejected: str, reached: set[str], first: bool
) -> None:
    """And never another image of that index; whichever was said first."""
    for name in NAMES:
        lab.world.receipt(lab.layout.names[name])
    if first:
        lab.world.reject(lab.layout.names[rejected])
    lab.record_all()
    if not first:
        lab.world.reject(lab.layout.names[rejected])
    assert {name for name, said in lab.answers().items() if said == REJECTED} == reached
    assert {name for name, said in lab.answers().items() if said == ALLOWED} == set(NAMES) - reached


def test_a_failure_reaches_as_far_as_a_rejection(lab: Lab) -> None:
    lab.record_all()
    for name in NAMES:
        lab.world.receipt(lab.layout.names[name])
    lab.world.receipt(lab.layout.names["arm64 config"], outcome="fail")
    failed = {name for name, said in lab.answers().items() if said == ("DENY", "CAP_FAILED")}
    assert failed == {"arm64 config", "arm64 manifest", "index"}


def test_the_image_of_another_platform_does_not_speak_against_the_index_for_this_one(lab: Lab) -> None:
    lab.record_all()
    lab.world.receipt(lab.layout.names["index"])
    lab.world.reject(lab.layout.names["amd64 config"])
    policy = lab.world.folder / "lab.yaml"
    assert answer(ask(lab.world.workspace, lab.layout.names["index"], policy)) == REJECTED
    for platform, said in (("arm64", ALLOWED), ("amd64", REJECTED)):
        text = policy.read_text().replace("oci-index]}", f"oci-index], platform: linux/{platform}}}")
        (lab.world.folder / f"{platform}.yaml").write_text(text)
        assert answer(ask(lab.world.workspace, lab.layout.names["index"], lab.world.folder / f"{platform}.yaml")) == said


def test_hearsay_carries_a_rejection_and_no_pass(lab: Lab) -> None:
    manifest, config = lab.layout.names["arm64 manifest"], lab.layout.names["arm64 config"]
    lab.world.image(manifest, aliases=[(config, False)], verified=False)
    lab.world.receipt(config)
    assert lab.answers() == {"arm64 manifest": NOTHING, "arm64 config": ALLOWED}
    lab.world.reject(config)
    assert set(lab.answers().values()) == {REJECTED}
