"""The units of a restore: so many readers, so many bytes in memory, and so many whole objects in one slab.

A slab is what a staging slot holds: one copy to the device, one launch. A large object is a slab of its own. Small ones share it, because
a hand-over between threads, a copy and a launch cost the same whatever they move.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import UsageError
from countermark.cuda_restore.manifest import ObjectDescriptor
from countermark.cuda_restore.reader import read_object
from countermark.cuda_restore.store import Folder

READERS: Final = 4
RETAINED_BYTES: Final = 256 * 1024 * 1024
SLAB_BYTES_MAX: Final = 16 * 1024 * 1024
"""Objects share a slab up to here; more saves nothing that can be measured, and makes the last slab longer to wait for."""

SLABS_MIN: Final = 32
"""Objects share a slab only where at least so many remain, or readers and device would wait for each other."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """At most `readers` objects are read at once, and host slots hold at most `retained_bytes` of objects."""

    readers: int = READERS
    retained_bytes: int = RETAINED_BYTES

    def __post_init__(self) -> None:
        if self.readers < 1 or self.retained_bytes < 1:
            raise UsageError(Code.BAD_NUMBER, f"{self.readers} readers and {self.retained_bytes} bytes", fix="allow at least one of each")

    def slots(self, slab_bytes: int, slabs: int) -> int:
        """How many slots of `slab_bytes` to allocate: two a reader, so that one is placed while one is read, where memory allows."""
        if slab_bytes > self.retained_bytes:
            message = f"an object has {slab_bytes} bytes, and it is held whole until it is authenticated; {self.retained_bytes} are allowed"
            raise UsageError(Code.TOO_LARGE, message, fix="allow the bytes of one object, or publish with smaller objects")
        return min(self.retained_bytes // slab_bytes, 2 * self.readers, slabs)


DEFAULT_BOUNDS: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Slab:
    """Consecutive objects of a stream, number `index` of its slabs; placed together, once all of them are authenticated."""

    index: int
    objects: tuple[ObjectDescriptor, ...]

    @property
    def start(self) -> int:
        """The stream offset of the first byte."""
        return self.objects[0].start

    @property
    def end(self) -> int:
        """The stream offset behind the last byte."""
        return self.objects[-1].end

    @property
    def size_bytes(self) -> int:
        """The bytes of all objects."""
        return self.end - self.start


def slabs_of(objects: Sequence[ObjectDescriptor], bounds: Bounds) -> tuple[Slab, ...]:
    """Every object of a manifest, in order, in as few slabs as the constants above and two slots a reader allow."""
    room = min(SLAB_BYTES_MAX, bounds.retained_bytes // (2 * bounds.readers), objects[-1].end // SLABS_MIN)
    together = max(room // objects[0].size_bytes, 1)  # all objects but the last have one size
    return tuple(Slab(index, tuple(objects[first : first + together])) for index, first in enumerate(range(0, len(objects), together)))


def slab_bytes_max(slabs: Sequence[Slab]) -> int:
    """The bytes of the largest slab, which a slot must have."""
    return max(slab.size_bytes for slab in slabs)


def read_slab(chunks: Folder, slab: Slab, into: memoryview) -> None:
    """Read the objects of a slab to the front of `into`, and authenticate each. On an `InputError` the bytes must not be used."""
    for descriptor in slab.objects:
        read_object(chunks, descriptor, into[descriptor.start - slab.start : descriptor.end - slab.start])
