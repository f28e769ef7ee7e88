"""A quick yes for a value that conforms to its JSON Schema (Draft 2020-12).

Nearly every value that comes here conforms, and jsonschema takes a hundred times as long to say so, besides the tenth of a second that it
takes to import. The validator here says yes or "ask jsonschema", which decides about the rest and says what is wrong. So this one
need not be right about what it refuses; that it accepts nothing that jsonschema refuses is held by a property test.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from jsonschema_rs import Draft202012Validator, Registry

_KEPT: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are data, not schemas."""


class Conformance:
    """One schema, compiled; `others` are the schemas that it may refer to, by their ids."""

    def __init__(self, schema: Mapping[str, Any], others: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> None:
        registry: Any = Registry([(name, _whole(other)) for name, other in others])
        self._validator = Draft202012Validator(_whole(schema), validate_formats=True, registry=registry)

    def holds(self, value: object) -> bool:
        """Whether the value conforms for certain; False says nothing."""
        try:
            return self._validator.is_valid(value)
        except ValueError:  # what Python can hold and JSON cannot: a lone surrogate, a name that is no text, unbounded depth
            return False


def _whole(node: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    """The schema with patterns that match the whole text, as `schema` reads them."""
    if isinstance(node, list):
        return [_whole(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    return {
        name: f"^(?:{value})$" if name == "pattern" and isinstance(value, str) else value if name in _KEPT else _whole(value)
        for name, value in node.items()
    }
