"""What goes from one process to another in great numbers."""

from typing import Any, ClassVar


class Travelling:
    """A dataclass with slots, pickled as a call of its constructor: what `dataclasses` does for slots takes longer."""

    __slots__: ClassVar[tuple[str, ...]] = ()

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """The class, and its fields in their order."""
        return type(self), tuple(getattr(self, name) for name in self.__slots__)
