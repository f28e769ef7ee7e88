"""Files that other programs wrote, of Certificate Transparency and of Sigsum: what they accept holds here, what they refuse fails."""

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countermark.attestations.errors import CountermarkError, TamperError
from countermark.ledger.cosignature import ED25519_COSIGNATURE, Cosigner, CosignerKey
from countermark.ledger.merkle import check_consistency, check_inclusion, leaf_hash
from countermark.ledger.note import Checkpoint, CheckpointSigner, VerifierKey, open_checkpoint
from countermark.ledger.proof_file import InclusionFile
from countermark.ledger.signed_note import SignatureLine, SignedNote
from countermark.ledger.witness_policy import WitnessPolicy

DATA = Path(__file__).parents[1] / "data" / "c2sp"
CT = json.loads((DATA / "ct_proofs.json").read_text())
SIGSUM = json.loads((DATA / "sigsum.json").read_text())
CCTV = json.loads((DATA / "cctv_merkle.json").read_text())


def raw(text: str | None) -> bytes:
    return base64.b64decode(text or "")


@pytest.mark.parametrize("name", CT["inclusion"])
def test_inclusion_as_certificate_transparency_has_it(name: str) -> None:
    case: dict[str, Any] = CT["inclusion"][name]
    proof = [raw(item) for item in case["proof"] or []]

    def check() -> None:
        check_inclusion(case["leafIdx"], case["treeSize"], raw(case["leafHash"]), proof, raw(case["root"]))

    if case["wantErr"] or len(raw(case["root"])) != 32:
        with pytest.raises(CountermarkError):
            check()
    else:
        check()


@pytest.mark.parametrize("name", CT["consistency"])
def test_consistency_as_certificate_transparency_has_it(name: str) -> None:
    case: dict[str, Any] = CT["consistency"][name]
    roots = [raw(case["root1"]), raw(case["root2"])]
    proof = [raw(item) for item in case["proof"] or []]
    # What C2SP asks beyond it: a root is 32 bytes, and before anything it is SHA-256(""), whatever the other side claims.
    nothing = any(
        len(root) != 32 or (size == 0 and root != sha256().digest())
        for size, root in zip((case["size1"], case["size2"]), roots, strict=True)
    )

    def check() -> None:
        check_consistency(case["size1"], case["size2"], roots[0], roots[1], proof)

    if case["wantErr"] or nothing:
        with pytest.raises(CountermarkError):
            check()
    else:
        check()


@pytest.mark.parametrize("kind", ["valid", "invalid"])
def test_the_test_vectors_of_c2sp(kind: str) -> None:
    for case in CCTV[f"inclusion-{kind}"]:
        arguments = (case["leaf_index"], case["tree_size"], raw(case["leaf_hash"]), [raw(item) for item in case["inclusion_path"]])
        if kind == "valid":
            check_inclusion(*arguments, raw(case["root_hash"]))
        else:
            with pytest.raises(TamperError):
                check_inclusion(*arguments, raw(case["root_hash"]))
    for case in CCTV[f"consistency-{kind}"]:
        sizes, roots = (case["old_size"], case["new_size"]), (raw(case["old_root"]), raw(case["new_root"]))
        path = [raw(item) for item in case["consistency_path"]]
        if kind == "valid":
            check_consistency(*sizes, *roots, path)
        else:
            with pytest.raises(CountermarkError):
                check_consistency(*sizes, *roots, path)


def sigsum_proof() -> dict[str, str]:
    lines = (line.partition("=") for line in SIGSUM["proof"].splitlines() if line)
    fields: dict[str, str] = {}
    for name, _, value in lines:
        fields[name] = f"{fields[name]} {value}" if name in fields else value
    return fields


def test_a_proof_of_sigsum_with_its_witness() -> None:
    """Its own text form, taken over into a checkpoint, a cosignature and a tlog-proof; all three then verify here."""
    fields = sigsum_proof()
    log_key, witness_key = bytes.fromhex(SIGSUM["log_key"]), bytes.fromhex(SIGSUM["witness_key"])
    origin = f"sigsum.org/v1/tree/{sha256(log_key).hexdigest()}"
    checkpoint = Checkpoint(origin, int(fields["size"]), bytes.fromhex(fields["root_hash"]))
    log, witness = VerifierKey.of(origin, log_key), CosignerKey.of("sigsum.example/witness", ED25519_COSIGNATURE, witness_key)
    key_hash, time_s, signature = fields["cosignature"].split(" ")
    assert key_hash == sha256(witness_key).hexdigest()
    lines = (
        SignatureLine(origin, log.key_id, bytes.fromhex(fields["signature"])),
        SignatureLine(witness.name, witness.key_id, int(time_s).to_bytes(8) + bytes.fromhex(signature)),
    )
    note = str(SignedNote(checkpoint.body(), lines))
    # draft-sigsum-log: the leaf is the checksum of the message, the submitter's signature, and the hash of the submitter's key.
    key_hash, submitted = fields["leaf"].split(" ")
    leaf = sha256(bytes.fromhex(SIGSUM["message_hex"])).digest() + bytes.fromhex(submitted) + bytes.fromhex(key_hash)
    hashes = tuple(map(bytes.fromhex, fields["node_hash"].split(" ")))
    proof = InclusionFile.parse(InclusionFile(int(fields["leaf_index"]), hashes, note).encode())
    policy = WitnessPolicy.parse(f"log {log}\nwitness W {witness}\nquorum W\n".encode(), "policy")
    witnessed = policy.open(proof.note)
    assert witnessed.names == (witness.name,)
    assert witnessed.cosignatures[0].time_s == 1683202758
    proof.check(leaf, witnessed.checkpoint)
    with pytest.raises(TamperError):
        proof.check(leaf[:-1] + b"\0", witnessed.checkpoint)


def test_a_checkpoint_and_a_cosignature_of_sigsum_byte_for_byte() -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(SIGSUM["checkpoint_seed_hex"]))
    origin = SIGSUM["checkpoint"].split("\n")[0]
    log = CheckpointSigner(origin, private)
    checkpoint = open_checkpoint(SIGSUM["checkpoint"], log.vkey)
    assert log.sign(checkpoint) == SIGSUM["checkpoint"]
    cosigned = Checkpoint.parse(SIGSUM["cosigned_text"])
    other_id, ours, other_name, _ = SIGSUM["cosignature_lines"].splitlines()
    witness = Cosigner("example.org/witness", private)
    assert str(witness.sign(cosigned, 1234)) == ours
    note = SignedNote(cosigned.body(), tuple(map(SignatureLine.parse, (other_id, ours, other_name))))
    assert [item.time_s for item in witness.vkey.cosignatures(note)] == [1234]


def test_the_checksum_database_of_go() -> None:
    """Its checkpoint is named otherwise than its key, so it is a note that verifies and no checkpoint of a log of ours."""
    key = VerifierKey.parse(SIGSUM["go_sumdb_vkey"])
    note = SignedNote.parse(SIGSUM["go_sumdb_note"])
    (line,) = note.by(key.name, key.key_id)
    assert key.verify(note.text.encode(), line.signature)
    assert leaf_hash(b"") != sha256().digest()
