"""Proofs as files: the bytes of the specifications, each alteration, and the two sorts against a real ledger."""

import base64
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_box import Box

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError, InputError
from countermark.ledger.merkle import check_consistency
from countermark.ledger.note import open_checkpoint
from countermark.ledger.proof_file import HEADER, MAX_PROOF_BYTES, GrowthFile, InclusionFile, parse_proof

H1, H2 = (sha256(text).digest() for text in (b"hash1", b"hash2"))
B1, B2 = (base64.b64encode(value).decode() for value in (H1, H2))
EXTRA = base64.b64encode(b"extra information").decode()


@pytest.mark.parametrize(
    ("proof", "text"),
    [
        (InclusionFile(5, (H1, H2), "test checkpoint\n"), f"{HEADER}\nindex 5\n{B1}\n{B2}\n\ntest checkpoint\n"),
        (
            InclusionFile(10, (H1,), "checkpoint data\n", b"extra information"),
            f"{HEADER}\nextra {EXTRA}\nindex 10\n{B1}\n\ncheckpoint data\n",
        ),
        (InclusionFile(0, (), "checkpoint\n"), f"{HEADER}\nindex 0\n\ncheckpoint\n"),
        (GrowthFile(20852014, (H1, H2), "log\n\n\n— x y\n"), f"old 20852014\n{B1}\n{B2}\n\nlog\n\n\n— x y\n"),
        (GrowthFile(0, (), "log\n"), "old 0\n\nlog\n"),
    ],
)
def test_the_bytes_of_the_specifications(proof: InclusionFile | GrowthFile, text: str) -> None:
    """The first three as transparency-dev/formats has them, the others as the example of C2SP tlog-witness."""
    assert proof.encode() == text.encode()
    assert parse_proof(text.encode()) == proof


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "wrong\nindex 0\n\nc\n",
        "c2sp.org/tlog-proof@v2\nindex 0\n\nc\n",
        f"{HEADER}\r\nindex 0\n\nc\n",
        f"{HEADER}\n\n\nc\n",
        f"{HEADER}\nindex 0\n",
        f"{HEADER}\nextra !!\nindex 0\n\nc\n",
        f"{HEADER}\nextra \nindex 0\n\nc\n",
        f"{HEADER}\nextra {EXTRA}\nextra {EXTRA}\nindex 0\n\nc\n",
        f"{HEADER}\nindex 0\nextra {EXTRA}\n\nc\n",
        *(f"{HEADER}\nindex {number}\n\nc\n" for number in ("", "x", "-5", "+5", "05", "5 ", "５", "1_0", "0x5", str(2**63), "9" * 5000)),
        f"{HEADER}\nindex 0\nindex 0\n\nc\n",
        f"{HEADER}\nindex 0\n!!\n\nc\n",
        f"{HEADER}\nindex 0\n{base64.b64encode(bytes(64)).decode()}\n\nc\n",
        f"{HEADER}\nindex 0\n{B1[:-2]}{'B' if B1[-2] != 'B' else 'C'}=\n\nc\n",
        f"{HEADER}\nindex 0\n" + f"{B1}\n" * 64 + "\nc\n",
        f"old 1\n{B1}",
        "old -1\n\nc\n",
        "old 01\n\nc\n",
        "old\n\nc\n",
        "old 1\n" + f"{B1}\n" * 64 + "\nc\n",
    ],
)
def test_other_forms_are_no_proofs(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_proof(text.encode())
    assert caught.value.code is Code.MALFORMED


def test_proofs_are_bounded_and_utf8() -> None:
    for data in (b"old 1\n\n" + b"x" * MAX_PROOF_BYTES, b"old 1\n\n\xff"):
        with pytest.raises(InputError) as caught:
            parse_proof(data)
        assert caught.value.code is Code.MALFORMED


def inclusion(box: Box, index: int) -> bytes:
    with box.reader() as reader:
        proof = reader.prove(index)
        return InclusionFile(index, proof.hashes, proof.note, proof.leaf).encode()


def holds(box: Box, data: bytes) -> bool:
    """What `verify proof` does with a proof of inclusion."""
    proof = InclusionFile.parse(data)
    proof.check(proof.extra or b"", open_checkpoint(proof.note, box.log.vkey))
    return True


def test_every_altered_byte_of_a_proof_fails(small: Box) -> None:
    """Each byte of the file, in each of several ways; the index, the leaf, the hashes and the note among them."""
    for index in (0, 3, small.head.size - 1):
        data = inclusion(small, index)
        assert holds(small, data)
        for at in range(len(data)):
            for value in {data[at] ^ 1, data[at] ^ 0x20, data[at] ^ 0x80, 0x0A}.difference({data[at]}):
                with pytest.raises(CountermarkError):
                    holds(small, data[:at] + bytes((value,)) + data[at + 1 :])
        for shorter in range(len(data)):
            with pytest.raises(CountermarkError):
                holds(small, data[:shorter])


def test_growth_between_all_sizes(small: Box) -> None:
    notes: dict[int, str] = {}
    for number in range(6):
        notes[small.head.size] = small.head.note
        small.append(small.passed(number))
    with small.reader() as reader:
        head = reader.head
        for old, note in notes.items():
            proof = GrowthFile.parse(GrowthFile(old, reader.prove_growth(old), head.note).encode())
            then, now = open_checkpoint(note, small.log.vkey), open_checkpoint(proof.note, small.log.vkey)
            check_consistency(then.size, now.size, then.root, now.root, proof.hashes)
            for at in range(len(proof.hashes)):
                changed = [*proof.hashes]
                changed[at] = sha256(changed[at]).digest()
                with pytest.raises(CountermarkError):
                    check_consistency(then.size, now.size, then.root, now.root, changed)
            with pytest.raises(CountermarkError):
                check_consistency(then.size, now.size, then.root, now.root, [*proof.hashes, H1])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_proof_or_an_error(data: bytes) -> None:
    for prefix in (b"", b"old 1\n", f"{HEADER}\nindex 1\n".encode()):
        try:
            proof = parse_proof(prefix + data)
        except InputError:
            continue
        assert proof.encode() == prefix + data
