"""For names that nobody knows: the one that was probably meant."""

import difflib
from collections.abc import Iterable


def meant(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, to be a fix; empty where no known name is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{near[0]}'?" if near else ""
