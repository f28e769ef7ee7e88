"""The forms of parameters, as pieces of JSON Schema: each has the sentence that says what it is for."""

from collections.abc import Mapping

from countermark.attestations.located import JsonValue

Schema = dict[str, JsonValue]


def text(description: str, *, pattern: str | None = None) -> Schema:
    """A text that is not empty."""
    return {"type": "string", "description": description, **({"pattern": pattern} if pattern else {"minLength": 1})}


def pointer(description: str) -> Schema:
    """An RFC 6901 pointer; `*` stands for any element."""
    return {"type": "string", "pattern": "^(?:/.*)?$", "description": description}


def whole(description: str, *, minimum: int | None = None, maximum: int | None = None) -> Schema:
    """An integer within limits."""
    limits: Schema = {name: limit for name, limit in (("minimum", minimum), ("maximum", maximum)) if limit is not None}
    return {"type": "integer", "description": description, **limits}


def choice(description: str, *words: str) -> Schema:
    """One of some words."""
    return {"enum": list(words), "description": description}


def flag(description: str) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": description}


def many(description: str, item: Schema, *, minimum: int = 1) -> Schema:
    """A list of things of one form."""
    return {"type": "array", "items": item, "minItems": minimum, "description": description}


def table(description: str, value: Schema) -> Schema:
    """Names with values of one form."""
    return {"type": "object", "additionalProperties": value, "minProperties": 1, "description": description}


def either(description: str, *forms: Schema) -> Schema:
    """One of several forms."""
    return {"anyOf": list(forms), "description": description}


def group(description: str, *required: str, **properties: Schema) -> Schema:
    """An object with these fields."""
    fields: Schema = dict(properties)
    needed: list[JsonValue] = list(required)
    return {"type": "object", "additionalProperties": False, "required": needed, "properties": fields, "description": description}


def fields(*required: str, **properties: Schema) -> Mapping[str, JsonValue]:
    """The parameters of a checker."""
    return group("the parameters", *required, **properties)


def pointers(description: str) -> Schema:
    """One pointer, or a list of them."""
    return either(description, pointer("a pointer"), many("several pointers", pointer("a pointer")))


def number_or_pointer(description: str) -> Schema:
    """An integer, or where one stands."""
    return either(description, whole("the number itself"), pointer("where it stands"))


def operand(description: str) -> Schema:
    """An integer, where a value stands, or the name of a fact."""
    return either(description, whole("the number itself"), text("a pointer, or the name of a fact"))


def profiles() -> Schema:
    """The names of profiles."""
    return many("names of profiles; without it, all of them", text("a profile"))


def texts(value: JsonValue) -> list[str]:
    """A parameter that is one text or several, as a list; none when it is left out."""
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return [value] if isinstance(value, str) else []


def objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    """A parameter that is a list of objects; none when it is left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
