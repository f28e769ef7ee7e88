"""Hypothesis strategies: random layouts and contexts, cut into objects of any size."""

from hypothesis import strategies as st
from snapshots import identity_of

from countermark.attestations.digests import Digest, DigestKind
from countermark.cuda_restore.geometry import Geometry, Group, Layer, Layout, ReusePolicy, default_block_counts
from countermark.cuda_restore.manifest import ObjectDescriptor

_POLICIES = st.sampled_from([(ReusePolicy.FULL, None), (ReusePolicy.SLIDING, 256), (ReusePolicy.RECURRENT_ALIGN, None)])


@st.composite
def groups(draw: st.DrawFn, number: int) -> Group:
    """One to three layers with pages of 1 to 400 bytes, aligned ones among them."""
    sizes = draw(st.lists(st.one_of(st.integers(1, 400), st.integers(1, 25).map(lambda n: 16 * n)), min_size=1, max_size=3))
    layers = tuple(Layer(f"{number}.{layer}", "uint8", (size,), size) for layer, size in enumerate(sizes))
    policy, window = draw(_POLICIES)
    return Group(draw(st.sampled_from([64, 128, 256, 512])), layers, policy, window)


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    """A context of 256 to 2,048 tokens over one to three groups."""
    layout = Layout(tuple(draw(groups(number)) for number in range(draw(st.integers(1, 3)))))
    tokens = 256 * draw(st.integers(1, 8))
    return Geometry(identity_of(layout), tokens, layout, default_block_counts(layout, tokens))


def cut(encoded_bytes: int, object_bytes: int) -> tuple[ObjectDescriptor, ...]:
    """Descriptors of the objects of a stream; their digests are of nothing."""
    starts = range(0, encoded_bytes, object_bytes)
    nothing = Digest.of(DigestKind.OBJECT, b"")
    return tuple(ObjectDescriptor(number, nothing, start, min(object_bytes, encoded_bytes - start)) for number, start in enumerate(starts))
