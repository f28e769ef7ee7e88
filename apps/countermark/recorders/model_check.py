"""Check a recorded model against a folder: every file that is missing, additional or changed is a finding of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.recorders.model import ModelFacts, chat_template_digest, model_folder, named_digests, read_manifest
from countermark.recorders.model_files import HashedFile, hash_files
from countermark.recorders.model_folder import list_folder
from countermark.recorders.recording import Checked, Progress, silent
from countermark.recorders.shape import Node


def check_model(predicate: JsonValue, path: Path, *, source: str = "predicate", progress: Progress = silent) -> Checked:
    """Compare a recorded `model/v1` with the folder (or manifest) at `path`; a record without files is a `NothingError`.

    What the folder's layout promises plays no part here: the record alone is compared, so that one bad file hides no other.
    """
    recorded = Node(predicate, source)
    files = {item["name"].text(): item for item in recorded["files"].items()}
    if not files:
        raise NothingError(Code.NOTHING_EVALUATED, "the record lists no files to compare", at=recorded.at, fix="record the model's files")
    facts = _as_found(path, progress)
    findings = [*_files(files, facts.files), *_identity(recorded, facts), *_described(recorded, files, facts)]
    return Checked(len(files.keys() | {file.name for file in facts.files}), tuple(findings))


def _as_found(path: Path, progress: Progress) -> ModelFacts:
    root = model_folder(path)
    if root is None:
        return read_manifest(path)
    folder = list_folder(root)
    files = hash_files(replace(folder, files=tuple(replace(file, promise=None) for file in folder.files)), progress)
    return ModelFacts(files, True, folder.repository, folder.revision, named_digests({file.name: file.sha256 for file in files}))


def _files(recorded: Mapping[str, Node], found: Sequence[HashedFile]) -> Iterator[Finding]:
    here = {file.name: file for file in found}
    for name, node in recorded.items():
        file = here.get(name)
        wanted = f"{node['sha256'].text()} ({node['bytes'].count()} bytes)"
        if file is None:
            yield _finding(name, node, wanted, "no such file", "download the missing file")
        elif (node["sha256"].text(), node["bytes"].count()) != (file.sha256, file.size_bytes):
            yield _finding(name, node, wanted, f"{file.sha256} ({file.size_bytes} bytes)", "download the recorded revision again")
        elif file.content is None:
            fix = "fetch the content (git lfs pull), or give the folder that holds it"
            yield Finding(Code.REF_NOT_HERE, Outcome.INCONCLUSIVE, fix, subject=name, required=wanted, observed="its digest, not its bytes")
    for name in sorted(here.keys() - recorded.keys()):
        yield _finding(name, None, "no such file", "a file that is not in the record", "remove it, or record the model with it")


def _identity(recorded: Node, facts: ModelFacts) -> Iterator[Finding]:
    for name, found in (("repository", facts.repository), ("revision", facts.revision)):
        if found and recorded[name].text() != found:
            yield _finding(name, recorded[name], recorded[name].text(), found, "give the folder of the recorded revision")


def _described(recorded: Node, files: Mapping[str, Node], facts: ModelFacts) -> Iterator[Finding]:
    """The digests that stand beside the files must be those of the recorded files themselves."""
    by_name = named_digests({name: node["sha256"].text() for name, node in files.items()})
    settings = files.get("tokenizer_config.json")
    here = [file for file in facts.files if settings and file.name == "tokenizer_config.json" and file.sha256 == settings["sha256"].text()]
    if "chat_template_sha256" not in by_name and here and (template := chat_template_digest(here)):
        by_name["chat_template_sha256"] = template
    for name in ("config_sha256", "tokenizer_sha256", "chat_template_sha256"):
        if recorded[name] and name in by_name and recorded[name].text() != by_name[name]:
            yield _finding(name, recorded[name], recorded[name].text(), by_name[name], "record the model again; do not use this record")


def _finding(subject: str, node: Node | None, required: str, observed: str, fix: str) -> Finding:
    return Finding(
        Code.RECORD_CONTRADICTED,
        Outcome.FAIL,
        fix=fix,
        checker="model.recomputed",
        location=node.at if node else None,
        subject=subject,
        required=required,
        observed=observed,
    )
