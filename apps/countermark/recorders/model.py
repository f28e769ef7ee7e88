"""Record a model or draft at one revision: its files by digest, and what they say of themselves."""

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location, NothingError, UsageError
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.recorders.files import FileKind, kind_of, read_bytes
from countermark.recorders.model_files import HashedFile, hash_files
from countermark.recorders.model_folder import MAX_FILES, read_folder
from countermark.recorders.recording import Progress, Recording, silent
from countermark.recorders.safetensors import INDEX_SUFFIX, MAX_INDEX_BYTES, SUFFIX, check_index, tensor_names
from countermark.recorders.shape import Node

MAX_MANIFEST_BYTES = 64 << 20
MAX_TEXT_BYTES = 16 << 20

_ROLES = ("target", "draft")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?\Z", re.ASCII)
_LICENCE = re.compile(r"^license:[ \t]*[\"']?([^\s\"'#\[\]{}]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"---\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What was read of a model; `repository` and `revision` as its place says them, `None` where it does not."""

    files: tuple[HashedFile, ...]
    verified: bool
    repository: str | None
    revision: str | None
    digests: Mapping[str, str]
    licence: str | None = None
    notes: tuple[str, ...] = ()


def record_model(
    path: Path,
    *,
    role: str,
    repository: str | None = None,
    revision: str | None = None,
    drafts_for: str | None = None,
    progress: Progress = silent,
) -> Recording:
    """The `model/v1` statement of a folder, of the folder of a safetensors index, or of a manifest `[{name, bytes, sha256}]`.

    Repository and revision come from the place where it can say them (hub cache, clone, download) and must then agree with what is
    given. `drafts_for` is `ORG/NAME@REVISION`, for role draft only.
    """
    if role not in _ROLES:
        raise UsageError(Code.UNKNOWN_NAME, f"{role!r} is no role of a model", fix="give --role target or --role draft")
    if drafts_for and role != "draft":
        raise UsageError(Code.UNKNOWN_NAME, "only a draft belongs to a target", fix="give --role draft, or leave --drafts-for out")
    target = _identity(drafts_for) if drafts_for else None
    facts = read_model(path, revision, progress)
    repository = _agreed("repository", repository, facts.repository, path)
    revision = _agreed("revision", revision, facts.revision, path)
    _check_identity(repository, revision)
    predicate: dict[str, JsonValue] = {
        "repository": repository,
        "revision": revision,
        "role": role,
        "files": [{"name": file.name, "bytes": file.size_bytes, "sha256": file.sha256} for file in facts.files],
        **facts.digests,
        "licence": facts.licence,
        "verified": facts.verified,
        **({"drafts_for": target} if target else {}),
    }
    uri = f"pkg:huggingface/{repository}@{revision}"
    subject = Subject.of(Digest(DigestKind.GIT_COMMIT, revision), uri=uri, role=role)
    return Recording(PredicateName.MODEL, (subject,), predicate, facts.notes)


def read_model(path: Path, revision: str | None = None, progress: Progress = silent) -> ModelFacts:
    """Read and hash what is at `path`; an `InputError` names each file that is damaged, missing or not what was promised."""
    folder = model_folder(path)
    return _read_folder(folder, revision, progress) if folder else read_manifest(path)


def model_folder(path: Path) -> Path | None:
    """The folder that `path` means: itself, or the one around a safetensors index. `None` for a manifest, or nothing."""
    if kind_of(path) is FileKind.FOLDER:
        return path
    return path.parent if path.name.endswith(INDEX_SUFFIX) and kind_of(path) is FileKind.FILE else None


def _read_folder(path: Path, revision: str | None, progress: Progress) -> ModelFacts:
    folder = read_folder(path, revision)
    if not folder.files:
        raise NothingError(Code.NOTHING_EVALUATED, "the folder holds no file of a model", at=Location(str(path)), fix="download the model")
    files = hash_files(folder, progress)
    absent = [file.name for file in files if file.content is None]
    notes = list(folder.notes)
    if absent:
        notes.append(f"{len(absent)} file(s) are LFS pointers; their digests are the pointers' word: {' '.join(absent[:8])}")
    if folder.revision is None:
        notes.append("the folder does not say its revision; it is recorded as given")
    notes += _check_tensors(files)
    digests = named_digests({file.name: file.sha256 for file in files})
    template = chat_template_digest(files)
    digests = digests | ({"chat_template_sha256": template} if template else {})
    return ModelFacts(files, not absent, folder.repository, folder.revision, digests, _licence(files), tuple(notes))


def _check_tensors(files: Sequence[HashedFile]) -> Iterator[str]:
    """Read the header of every safetensors file, and compare every shard index with them."""
    weights = {file.name: file.content for file in files if file.name.endswith(SUFFIX)}
    shards = {name: tensor_names(content, name) if content else None for name, content in weights.items()}
    for file in files:
        if file.name.endswith(INDEX_SUFFIX) and file.content:
            index = Node(jsontext.loads(read_bytes(file.content, MAX_INDEX_BYTES, file.name), file.name, limit=MAX_INDEX_BYTES), file.name)
            named, found = check_index(index, posixpath.dirname(file.name), shards)
            if found < named:
                yield f"{file.name}: {named - found} of {named} tensors are in shards whose content is not here"


def chat_template_digest(files: Sequence[HashedFile]) -> str | None:
    """SHA-256 of `chat_template.jinja` where there is one, else of the UTF-8 text of `chat_template` in `tokenizer_config.json`
    (of several, the one named `default`)."""
    by_name = {file.name: file for file in files}
    if "chat_template.jinja" in by_name:
        return by_name["chat_template.jinja"].sha256
    settings = by_name.get("tokenizer_config.json")
    if settings is None or settings.content is None:
        return None
    template = _chat_template(read_bytes(settings.content, MAX_TEXT_BYTES, settings.name))
    return None if template is None else hashlib.sha256(template.encode(errors="replace")).hexdigest()


def _licence(files: Sequence[HashedFile]) -> str | None:
    """`license` of the front matter of the model card."""
    cards = [file.content for file in files if file.name == "README.md" and file.content]
    text = read_bytes(cards[0], MAX_TEXT_BYTES, "README.md").decode(errors="replace").replace("\r\n", "\n") if cards else ""
    front = _FRONT_MATTER.match(text)
    found = _LICENCE.search(front[1]) if front else None
    return found[1] if found else None


def named_digests(by_name: Mapping[str, str]) -> dict[str, str]:
    """The digests that a file of a fixed name gives."""
    names = {"config_sha256": "config.json", "tokenizer_sha256": "tokenizer.json", "chat_template_sha256": "chat_template.jinja"}
    return {field: by_name[name] for field, name in names.items() if name in by_name}


def _chat_template(data: bytes) -> str | None:
    """Lenient on purpose: published files hold numbers beyond 2^53 (`model_max_length`), and only one text is wanted of them."""
    try:
        settings = json.loads(data, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        raise InputError(Code.UNREADABLE, "not JSON", at=Location("tokenizer_config.json"), fix="download the file again") from None
    template = settings.get("chat_template") if isinstance(settings, dict) else None
    if isinstance(template, list):
        named = [item.get("template") for item in template if isinstance(item, dict) and item.get("name") == "default"]
        template = named[0] if named else None
    return template if isinstance(template, str) else None


def read_manifest(path: Path) -> ModelFacts:
    """A list of files that somebody else hashed; `{repository, revision, files}` around it is taken too."""
    node = Node(jsontext.loads(read_bytes(path, MAX_MANIFEST_BYTES), str(path), limit=MAX_MANIFEST_BYTES), str(path))
    listed = node if isinstance(node.value, list) else node["files"]
    if not listed:
        raise node.error("this is not a manifest of files", "give a model folder, or a JSON list of {name, bytes, sha256}")
    files = sorted(map(_manifest_file, listed.items()), key=lambda file: file.name)
    if not files:
        raise NothingError(
            Code.NOTHING_EVALUATED, "the manifest lists no file", at=listed.at, fix="list {name, bytes, sha256} of each file"
        )
    by_name = {file.name: file.sha256 for file in files}
    if len(by_name) != len(files) or len(files) > MAX_FILES:
        raise listed.error("a file stands twice, or there are too many", "list each file once", Code.DUPLICATE_KEY)
    said = {key: None if node is listed or not node[key] else node[key].text() for key in ("repository", "revision")}
    notes = ("the digests are the manifest's word; no file was hashed",)
    return ModelFacts(tuple(files), False, said["repository"], said["revision"], named_digests(by_name), notes=notes)


def _manifest_file(node: Node) -> HashedFile:
    name, sha256 = node["name"].text(), node["sha256"].text()
    if not name or name.startswith("/") or {"", ".", ".."}.intersection(name.split("/")):
        raise node["name"].error(f"{name!r} is not a path below the model", "write relative POSIX paths")
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise node["sha256"].error("a SHA-256 is 64 lower-case hex digits", "write the full digest", Code.BAD_DIGEST)
    return HashedFile(name, node["bytes"].count(), sha256)


def _agreed(what: str, given: str | None, found: str | None, path: Path) -> str:
    if given and found and given != found:
        message = f"{what} {given} was given; the place itself says {found}"
        raise InputError(Code.SUBJECT_CONTRADICTION, message, at=Location(str(path)), fix=f"leave --{what} out, or give the other folder")
    if not given and not found:
        raise UsageError(Code.SUBJECT_UNKNOWN, f"{path} does not say its {what}", fix=f"give --{what}")
    return given or found or ""


def _identity(text: str) -> dict[str, JsonValue]:
    repository, _, revision = text.partition("@")
    _check_identity(repository, revision)
    return {"repository": repository, "revision": revision}


def _check_identity(repository: str, revision: str) -> None:
    if not _REPOSITORY.match(repository):
        raise UsageError(Code.UNKNOWN_NAME, f"{repository!r} is not a repository", fix="write it as ORGANISATION/NAME")
    Digest(DigestKind.GIT_COMMIT, revision)
