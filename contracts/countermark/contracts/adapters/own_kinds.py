"""Documents of our own kinds among evidence: valid by their schema as a whole, or refused with every mistake at its place."""

from collections.abc import Mapping

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, InvalidDocumentError
from countermark.attestations.located import JsonValue, as_object, walk
from countermark.attestations.schema import problems
from countermark.contracts.adapters.fields import Field


def checked(kind: str, root: Field) -> Mapping[str, JsonValue]:
    """The object as its schema has it; `InvalidDocumentError` otherwise. JSON Schema takes 1.0 for an integer, so floats are refused."""
    at = root.document.at
    wrong = [
        InputError(Code.BAD_NUMBER, f"{node} is not an integer", at=at(pointer), fix="write an integer, or a quoted decimal")
        for pointer, node in walk(root.value)
        if isinstance(node, float)
    ]
    wrong += [InputError(Code.SCHEMA_INVALID, item.message, at=at(item.pointer), fix=item.fix) for item in problems(kind, root.value)]
    if wrong:
        raise InvalidDocumentError(wrong)
    return as_object(root.value)
