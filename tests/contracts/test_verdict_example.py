"""A whole example: a builder, two profiles, a resolver, a launcher, a quickstart and evidence under one contract.

Each single edit is exactly one finding, at its file and line, with what most places say and the action that mends it.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import ExitCode
from countermark.attestations.findings import Finding

from .small_repository import COMMIT, SOURCE_SHA256, MemoryTree, small_contract, verdict_on

LIBRARY = "d57509052b73853bcc8e3c3f47bb81748d87b9cbd8d908fc20d4c79a09aa400c"
CONTRACT = f"""\
apiVersion: countermark.dev/v1
kind: Contract
metadata: {{id: example, version: 2}}
spec:
  pins:
    sparkcache: {{commit: "{COMMIT}", source_sha256: "{SOURCE_SHA256}"}}
  places:
    - {{file: builder/pins.json, json: /sparkcache/commit, is: sparkcache.commit}}
    - {{file: builder/pins.json, json: /sparkcache/source_sha256, is: sparkcache.source_sha256}}
    - {{file: builder/Dockerfile, dockerfile: LABEL org.sparkcache.commit, is: sparkcache.commit}}
    - {{file: profiles/*.yaml, yaml: /source/commit, is: sparkcache.commit}}
    - {{file: resolver/input.toml, toml: /sparkcache/commit, is: sparkcache.commit}}
    - {{file: deploy/.env, env: SPARKCACHE_COMMIT, is: sparkcache.commit}}
    - {{file: deploy/compose.yaml, compose: /services/engine/labels/sparkcache, is: sparkcache.commit}}
    - {{file: deploy/run.sh, args: --sparkcache, is: sparkcache.commit}}
    - {{file: docs/QUICKSTART.md, markdown: all-digests, is: any-known}}
    - {{file: evidence/receipt.json, json: /source/commit, is: sparkcache.commit}}
  profiles:
    dflash7:
      file: profiles/dflash7.yaml
      class: serving
      config: /kv_transfer/extra
      argv: /command
      fields: {{model: /model/revision, cache_root: /kv_transfer/extra/spark_cache_root}}
    adaptive-mtp:
      file: profiles/adaptive-mtp.yaml
      class: serving
      config: /kv_transfer/extra
      argv: /command
      fields: {{model: /model/revision, cache_root: /kv_transfer/extra/spark_cache_root}}
  commands:
    preflight: {{argv: [preflight, --strict-placeholders]}}
    start: {{argv: [start, --execute]}}
    health: {{argv: [curl, /health]}}
  facts:
    wire: {{file: docs/wire.json, json: "", type: document}}
  invariants:
    - {{id: pins-agree, check: pins.agree}}
    - {{id: pins-whole, check: pins.full-length}}
    - {{id: keys-complete, check: config.keys-complete, with: {{prefix: spark_cache_cuda_, catalog: sparkcache-cuda/v1}}}}
    - {{id: keys-accepted, check: config.keys-accepted, with: {{catalog: sparkcache-cuda/v1, source: sparkcache.commit}}}}
    - {{id: keys-typed, check: config.types-strict, with: {{catalog: sparkcache-cuda/v1}}}}
    - {{id: distinct, check: identity.distinct, with: {{profiles: [dflash7, adaptive-mtp], fields: [model, cache_root]}}}}
    - {{id: no-research, check: config.flags-forbidden, with: {{flags: [--prefill-schedule-interval], class: serving}}}}
    - {{id: wire, check: compat.fields-unchanged, with: {{baseline: contracts/example@1.lock.json, fields: [wire]}}}}
    - {{id: quickstart, check: docs.commands, with: {{file: docs/QUICKSTART.md, requires: [preflight, start, health]}}}}
"""


def profile(name: str, model: str) -> str:
    return f"""\
name: {name}
source:
  commit: {COMMIT}
model: {{revision: {model * 40}}}
kv_transfer:
  extra:
    spark_cache_root: /cache/{name}
    spark_cache_cuda_restore: true
    spark_cache_cuda_placement_library: /opt/place.so
    spark_cache_cuda_placement_library_sha256: {LIBRARY}
    spark_cache_cuda_placement_arena_bytes: 268435456
    spark_cache_cuda_restore_io_workers: 8
command:
  - serve
  - --max-num-seqs=32
"""


TEXTS = {
    "builder/pins.json": f'{{"sparkcache": {{\n  "commit": "{COMMIT}",\n  "source_sha256": "{SOURCE_SHA256}"\n}}}}\n',
    "builder/Dockerfile": f'FROM scratch\nARG COMMIT={COMMIT}\nLABEL org.sparkcache.commit="$COMMIT"\n',
    "profiles/dflash7.yaml": profile("dflash7", "a"),
    "profiles/adaptive-mtp.yaml": profile("adaptive-mtp", "b"),
    "resolver/input.toml": f'[sparkcache]\ncommit = "{COMMIT}"\n',
    "deploy/.env": f"SPARKCACHE_COMMIT={COMMIT}\n",
    "deploy/compose.yaml": 'services:\n  engine:\n    labels: {sparkcache: "${SPARKCACHE_COMMIT}"}\n',
    "deploy/run.sh": f"#!/bin/sh\nexec serve \\\n  --sparkcache {COMMIT} --port 8000\n",
    "docs/QUICKSTART.md": f"""\
# Start

Built from {COMMIT}.

```bash
tools/run preflight --strict-placeholders
tools/run start --execute
```

```bash
curl -f http://127.0.0.1:8000/health
```
""",
    "docs/wire.json": '{\n  "fields": ["target", "draft"],\n  "tp_degree": "u32"\n}\n',
    "evidence/receipt.json": f'{{"source": {{"commit": "{COMMIT}"}}}}\n',
    "contracts/example@1.lock.json": f"""\
{{"id": "example", "version": 1, "contract": "file:sha256:{SOURCE_SHA256}",
 "facts": {{"wire": {{"fields": ["target", "draft"], "tp_degree": "u32"}}}}}}
""",
}
PLACES = {
    "builder/pins.json": 2,
    "builder/Dockerfile": 2,
    "profiles/dflash7.yaml": 3,
    "profiles/adaptive-mtp.yaml": 3,
    "resolver/input.toml": 2,
    "deploy/.env": 1,
    "deploy/run.sh": 3,
    "docs/QUICKSTART.md": 3,
    "evidence/receipt.json": 1,
}
"""Where the one commit stands, in nine files, and on which line."""


def findings(**changed: str) -> tuple[ExitCode, tuple[Finding, ...]]:
    files = {path: text.encode() for path, text in {**TEXTS, **changed}.items()}
    verdict = verdict_on(MemoryTree(files), CONTRACT)
    return verdict.exit, verdict.findings


def after(file: str, old: str, new: str) -> tuple[ExitCode, tuple[Finding, ...]]:
    assert old in TEXTS[file]
    return findings(**{file: TEXTS[file].replace(old, new, 1)})


def place(finding: Finding) -> str:
    return f"{finding.location.file}:{finding.location.line}" if finding.location else ""


def test_the_example_keeps_its_contract() -> None:
    assert findings() == (ExitCode.YES, ())
    assert sum(text.count(COMMIT) for text in TEXTS.values()) == len(PLACES) == 9
    assert len(small_contract(CONTRACT).invariants) == 9


@pytest.mark.parametrize(("file", "line"), PLACES.items())
def test_one_digit_in_each_of_nine_places(file: str, line: int) -> None:
    code, (finding,) = after(file, COMMIT, COMMIT[:-1] + "0")
    assert (code, finding.checker, place(finding)) == (ExitCode.NO, "pins.agree", f"{file}:{line}")
    assert re.fullmatch(rf"{COMMIT} \(8 of 9 places\)", finding.required or "")
    assert finding.observed == COMMIT[:-1] + "0"
    assert "the pinned commit" in finding.fix


@pytest.mark.parametrize(
    ("file", "old", "new", "checker", "at", "fix"),
    [
        (
            "profiles/dflash7.yaml",
            "    spark_cache_cuda_placement_arena_bytes: 268435456\n",
            "",
            "config.keys-complete",
            6,
            "add spark_cache_cuda_",
        ),
        ("profiles/dflash7.yaml", "spark_cache_cuda_restore_io", "spark_cache_native_io", "config.keys-complete", 12, "rename it to"),
        (
            "profiles/dflash7.yaml",
            "    spark_cache_root",
            "    spark_cache_native_io_workers: 4\n    spark_cache_root",
            "config.keys-complete",
            7,
            "keep",
        ),
        ("profiles/dflash7.yaml", "restore: true", 'restore: "true"', "config.types-strict", 8, "write true or false"),
        ("profiles/adaptive-mtp.yaml", "/cache/adaptive-mtp", "/cache/dflash7", "identity.distinct", 7, "its own cache_root"),
        (
            "profiles/adaptive-mtp.yaml",
            "  - serve\n",
            "  - serve\n  - --prefill-schedule-interval\n  - '8'\n",
            "config.flags-forbidden",
            15,
            "remove",
        ),
        ("docs/QUICKSTART.md", "tools/run start --execute\n", "", "docs.commands", 6, "show the command start"),
        ("docs/wire.json", '"u32"', '"u64"', "compat.fields-unchanged", 3, "new baseline"),
        ("docs/wire.json", '"draft"]', '"drafts"]', "compat.fields-unchanged", 2, "new baseline"),
    ],
)
def test_one_edit_is_one_finding(file: str, old: str, new: str, checker: str, at: int, fix: str) -> None:
    code, (finding,) = after(file, old, new)
    assert (code, finding.checker, place(finding)) == (ExitCode.NO, checker, f"{file}:{at}")
    assert fix in finding.fix


def test_a_key_that_stands_twice_is_told_once_however_many_rules_read_the_file() -> None:
    code, (finding,) = after("profiles/dflash7.yaml", "    spark_cache_root", "    spark_cache_cuda_restore: false\n    spark_cache_root")
    assert (code, place(finding)) == (ExitCode.INVALID, "profiles/dflash7.yaml:9")


SIGNS = st.text(alphabet="0af:{}[]\"'\n -$#=\\", max_size=3)


@given(st.sampled_from(sorted(TEXTS)), st.integers(0, 10_000), st.integers(0, 6), SIGNS)
def test_no_edit_crashes_the_evaluator(file: str, start: int, length: int, put: str) -> None:
    text = TEXTS[file]
    begin = start % len(text)
    code, found = findings(**{file: text[:begin] + put + text[begin + length :]})
    assert (code is ExitCode.YES) == (not [finding for finding in found if finding.severity == "block"])


@given(st.sampled_from(sorted(PLACES)), st.integers(0, 39), st.sampled_from("0123456789abcdef"))
def test_each_edit_of_the_pinned_value_is_found(file: str, index: int, digit: str) -> None:
    changed = COMMIT[:index] + digit + COMMIT[index + 1 :]
    if changed != COMMIT:
        _, found = after(file, COMMIT, changed)
        assert [place(finding) for finding in found] == [f"{file}:{PLACES[file]}"]
