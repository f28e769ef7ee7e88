"""Inputs made on the spot for the tests of the recorders: repositories by git itself, images by hand."""

import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(where: Path, *arguments: str, given: bytes = b"") -> str:
    """What git prints, stripped; the test fails when git does."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | GIT_ENVIRONMENT
    command = ["git", "-c", "protocol.file.allow=always", "-C", str(where), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, check=True, env=environment)
    return done.stdout.decode().strip()


def new_repository(where: Path, object_format: str = "sha1", *, bare: bool = False) -> Path:
    """An empty repository at `where`."""
    where.mkdir(parents=True)
    git(where, "init", "-q", f"--object-format={object_format}", "--initial-branch=main", *(["--bare"] if bare else []))
    return where


def write_files(where: Path, files: dict[str, bytes]) -> None:
    """Write files with the folders they need; a path that ends in `*` is executable."""
    for name, data in files.items():
        path = where / name.removesuffix("*")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith("*") else 0o644)


def commit_all(where: Path, message: str = "one") -> str:
    """Commit everything; the commit id as git says it."""
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", message)
    return git(where, "rev-parse", "HEAD")


def vector_repository(where: Path, object_format: str = "sha1") -> Path:
    """The files of the second vector of `countermark-source-tree/v1`, committed."""
    repository = new_repository(where, object_format)
    write_files(repository, {"a.py": b"x = 1\r\n", "pkg/b.txt": b"hello\n", "run*": b"#!/bin/sh\n"})
    (repository / "link").symlink_to("a.py")
    commit_all(repository)
    return repository


OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"

Json = dict[str, Any]


def encoded(value: object) -> bytes:
    """JSON bytes, as any tool may write them."""
    return json.dumps(value).encode()


def sha256(data: bytes) -> str:
    """The hex of SHA-256."""
    return hashlib.sha256(data).hexdigest()


class LayoutBuilder:
    """An OCI image layout, kept as path to bytes until it is written to a folder or an archive."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"oci-layout": encoded({"imageLayoutVersion": "1.0.0"})}
        self.top: list[Json] = []

    def blob(self, data: bytes, media_type: str, **more: Any) -> Json:
        """Add a blob; its descriptor."""
        self.files[f"blobs/sha256/{sha256(data)}"] = data
        return {"mediaType": media_type, "digest": f"sha256:{sha256(data)}", "size": len(data), **more}

    def image(self, layers: Sequence[bytes] = (b"layer",), *, architecture: str = "arm64", labels: Json | None = None, **more: Any) -> Json:
        """Add an image; the descriptor of its manifest. `more` goes into the config."""
        config: Json = {
            "os": "linux",
            "architecture": architecture,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer)}" for layer in layers]},
            "config": {"Labels": labels},
            **more,
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": self.blob(encoded(config), OCI_CONFIG),
            "layers": [self.blob(layer, OCI_LAYER) for layer in layers],
        }
        return self.blob(encoded(manifest), OCI_MANIFEST, platform={"os": "linux", "architecture": architecture})

    def index(self, *children: Json) -> Json:
        """Add an index; its descriptor."""
        return self.blob(encoded({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(children)}), OCI_INDEX)

    def config_of(self, manifest: Json) -> str:
        """The hex of the config that a manifest names."""
        document: Json = json.loads(self.files[f"blobs/sha256/{hex_of(manifest)}"])
        return hex_of(document["config"])

    def finished(self) -> dict[str, bytes]:
        """All files, with `index.json` naming `top`."""
        return self.files | {"index.json": encoded({"schemaVersion": 2, "manifests": self.top})}


def hex_of(descriptor: Json) -> str:
    """The hex of a descriptor's digest."""
    return str(descriptor["digest"]).removeprefix("sha256:")


def docker_archive(layers: Sequence[bytes] = (b"layer",), **config: Any) -> tuple[str, dict[str, bytes]]:
    """The files of a classic `docker save`, and the hex of the image ID."""
    diffs = [f"sha256:{sha256(layer)}" for layer in layers]
    data = encoded({"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": diffs}, "config": {"Labels": {"a": "b"}}, **config})
    names = [f"{sha256(layer)}/layer.tar" for layer in layers]
    manifest = [{"Config": f"{sha256(data)}.json", "RepoTags": ["x:latest"], "Layers": names}]
    return sha256(data), {f"{sha256(data)}.json": data, **dict(zip(names, layers, strict=True)), "manifest.json": encoded(manifest)}


def write_tar(path: Path, files: dict[str, bytes], mode: Literal["w", "w:gz"] = "w", extra: Sequence[tarfile.TarInfo] = ()) -> Path:
    """A tar archive of the files, then of `extra` members without content."""
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for entry in extra:
            archive.addfile(entry)
    return path


REVISION = "0123456789abcdef0123456789abcdef01234567"


def safetensors(tensors: dict[str, bytes]) -> bytes:
    """A safetensors file of byte tensors."""
    header: Json = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, data in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = encoded(header)
    return len(text).to_bytes(8, "little") + text + b"".join(tensors.values())


def model_files() -> dict[str, bytes]:
    """A small sharded model as a hub repository holds it."""
    return {
        ".gitattributes": b"*.safetensors filter=lfs\n",
        "README.md": b"---\nlicense: apache-2.0\nlanguage:\n- en\n---\n# A model\nlicense: none\n",
        "config.json": b'{"model_type": "tiny", "rope_theta": 1e6}',
        "tokenizer.json": b'{"version": "1.0"}',
        "tokenizer_config.json": b'{"model_max_length": 1000000000000000019884624838656, "chat_template": "{{ messages }}"}',
        "model-00001-of-00002.safetensors": safetensors({"a": b"12", "b": b"3456"}),
        "model-00002-of-00002.safetensors": safetensors({"c": b"7"}),
        "model.safetensors.index.json": encoded(
            {
                "metadata": {"total_size": 7},
                "weight_map": {
                    "a": "model-00001-of-00002.safetensors",
                    "b": "model-00001-of-00002.safetensors",
                    "c": "model-00002-of-00002.safetensors",
                },
            }
        ),
        "onnx/extra.txt": b"x",
    }


def is_lfs(name: str) -> bool:
    """Which files the hub keeps in LFS."""
    return name.endswith(".safetensors")


def blob_id(data: bytes) -> str:
    """The SHA-1 of a git blob."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def hub_cache(where: Path, files: dict[str, bytes], revision: str = REVISION) -> Path:
    """A hub cache as `snapshot_download` leaves it; the folder of the snapshot."""
    base = where / "models--org--tiny"
    snapshot = base / "snapshots" / revision
    write_files(base, {"refs/main": revision.encode()})
    for name, data in files.items():
        blob = base / "blobs" / (sha256(data) if is_lfs(name) else blob_id(data))
        write_files(base, {f"blobs/{blob.name}": data})
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    return snapshot


def lfs_pointer(data: bytes) -> bytes:
    """The pointer that git holds for a large file."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256(data)}\nsize {len(data)}\n".encode()


def model_clone(where: Path, files: dict[str, bytes]) -> Path:
    """A clone of a hub repository: pointers in git, contents in the work tree (as after `git lfs pull`)."""
    repository = new_repository(where)
    write_files(repository, {name: lfs_pointer(data) if is_lfs(name) else data for name, data in files.items()})
    commit_all(repository)
    git(repository, "remote", "add", "origin", "https://user:token@huggingface.co/org/tiny")
    write_files(repository, files)
    return repository
