"""The checks of the verifier, each disabled in turn.

A check is a `raise`, a finding that is put on record, a condition of a list of conditions, or a no that is returned. A mutant is a
module of which one such place was made to do nothing; the code of the function it stands in is exchanged in the running program, so
that everybody who imported the function meets the mutant.
"""

import ast
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_ROOM = "countermark.ledger."
CHECKED = {
    "audit": None,
    "audit_entries": None,
    "audit_keys": None,
    "audit_pass": None,
    "audit_rows": None,
    "audit_schema": None,
    "audit_signatures": None,
    "audit_tree": None,
    "audit_witnesses": None,
    "anchor": {"Anchor.decode", "Anchor.check_note", "check_growth"},
    "backup": {"Manifest.read", "Manifest.check_file", "Manifest.check_note", "_describe"},
    "cosignature": None,
    "entry_bundle": None,
    "export": None,
    "export_audit": None,
    "export_entries": None,
    "export_files": {"read_export_file", "ExportFolder.put"},
    "freshness": None,
    "genesis": {"Genesis.parse"},
    "key_event": {"KeyEvent.parse", "_text", "_count", "_decode"},
    "key_history": {f"KeyHistory.{name}" for name in ("standing", "judge", "may_tell", "_take", "_why", "_apply")} | {"telling"},
    "leaf": None,
    "merkle": {"check_inclusion", "check_consistency", "_check_trivial", "_check_sizes"},
    "note": None,
    "proof_file": None,
    "read": None,
    "restore": None,
    "signed_note": None,
    "tiles": None,
    "witness": None,
    "witness_policy": None,
}
"""The modules whose checks are disabled; of some, the functions that verify."""

EQUIVALENT = {("key_history", "KeyHistory.judge", "result if standing is Code.OK else replace(result, code=standing)")}
"""No checks, though they look like one: this only spares a copy."""

_ANSWERING = {"key_history"}
"""Modules that refuse by what they return: there a `return` that ends a function early is a check, and each half of a choice."""

_RECORDING = {"add", "extend", "error", "_see", "_report"}


@dataclass(frozen=True)
class Mutant:
    """One check that does nothing: where it stands, and the code of its function without it."""

    module: str
    function: str
    line: int
    text: str
    code: CodeType

    @property
    def whole(self) -> CodeType:
        """The code of the function as it is."""
        return _function(import_module(_ROOM + self.module), self.function).__code__

    def __str__(self) -> str:
        return f"{self.module}.{self.function}:{self.line} {self.text}"

    @contextmanager
    def live(self) -> Iterator[None]:
        """While this lasts, the check does nothing, for everybody."""
        function = _function(import_module(_ROOM + self.module), self.function)
        whole = self.whole
        function.__code__ = self.code
        try:
            yield
        finally:
            function.__code__ = whole


def mutants() -> Iterator[Mutant]:
    """Every check of the verifier, disabled."""
    for name, functions in CHECKED.items():
        module = import_module(_ROOM + name)
        source = Path(str(module.__file__)).read_text()
        tree = ast.parse(source)
        for number, (qualname, node) in enumerate(list(_places(tree, name in _ANSWERING))):
            equivalent = (name, qualname, ast.unparse(node)) in EQUIVALENT
            if not equivalent and (functions is None or qualname in functions):
                mutated = copy.deepcopy(tree)
                _disable(list(_places(mutated, name in _ANSWERING))[number][1])
                code = _codes(compile(ast.fix_missing_locations(mutated), str(module.__file__), "exec"))[qualname]
                line = ast.unparse(node)[:100].splitlines()[0]
                yield Mutant(name, qualname, node.lineno, line, code)


def _places(tree: ast.AST, answering: bool, inside: str = "") -> Iterator[tuple[str, Any]]:
    """The checks below a node in the order of the text, each with the qualified name of its function."""
    guarded = answering and isinstance(tree, ast.If | ast.ExceptHandler)
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _places(child, answering, f"{inside}.{child.name}".lstrip("."))
        else:
            if inside and (_is_check(child) or _is_no(tree, child) or (guarded and isinstance(child, ast.Return))):
                yield inside, child
            elif inside and answering and isinstance(child, ast.Return) and isinstance(child.value, ast.IfExp):
                yield inside, child.value
            yield from _places(child, answering, inside)


def _is_check(node: ast.AST) -> bool:
    match node:
        case ast.Raise(exc=ast.expr()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=name))) if name in _RECORDING:
            return "findings" in ast.unparse(receiver) or name in ("_see", "_report")
        case ast.Tuple(elts=[ast.Compare() | ast.BoolOp() | ast.Constant(value=str()), _]):
            return True
    return False


def _is_no(parent: ast.AST, node: ast.AST) -> bool:
    """Whether this answers no because something could not be read or verified."""
    return isinstance(parent, ast.ExceptHandler) and isinstance(node, ast.Return) and ast.unparse(node) == "return False"


def _disable(node: Any) -> None:
    """Make a check do nothing: an exception that is not raised, a finding not recorded, a condition that always holds, a yes for a no."""
    match node:
        case ast.Tuple(elts=[ast.Constant() as first, _]):
            node.elts = [first, _itself(first)]
        case ast.Tuple():
            node.elts = [ast.Constant(value=True), node.elts[1]]
        case ast.Return(value=ast.Constant(value=False)):
            node.value = ast.Constant(value=True)
        case ast.IfExp():
            node.test = ast.Constant(value=False)
        case _:
            node.__class__ = ast.Pass
            node.__dict__ = {"lineno": node.lineno, "col_offset": node.col_offset}


def _itself(name: ast.Constant) -> ast.expr:
    """What a column is compared with, made the column itself."""
    return ast.parse(f"getattr(stored, {name.value!r})", mode="eval").body


def _codes(module: CodeType) -> dict[str, CodeType]:
    found = {}
    waiting = [constant for constant in module.co_consts if isinstance(constant, CodeType)]
    while waiting:
        code = waiting.pop()
        found[code.co_qualname] = code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found


def _function(module: ModuleType, qualname: str) -> FunctionType:
    """The function of a name, taken out of what decorates it."""
    found: Any = module
    for part in qualname.split("."):
        found = vars(found)[part]
    for attribute in ("__func__", "fget", "__wrapped__"):
        found = getattr(found, attribute, None) or found
    assert isinstance(found, FunctionType), qualname
    return found
