"""The checks of the verifier, each disabled in turn.

A check is a `raise`, a finding that is put on record, or a condition of a list of conditions. A mutant is a module of which one such place
was made to do nothing; the code of the function it stands in is exchanged in the running program, so that everybody who imported the
function meets the mutant.
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
    "anchor": {"Anchor.check_note", "check_growth"},
    "note": {"Checkpoint.__post_init__", "Checkpoint.parse", "check_signed"},
    "merkle": {"check_inclusion", "check_consistency", "_check_trivial", "_check_sizes"},
}
"""The modules whose checks are disabled; of some, the functions that verify."""

_RECORDING = {"add", "extend", "error", "_see", "_report"}


@dataclass(frozen=True)
class Mutant:
    """One check that does nothing: where it stands, and the code of its function without it."""

    module: str
    function: str
    line: int
    text: str
    code: CodeType

    def __str__(self) -> str:
        return f"{self.module}.{self.function}:{self.line} {self.text}"

    @contextmanager
    def live(self) -> Iterator[None]:
        """While this lasts, the check does nothing, for everybody."""
        function = _function(import_module(_ROOM + self.module), self.function)
        whole = function.__code__
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
        for number, (qualname, node) in enumerate(list(_places(tree))):
            if functions is None or qualname in functions:
                mutated = copy.deepcopy(tree)
                _disable(list(_places(mutated))[number][1])
                code = _codes(compile(ast.fix_missing_locations(mutated), str(module.__file__), "exec"))[qualname]
                line = ast.unparse(node)[:100].splitlines()[0]
                yield Mutant(name, qualname, node.lineno, line, code)


def _places(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, Any]]:
    """The checks below a node in the order of the text, each with the qualified name of its function."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _places(child, f"{inside}.{child.name}".lstrip("."))
        else:
            if inside and _is_check(child):
                yield inside, child
            yield from _places(child, inside)


def _is_check(node: ast.AST) -> bool:
    match node:
        case ast.Raise(exc=ast.expr()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=name))) if name in _RECORDING:
            return "findings" in ast.unparse(receiver) or name in ("_see", "_report")
        case ast.Tuple(elts=[ast.Compare() | ast.BoolOp() | ast.Constant(value=str()), _]):
            return True
    return False


def _disable(node: Any) -> None:
    """Make a check do nothing: an exception that is not raised, a finding not recorded, a condition that always holds."""
    if isinstance(node, ast.Tuple):
        first = node.elts[0]
        node.elts = [first, _itself(first)] if isinstance(first, ast.Constant) else [ast.Constant(value=True), node.elts[1]]
        return
    kept = ast.Pass()
    node.__class__ = ast.Pass
    node.__dict__ = {"lineno": node.lineno, "col_offset": node.col_offset, **kept.__dict__}


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
