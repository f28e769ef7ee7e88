"""Hashing the files of a model side by side, and holding each digest against what was promised for it."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.recorders.files import CHUNK_BYTES, FileKind, kind_of, opened
from countermark.recorders.git_objects import object_hash
from countermark.recorders.lfs import MAX_POINTER_BYTES, LfsPointer
from countermark.recorders.model_folder import ModelFile, ModelFolder, PromisedHash
from countermark.recorders.recording import Progress

MAX_WORKERS = 8


@dataclass(frozen=True, slots=True)
class HashedFile:
    """A file's size and SHA-256, and where its bytes were read; without `content` both are the word of a pointer or a manifest."""

    name: str
    size_bytes: int
    sha256: str
    content: Path | None = None


def hash_files(folder: ModelFolder, progress: Progress) -> tuple[HashedFile, ...]:
    """Hash every file of the folder, several at a time (hashing releases the interpreter lock), largest first; in name order.

    An `InputError` names a file that differs from its promised digest, or that changed while it was read.
    """
    counter = _Counter(sum(file.size_bytes for file in folder.files), progress)
    by_size = sorted(folder.files, key=lambda file: -file.size_bytes)
    workers = min(MAX_WORKERS, os.cpu_count() or 1, max(1, len(by_size)))
    with ThreadPoolExecutor(max_workers=workers) as pool:
        waiting = [pool.submit(_hash_one, file, folder.lfs_objects, counter) for file in by_size]
        try:
            hashed = [future.result() for future in waiting]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # else an interrupt waits for every file that is still queued
            raise
    return tuple(sorted(hashed, key=lambda file: file.name))


class _Counter:
    """Adds up bytes from many threads and tells them one at a time."""

    def __init__(self, total_bytes: int, progress: Progress) -> None:
        self._lock = Lock()
        self._done_bytes = 0
        self._total_bytes = total_bytes
        self._progress = progress

    def add(self, size_bytes: int) -> None:
        with self._lock:
            self._done_bytes += size_bytes
            self._progress(self._done_bytes, max(self._done_bytes, self._total_bytes))


def _hash_one(file: ModelFile, lfs_objects: Path | None, counter: _Counter) -> HashedFile:
    sha256, blob_id, start = _digests(file, counter)
    pointer = LfsPointer.parse(start) if file.size_bytes <= MAX_POINTER_BYTES else None
    if pointer:
        hashed = HashedFile(file.name, pointer.size_bytes, pointer.sha256, _lfs_content(file.name, pointer, lfs_objects))
    else:
        hashed = HashedFile(file.name, file.size_bytes, sha256, file.path)
    if promise := file.promise:
        found = blob_id if promise.hash is PromisedHash.GIT_BLOB else hashed.sha256
        if found != promise.hex or promise.size_bytes not in (None, hashed.size_bytes):
            raise _contradiction(file.name, f"its {promise.hash} digest is {found}; its layout promises {promise.hex}")
    return hashed


def _lfs_content(name: str, pointer: LfsPointer, lfs_objects: Path | None) -> Path | None:
    """Where a clone's LFS store holds what the pointer stands for, if it does; then it must hash to the pointer's digest."""
    path = lfs_objects / pointer.sha256[:2] / pointer.sha256[2:4] / pointer.sha256 if lfs_objects else None
    if path is None or kind_of(path) is not FileKind.FILE:
        return None
    with opened(path) as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
        size_bytes = content.tell()
    if (found, size_bytes) != (pointer.sha256, pointer.size_bytes):
        raise _contradiction(name, f"its LFS object has {size_bytes} bytes and SHA-256 {found}; the pointer says {pointer.sha256}")
    return path


def _digests(file: ModelFile, counter: _Counter) -> tuple[str, str, bytes]:
    """SHA-256, git blob id where that was promised, and the first bytes."""
    hashers = [hashlib.sha256()]
    if file.promise and file.promise.hash is PromisedHash.GIT_BLOB:
        hashers.append(object_hash("blob", file.size_bytes, len(file.promise.hex)))
    with opened(file.path, file.name) as content:
        before, left = os.fstat(content.fileno()), file.size_bytes
        start = piece = content.read(min(CHUNK_BYTES, left))
        while piece:
            for hasher in hashers:
                hasher.update(piece)
            counter.add(len(piece))
            left -= len(piece)
            piece = content.read(min(CHUNK_BYTES, left))  # never beyond the size first seen: a file may grow as fast as it is read
        after = os.fstat(content.fileno())
    if left or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or after.st_size != file.size_bytes:
        raise InputError(Code.UNREADABLE, "it changed while it was read", at=Location(file.name), fix="wait until the download ends")
    return hashers[0].hexdigest(), hashers[-1].hexdigest(), start[: MAX_POINTER_BYTES + 1]


def _contradiction(name: str, message: str) -> InputError:
    return InputError(Code.SUBJECT_CONTRADICTION, message, at=Location(name), fix="download the file again; do not use this one")
