"""`docs/checkers.md` is written from the registry; set `COUNTERMARK_WRITE_DOCS` to write it anew."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Checker
from countermark.contracts.checkers.key_catalog import shipped_catalogs
from countermark.contracts.checkers.records import RecordChecker
from countermark.contracts.checkers.registry import CHECKERS
from countermark.cuda_restore import trace_rules

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "checkers.md"
CATALOGUE = ROOT.parent / "shared" / "reference" / "contract-catalogue.md"

_TRACE = ("parse-after-auth", "batch-authenticated", "bounds", "fence", "placement-exact", "counters", "abort-safe", "terminal-completion")
ELSEWHERE: Sequence[tuple[str, str, Sequence[str]]] = (
    (
        "RE-01 to RE-06, RE-08, RE-14",
        "every restore, on its own trace; the receipt's controls, from the trace's digest",
        [f"restore.{rule}" for rule in _TRACE],
    ),
    ("GC-36, GC-37", "every verification of a statement, by the trust policy", [Code.THRESHOLD, Code.SIGNER_UNTRUSTED]),
    ("GC-38", "the gate", [Code.SEPARATION]),
    ("GC-39", "`verify attestation`; the gate looks up no other subject", [Code.SUBJECT_MISMATCH, Code.SUBJECT_CONTRADICTION]),
    ("GC-41, GC-42", "the gate", [Code.EVIDENCE_EXPIRED, Code.IMAGE_REJECTED, Code.CAP_REJECTED]),
    ("GC-44", "the gate and `verify ledger`", [Code.LEDGER_TAMPERED, Code.TAMPERED, Code.ROLLBACK]),
)
"""Rules of the catalogue that are no checkers, since a contract cannot leave them out."""

Schema = Mapping[str, JsonValue]


def checkers_page() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Checkers"
    yield ""
    yield "Written by `tests/contracts/test_checkers_page.py` from the registry; do not edit. An invariant of a contract names one of"
    yield "these under `check`, and its parameters under `with`. Unknown names and misspelt parameters are exit 3. A *pointer* is RFC 6901"
    yield "with `*` for any element; a parameter that may be a pointer or a fact is a pointer when it is empty or begins with `/`."
    yield ""
    yield "Checkers marked *records* also take `file`, a path or glob, and `each`?, the blocks of a record that every other pointer counts"
    yield "from. What a parameter points at and a block has not is `not-run`, never a pass; a list without elements is `not-applicable`."
    yield ""
    yield f"Key catalogues that are shipped: {', '.join(f'`{name}`' for name in shipped_catalogs())}."
    yield ""
    yield "| checker | rules | says | parameters |"
    yield "|---|---|---|---|"
    for name in sorted(CHECKERS):
        checker = CHECKERS[name]
        rules = ", ".join(checker.ids) or "–"
        yield f"| `{name}` | {rules} | {_cell(checker.rule)} | {'<br>'.join(_parameters(checker)) or 'none'} |"
    yield ""
    yield "## Rules that no contract names"
    yield ""
    yield "They are held wherever they apply, whether or not anybody asks for them."
    yield ""
    yield "| rules | held by | how a breach is told |"
    yield "|---|---|---|"
    for rules, place, told in ELSEWHERE:
        yield f"| {rules} | {place} | {', '.join(f'`{name}`' for name in told)} |"


def _parameters(checker: Checker) -> Iterator[str]:
    required = checker.parameters.get("required")
    of_records = isinstance(checker, RecordChecker)
    if of_records:
        yield "*records*"
    for name, schema in _properties(checker.parameters).items():
        if of_records and name in ("file", "each"):
            continue
        optional = "" if isinstance(required, list) and name in required else "?"
        inner = ", ".join(f"`{field}`" for field in _inner(schema))
        yield f"`{name}`{optional} {_cell(str(schema.get('description', '')))}{f' ({inner})' if inner else ''}"


def _inner(schema: Schema) -> Mapping[str, Schema]:
    """The fields of an object, or of the objects of a list."""
    items = schema.get("items")
    return _properties(items if isinstance(items, dict) else schema)


def _properties(schema: Schema) -> Mapping[str, Schema]:
    found = schema.get("properties")
    return {name: value for name, value in found.items() if isinstance(value, dict)} if isinstance(found, dict) else {}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_page_is_what_the_registry_says() -> None:
    page = checkers_page()
    if "COUNTERMARK_WRITE_DOCS" in os.environ:
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def test_the_rules_of_the_trace_are_those_of_the_engine() -> None:
    source = Path(trace_rules.__file__).read_text(encoding="utf-8")
    assert [rule for rule in _TRACE if f'"restore.{rule}"' not in source] == []


@pytest.mark.skipif(not CATALOGUE.exists(), reason="../shared reference, the catalogue of contracts, is not beside this checkout")
def test_every_checker_has_its_name_and_ids_from_the_catalogue() -> None:
    text = CATALOGUE.read_text(encoding="utf-8")
    numbered = dict(re.findall(r"^\| ([A-Z]{2}-\d+) \| `([a-z.-]+)`", text, re.MULTILINE))
    unnumbered = set(re.findall(r"^\| `([a-z.-]+)` \| ", text, re.MULTILINE))
    assert set(CHECKERS) <= {*numbered.values(), *unnumbered}
    for name, checker in CHECKERS.items():
        assert set(checker.ids) == {rule for rule, named in numbered.items() if named == name}, name
