"""The leaf's bytes: one fixed example, the round trip, and everything that must be refused."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.keys import Algorithm
from countermark.ledger.leaf import LEAF_VERSION, MAX_LEAF_BYTES, NO_HASH, EntryKind, Leaf, LeafSignature
from countermark.ledger.merkle import leaf_hash

FIRST = LeafSignature(Algorithm.ED25519, b"\x11" * 32, b"\xaa" * 4)
SECOND = LeafSignature(Algorithm.ECDSA_P256_SHA256, b"\x22" * 32, b"\xbb" * 3)
LEAF = Leaf(
    kind=EntryKind.POLICY,
    notice=True,
    admitted_ms=0x0102030405060708,
    prev_notice=b"\x33" * 32,
    payload_type="a/b",
    payload_len=0x0A0B,
    payload_sha256=b"\x44" * 32,
    bundle_sha256=NO_HASH,
    signatures=(FIRST, SECOND),
)
# Written by hand from the design page, so that a change of the format cannot pass unseen.
LEAF_BYTES = bytes.fromhex(
    "01 03 01"
    + "0102030405060708"
    + "33" * 32
    + "03 612f62"
    + "0000000000000a0b"
    + "44" * 32
    + "00" * 32
    + "02"
    + ("01" + "11" * 32 + "0004 aaaaaaaa")
    + ("02" + "22" * 32 + "0003 bbbbbb")
)
KIND_AT, FLAGS_AT, ADMITTED_AT, TYPE_AT, PAYLOAD_LEN_AT, COUNT_AT, SIGNATURES_AT = 1, 2, 3, 43, 47, 119, 120

hashes = st.binary(min_size=32, max_size=32)
integers = st.integers(0, 2**63 - 1)
signatures = st.builds(LeafSignature, st.sampled_from(Algorithm), hashes, st.binary(min_size=1, max_size=8))
leaves = st.builds(
    Leaf,
    kind=st.sampled_from(EntryKind),
    notice=st.booleans(),
    admitted_ms=integers,
    prev_notice=hashes,
    payload_type=st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    payload_len=integers,
    payload_sha256=hashes,
    bundle_sha256=hashes,
    signatures=st.lists(signatures, min_size=1, max_size=4, unique=True).map(lambda made: tuple(sorted(made))),
)


def refusal(data: bytes) -> Code | None:
    """The code with which `data` is refused; None when it is a leaf, which must then be the one with these bytes."""
    try:
        leaf = Leaf.decode(data)
    except InputError as error:
        return error.code
    assert leaf.encode() == data
    return None


def patched(at: int, new: bytes) -> bytes:
    return LEAF_BYTES[:at] + new + LEAF_BYTES[at + len(new) :]


def with_signatures(*parts: bytes, count: int | None = None) -> bytes:
    return LEAF_BYTES[:COUNT_AT] + bytes([len(parts) if count is None else count]) + b"".join(parts)


def test_the_bytes_of_a_leaf() -> None:
    assert LEAF.encode() == LEAF_BYTES
    assert Leaf.decode(LEAF_BYTES) == LEAF
    assert leaf_hash(LEAF.encode()).hex() == sha256(b"\x00" + LEAF_BYTES).hexdigest()


def test_the_numbers_of_kinds_are_for_ever() -> None:
    assert {kind.name: int(kind) for kind in EntryKind} == {
        "ATTESTATION": 1,
        "KEY_EVENT": 2,
        "POLICY": 3,
        "WITHHOLD": 4,
        "IMPORT_MARKER": 5,
        "INCARNATION": 6,
    }


def test_the_numbers_of_algorithms_are_for_ever() -> None:
    assert {algorithm.name: int(algorithm) for algorithm in Algorithm} == {
        "ED25519": 1,
        "ECDSA_P256_SHA256": 2,
        "ECDSA_P384_SHA384": 3,
        "ML_DSA_65": 4,
        "RSA_PKCS1V15_SHA256": 16,
        "RSA_PSS_SHA256": 17,
    }


@given(leaves)
def test_round_trip(leaf: Leaf) -> None:
    data = leaf.encode()
    assert Leaf.decode(data) == leaf
    assert type(Leaf.decode(data).kind) is EntryKind
    assert len(data) <= MAX_LEAF_BYTES


@given(st.binary(max_size=400))
@example(b"")
@example(bytes([LEAF_VERSION]))
def test_arbitrary_bytes_are_a_leaf_or_refused(data: bytes) -> None:
    assert refusal(data) in (None, Code.MALFORMED, Code.UNSUPPORTED)


@given(leaves, st.data())
def test_altered_bytes_are_another_leaf_or_refused(leaf: Leaf, data: st.DataObject) -> None:
    """Tamper case 62: no two byte strings are the same leaf."""
    good = leaf.encode()
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + data.draw(st.binary(max_size=4)) + good[at + data.draw(st.integers(0, 4)) :]
    if bad != good and refusal(bad) is None:
        assert Leaf.decode(bad) != leaf


def test_every_flipped_bit_is_another_leaf_or_refused() -> None:
    for bit in range(8 * len(LEAF_BYTES)):
        bad = (int.from_bytes(LEAF_BYTES) ^ 1 << bit).to_bytes(len(LEAF_BYTES))
        assert refusal(bad) is not None or Leaf.decode(bad) != LEAF


def test_every_truncation_is_malformed() -> None:
    assert {refusal(LEAF_BYTES[:length]) for length in range(len(LEAF_BYTES))} == {Code.MALFORMED}


@pytest.mark.parametrize(
    "data",
    [
        patched(0, b"\x00"),
        patched(0, b"\x02"),
        patched(0, b"\xff"),
        b"\x02",
        patched(KIND_AT, b"\x00"),
        patched(KIND_AT, b"\x07"),
        patched(FLAGS_AT, b"\x02"),
        patched(FLAGS_AT, b"\x81"),
        patched(SIGNATURES_AT, b"\x00"),
        patched(SIGNATURES_AT, b"\x05"),
        patched(SIGNATURES_AT, b"\xff"),
    ],
)
def test_what_is_not_known_is_unsupported(data: bytes) -> None:
    """Tamper case 61: an unknown version, kind, flag or algorithm is refused and not skipped."""
    assert refusal(data) is Code.UNSUPPORTED


ONE, TWO = FIRST.encode(), SECOND.encode()


@pytest.mark.parametrize(
    "data",
    [
        LEAF_BYTES + b"\x00",
        with_signatures(TWO, ONE),
        with_signatures(ONE, ONE),
        with_signatures(ONE, replace(FIRST, signature=b"\xaa" * 3).encode()),
        with_signatures(),
        with_signatures(ONE, TWO, count=1),
        with_signatures(ONE, TWO, count=3),
        with_signatures(*(replace(FIRST, signature=bytes([n])).encode() for n in range(17))),
        with_signatures(ONE[:-6] + b"\x00\x00"),
        patched(TYPE_AT, b"\x04"),
        patched(TYPE_AT, b"\x00"),
        patched(TYPE_AT + 1, b"\xff"),
        patched(TYPE_AT + 1, b"\xed\xa0\x80"),
        patched(ADMITTED_AT, b"\x80"),
        patched(PAYLOAD_LEN_AT, b"\xff" * 8),
        LEAF_BYTES[: TYPE_AT - 1],
        bytes([1]) + bytes(MAX_LEAF_BYTES),
    ],
    ids=[
        "trailing byte",
        "unsorted",
        "doubled signature",
        "longer signature first",
        "no signature",
        "count too low",
        "count too high",
        "17 signatures",
        "empty signature",
        "type runs into the next field",
        "empty type",
        "type is no UTF-8",
        "type is a surrogate",
        "time beyond 2**63",
        "length beyond 2**63",
        "cut off",
        "too long",
    ],
)
def test_what_is_not_canonical_is_malformed(data: bytes) -> None:
    """Tamper case 62."""
    assert refusal(data) is Code.MALFORMED


@pytest.mark.parametrize(
    "change",
    [
        {"admitted_ms": -1},
        {"admitted_ms": 2**63},
        {"payload_len": -1},
        {"prev_notice": b""},
        {"payload_sha256": b"\x00" * 31},
        {"bundle_sha256": b"\x00" * 33},
        {"payload_type": ""},
        {"payload_type": "x" * 256},
        {"payload_type": "é" * 128},
        {"payload_type": "\ud800"},
        {"signatures": ()},
        {"signatures": (SECOND, FIRST)},
        {"signatures": (FIRST, FIRST)},
        {"signatures": tuple(replace(FIRST, signature=bytes([n])) for n in range(17))},
    ],
)
def test_a_leaf_that_cannot_be_written_cannot_be_made(change: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        replace(LEAF, **change)  # type: ignore[arg-type]  # one field at a time, of the type that the case is about
    assert caught.value.code is Code.MALFORMED
    assert caught.value.fix


def test_an_unknown_kind_or_algorithm_cannot_be_made() -> None:
    with pytest.raises(InputError) as kind:
        replace(LEAF, kind=7)  # type: ignore[arg-type]  # what a caller without type checks might do
    with pytest.raises(InputError) as algorithm:
        LeafSignature(5, bytes(32), b"x")
    assert kind.value.code is algorithm.value.code is Code.UNSUPPORTED


@pytest.mark.parametrize(("key", "signature"), [(b"", b"x"), (bytes(31), b"x"), (bytes(32), b""), (bytes(32), bytes(65_536))])
def test_a_signature_that_cannot_be_written_cannot_be_made(key: bytes, signature: bytes) -> None:
    with pytest.raises(InputError) as caught:
        LeafSignature(1, key, signature)
    assert caught.value.code is Code.MALFORMED


def sized(total: int) -> tuple[LeafSignature, ...]:
    """Two signatures that make LEAF without its own `total` bytes long."""
    rest = total - COUNT_AT - 1 - 2 * 35
    return (LeafSignature(1, bytes(32), bytes(rest // 2)), LeafSignature(1, b"\x01" * 32, bytes(rest - rest // 2)))


def test_the_longest_leaf() -> None:
    longest = replace(LEAF, signatures=sized(MAX_LEAF_BYTES))
    assert len(longest.encode()) == MAX_LEAF_BYTES
    assert Leaf.decode(longest.encode()) == longest
    with pytest.raises(InputError) as caught:
        replace(LEAF, signatures=sized(MAX_LEAF_BYTES + 1))
    assert caught.value.code is Code.MALFORMED


def expected_dedup(kind: int, payload_type: bytes, digest: bytes, signers: Sequence[bytes]) -> bytes:
    return sha256(b"countermark-dedup-v1\n" + bytes([kind, len(payload_type)]) + payload_type + digest + b"".join(signers)).digest()


def test_dedup_is_over_the_statement_and_its_signers() -> None:
    signers = [b"\x01" + b"\x11" * 32, b"\x02" + b"\x22" * 32]
    assert LEAF.dedup == expected_dedup(3, b"a/b", b"\x44" * 32, signers)
    resigned = replace(SECOND, signature=b"\xcc" * 70)
    same = (
        replace(LEAF, admitted_ms=1, prev_notice=NO_HASH, notice=False, bundle_sha256=b"\x55" * 32),
        replace(LEAF, signatures=(FIRST, resigned)),
        replace(LEAF, signatures=(FIRST, SECOND, resigned)),
    )
    assert {leaf.dedup for leaf in same} == {LEAF.dedup}
    others = (
        replace(LEAF, kind=EntryKind.ATTESTATION),
        replace(LEAF, payload_type="a/c"),
        replace(LEAF, payload_sha256=b"\x45" * 32),
        replace(LEAF, signatures=(FIRST,)),
        replace(LEAF, signatures=(replace(FIRST, key_sha256=b"\x12" * 32), SECOND)),
        replace(LEAF, signatures=(FIRST, replace(SECOND, algorithm=Algorithm.ECDSA_P384_SHA384))),
    )
    assert len({leaf.dedup for leaf in (LEAF, *others)}) == 1 + len(others)


def test_a_long_payload_type_cannot_imitate_the_fields_after_it() -> None:
    digest, key = b"d" * 32, b"k" * 32
    two = replace(LEAF, payload_sha256=digest, signatures=(FIRST, replace(FIRST, key_sha256=key)))
    one = replace(
        LEAF,
        payload_type="a/b" + (digest + bytes([1])).decode(),
        payload_sha256=b"\x11" * 32,
        signatures=(replace(FIRST, key_sha256=key),),
    )
    assert one.dedup != two.dedup
