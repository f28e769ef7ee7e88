"""Where two values differ: the smallest parts that do, by their pointers."""

from collections.abc import Iterator
from dataclasses import dataclass

from countermark.attestations.located import JsonValue, pointer_join, pointer_parts
from countermark.contracts.pins import same, shown


@dataclass(frozen=True, slots=True)
class Difference:
    """One part that differs. `before` and `after` are in words; a part that only one side has is `nothing` on the other."""

    pointer: str
    before: str
    after: str


def differences(before: JsonValue, after: JsonValue, pointer: str = "") -> Iterator[Difference]:
    """The parts of two values that differ; of lists with different lengths, the list as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            below = pointer_join(pointer, key)
            if key not in after:
                yield Difference(below, shown(before[key]), "nothing")
            elif key not in before:
                yield Difference(below, "nothing", shown(after[key]))
            else:
                yield from differences(before[key], after[key], below)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, pointer_join(pointer, index))
    elif not same(before, after):
        yield Difference(pointer, shown(before), shown(after))


def covers(pattern: str, pointer: str) -> bool:
    """Whether a pointer is the one of a pattern, in which `*` is any element, or lies below it."""
    wanted, parts = pointer_parts(pattern), pointer_parts(pointer)
    return len(parts) >= len(wanted) and all(want in ("*", part) for want, part in zip(wanted, parts, strict=False))
