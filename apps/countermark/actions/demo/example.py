"""The example of the demo: an engine's source, the maintainers' repository that pins it in eight places, an image, a model."""

import hashlib
import io
import json
import os
import struct
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError

_WHEN = "2026-08-30T05:32:01+00:00"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_AUTHOR = {"NAME": "Example Maintainer", "EMAIL": "maintainer@example.org", "DATE": _WHEN}

ENGINE_FILES = {
    "README.md": "# engine\n\nPlaces pages of a KV cache.\n",
    "engine/__init__.py": '"""Places pages of a KV cache."""\n',
    "engine/placement.py": "def place(pages: dict[int, bytes], table: list[int]) -> bytes:\n    return b''.join(pages[n] for n in table)\n",
}
MODEL_REVISION = "7d3c8f1e5a9b2046c1d8e3f70a6b9c2d4e5f6071"
DRAFT_REVISION = "1b2c3d4e5f60718293a4b5c6d7e8f9010a2b3c4d"


def make_engine(folder: Path) -> tuple[str, str]:
    """A git repository with the engine's source; its commit and tree, the same on every machine."""
    _commit(folder, ENGINE_FILES, "Place pages by block table")
    return _git(folder, "rev-parse", "HEAD"), _git(folder, "rev-parse", "HEAD^{tree}")


def make_release(folder: Path, commit: str, tree: str) -> None:
    """The maintainers' repository: the engine's commit stands in eight places, and a contract says that they are one."""
    _commit(folder, release_files(commit, tree), "Pin the engine")


def commit_change(folder: Path, file: str, old: str, new: str) -> None:
    """Change one text in one file, and commit it."""
    path = folder / file
    _commit(folder, {file: path.read_text().replace(old, new)}, f"Update {file}")


def release_files(commit: str, tree: str) -> dict[str, str]:
    """The files of the maintainers' repository by path."""
    profile = 'source:\n  repository: https://git.example.org/engine\n  commit: "{commit}"\nclass: {kind}\ncommand: [serve, --tp, "4"]\n'
    return {
        "README.md": f"# Serving images\n\nBuilt from engine `{commit}`.\n",
        "builder/pins.json": json.dumps({"engine": {"commit": commit, "tree": tree}}, indent=2) + "\n",
        "resolver/input.json": json.dumps({"sources": [{"name": "engine", "commit": commit}]}, indent=2) + "\n",
        "profiles/serving.yaml": profile.format(commit=commit, kind="serving"),
        "profiles/research.yaml": profile.format(commit=commit, kind="research"),
        "docs/QUICKSTART.md": f"# Quickstart\n\n    engine preflight --commit {commit}\n",
        "docs/RELEASE.md": f"# Release\n\nEngine commit `{commit}`, tree `{tree}`.\n",
        "evidence/readiness.json": json.dumps({"engine_commit": commit, "ready": "4 of 4 ranks"}, indent=2) + "\n",
        "contract.yaml": _CONTRACT.format(commit=commit, tree=tree),
    }


_CONTRACT = """\
apiVersion: countermark.dev/v1
kind: Contract
metadata: {{id: engine-pins, version: 1}}
spec:
  pins:
    engine:
      commit: "{commit}"
      tree: "{tree}"
  binds_image: [engine]
  places:
    - {{file: builder/pins.json, json: /engine/commit, is: engine.commit}}
    - {{file: builder/pins.json, json: /engine/tree, is: engine.tree}}
    - {{file: resolver/input.json, json: /sources/*/commit, is: engine.commit}}
    - {{file: profiles/*.yaml, yaml: /source/commit, is: engine.commit}}
    - {{file: evidence/readiness.json, json: /engine_commit, is: engine.commit}}
    - {{file: README.md, markdown: all-digests, is: any-known}}
    - {{file: docs/*.md, markdown: all-digests, is: any-known}}
  invariants:
    - {{id: pins-agree, check: pins.agree}}
    - {{id: pins-whole, check: pins.full-length}}
"""


def make_image(layout: Path) -> None:
    """An OCI image layout with one image: one layer that holds the engine."""
    layer = _layer(ENGINE_FILES)
    config = {
        "architecture": "arm64",
        "os": "linux",
        "created": "2026-08-30T05:32:01Z",
        "config": {"Labels": {"org.opencontainers.image.title": "engine"}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    config_blob = _blob(layout, json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json")
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": config_blob,
        "layers": [_blob(layout, layer, "application/vnd.oci.image.layer.v1.tar")],
    }
    manifest_blob = _blob(layout, json.dumps(manifest).encode(), _MANIFEST)
    platform = {"platform": {"os": "linux", "architecture": "arm64"}}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest_blob | platform]}
    (layout / "index.json").write_text(json.dumps(index))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def make_model(folder: Path, *, layers: int) -> None:
    """A model of a few hundred bytes in two safetensors shards, with the files that a snapshot folder has."""
    shards = {f"model-{n + 1:05}-of-00002.safetensors": [f"layer.{k}.weight" for k in range(n, layers, 2)] for n in range(2)}
    files = {
        "README.md": b"---\nlicense: apache-2.0\n---\n# tiny\n",
        "config.json": json.dumps({"num_hidden_layers": layers}).encode(),
        "tokenizer.json": json.dumps({"model": {"vocab": {"red": 0, "spark": 1}}}).encode(),
        "model.safetensors.index.json": json.dumps(
            {"metadata": {"total_size": 16 * layers}, "weight_map": {name: shard for shard, names in shards.items() for name in names}}
        ).encode(),
        **{shard: _safetensors(names) for shard, names in shards.items()},
    }
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


JUNIT = """\
<testsuites><testsuite name="engine" tests="2" failures="0" errors="0" skipped="0">
<testcase classname="placement" name="in_table_order"/><testcase classname="placement" name="every_page_once"/>
</testsuite></testsuites>
"""


def _safetensors(names: list[str]) -> bytes:
    header = {name: {"dtype": "F32", "shape": [4], "data_offsets": [16 * n, 16 * n + 16]} for n, name in enumerate(names)}
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + bytes(range(16)) * len(names)


def _layer(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, text in sorted(files.items()):
            member = tarfile.TarInfo(f"opt/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def _blob(layout: Path, data: bytes, media_type: str) -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    path = layout / "blobs" / "sha256" / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _commit(folder: Path, files: Mapping[str, str], message: str) -> None:
    if not (folder / ".git").exists():
        folder.mkdir(parents=True)
        _git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    _git(folder, "add", "--all")
    _git(folder, "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", message)


def _git(folder: Path, *arguments: str) -> str:
    """Run git there, with an author, a date and no configuration but the repository's own."""
    settings = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _AUTHOR.items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = kept | settings | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=False)
    except OSError:
        raise CannotTellError(Code.UNREADABLE, "git is not installed, and the demo makes two repositories", fix="install git") from None
    if done.returncode:
        raise CannotTellError(Code.UNREADABLE, f"git {arguments[0]} failed: {done.stderr.strip()}", fix="try an empty folder")
    return done.stdout.strip()
