"""The read path believes only what leads to a signed checkpoint, and says why when something does not."""

import gc
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import BASE, TEST_RESULT, Box, raw

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, InputError, RefusedError, TamperError
from countermark.ledger.leaf import EntryKind
from countermark.ledger.merkle import check_consistency, check_inclusion, leaf_hash
from countermark.ledger.note import CheckpointSigner, open_checkpoint
from countermark.ledger.read import LedgerReader


def test_every_entry_is_proven_and_has_its_payload(large: Box) -> None:
    with large.reader() as reader:
        for index in range(reader.head.size):
            entry = reader.entry(index)
            assert (entry.index, sha256(entry.payload).digest()) == (index, entry.leaf.payload_sha256)
        assert reader.entry(0).leaf.kind is EntryKind.POLICY
        assert reader.genesis.origin == reader.head.origin == large.log.vkey.name


def test_a_proof_can_be_checked_without_the_ledger(large: Box) -> None:
    with large.reader() as reader:
        proof = reader.prove(130)
        growth = reader.prove_growth(9)
        old = reader.root_at(9)
    signed = open_checkpoint(proof.note, large.log.vkey)
    check_inclusion(proof.index, signed.size, leaf_hash(proof.leaf), proof.hashes, signed.root)
    check_consistency(9, signed.size, old, signed.root, growth)


@pytest.mark.parametrize("index", [-1, 10_000])
def test_an_index_that_is_not_there_is_bad_input(small: Box, index: int) -> None:
    with small.reader() as reader, pytest.raises(InputError):
        reader.entry(index)
    with small.reader() as reader, pytest.raises(InputError):
        reader.prove_growth(index)


def test_entries_are_found_by_digest_payload_type_and_signer(small: Box) -> None:
    image = "ab" * 32
    with small.reader() as reader:
        assert reader.find_subject("oci-config", image) == (3, 5)
        assert reader.find_subject("oci-manifest", image) == ()
        assert reader.find_subject("oci-config", image, roles=("tuple",)) == (4,)
        assert reader.find_subject("git-commit", "42" * 20, roles=("tuple",)) == (4,)
        assert reader.kinds_of(image) == ("oci-config",)
        assert reader.kinds_of("00" * 32) == ()
        assert reader.statements(TEST_RESULT) == (6, 7, 8)
        assert reader.find_payload(reader.entry(6).leaf.payload_sha256) == (6, 8)
        assert reader.find_signer(small.second.public.fingerprint.raw) == (8,)
        assert reader.counts() == {TEST_RESULT: 3, **{f"{BASE}{name}/v1": 1 for name in ("image", "rejection", "restore-run")}}


def test_all_signatures_of_an_envelope_are_on_record(small: Box) -> None:
    with small.reader() as reader:
        found = reader.signatures(6)
    assert [(item.keyid, item.outcome) for item in found] == [(None, "OK"), ("who", "SIG_UNVERIFIABLE")]


def test_a_prefix_finds_digests_payloads_and_keys(small: Box) -> None:
    key = small.second.public.fingerprint.hex
    with small.reader() as reader:
        payload = reader.entry(6).digest.hex
        assert {hit.role for hit in reader.search_prefix("abababab")} == {"subject", "tuple"}
        assert [(hit.kind, hit.index) for hit in reader.search_prefix(payload[:9])] == [("payload", 6), ("payload", 8)]
        assert {(hit.role, hit.index) for hit in reader.search_prefix(key[:12])} == {("key", 1), ("signer", 8)}
        assert reader.search_prefix("fffff") == ()
        assert all(hit.hex.startswith("ababa") for hit in reader.search_prefix("ababa"))
        for prefix in ("abab", "ABABAB", "xyzxyz", ""):
            with pytest.raises(InputError):
                reader.search_prefix(prefix)


def test_a_bundle_is_kept_as_it_came(small: Box) -> None:
    with small.reader() as reader:
        assert reader.payload(reader.entry(7).leaf.bundle_sha256).startswith(b'{"mediaType"')


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, Code.LEDGER_MISSING), (b"this is not a database " * 9, Code.LEDGER_SCHEMA), (b"", Code.LEDGER_SCHEMA)],
)
def test_what_is_no_ledger_cannot_be_told(tmp_path: Path, content: bytes | None, code: Code) -> None:
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CannotTellError) as caught:
        LedgerReader.open(path)
    assert (caught.value.code, caught.value.exit) == (code, ExitCode.CANNOT_TELL)
    assert path.exists() is (content is not None)


def test_a_folder_or_another_database_is_no_ledger(tmp_path: Path) -> None:
    connection = raw(tmp_path / "other.db")
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    for path in (tmp_path, tmp_path / "other.db"):
        with pytest.raises(CannotTellError):
            LedgerReader.open(path)


def test_a_ledger_that_somebody_locks_is_locked(small: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countermark.ledger.database.BUSY_S", 0.05)
    connection = raw(small.path)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    with pytest.raises(CannotTellError) as caught:
        small.reader()
    assert caught.value.code is Code.LEDGER_LOCKED
    connection.execute("COMMIT")
    connection.close()


def test_a_ledger_without_its_first_entry_cannot_be_told(small: Box) -> None:
    small.edit("DELETE FROM entry", "DELETE FROM head")
    with pytest.raises(CannotTellError) as caught:
        small.reader()
    assert caught.value.code is Code.INCOMPLETE


def test_the_key_that_the_caller_believes_decides(small: Box) -> None:
    with LedgerReader.open(small.path, small.log.vkey, small.anchor):
        pass
    other = CheckpointSigner(small.log.vkey.name, Ed25519PrivateKey.generate()).vkey
    with pytest.raises(RefusedError) as caught:
        LedgerReader.open(small.path, other, small.anchor)
    assert caught.value.code is Code.UNTRUSTED


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE head SET root = zeroblob(32)",
        "UPDATE head SET note = replace(note, '9', '8')",
        "UPDATE head SET note = (SELECT note FROM checkpoint WHERE size = 1)",
        "UPDATE head SET (size, root, note) = (SELECT size, root, note FROM checkpoint WHERE size = 1)",
        "DELETE FROM head",
        "UPDATE payload SET data = x'00' WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 0)",
        "DELETE FROM entry WHERE idx = 0",
        "DELETE FROM entry WHERE idx = 8",
        "UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 1), leaf_hash = x'01' WHERE idx = 0",
    ],
)
def test_an_altered_head_or_genesis_is_tampering(small: Box, change: str) -> None:
    small.edit(change)
    with pytest.raises(TamperError):
        small.reader()


@pytest.mark.parametrize("leaf", [b"", b"\2", None])
def test_an_entry_0_that_is_no_genesis_is_tampering(small: Box, leaf: bytes | None) -> None:
    with small.reader() as reader:
        value = reader.entry(6).leaf.encode() if leaf is None else leaf
    small.edit("UPDATE entry SET leaf = ? WHERE idx = 0", values=(value,))
    with pytest.raises(TamperError, match="entry 0"):
        small.reader()


def test_a_damaged_tree_is_tampering(large: Box) -> None:
    large.edit("UPDATE tile SET hashes = zeroblob(100)")
    with pytest.raises(TamperError):
        large.reader()


def test_what_a_signature_is_over_is_the_pae(small: Box) -> None:
    with small.reader() as reader:
        entry = reader.entry(2)
    small.operator.public.verify(entry.envelope.pae(), entry.leaf.signatures[0].signature)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE payload SET data = zeroblob(length(data)) WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 6)",
        "UPDATE entry SET leaf = zeroblob(length(leaf)) WHERE idx = 6",
        "UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 5) WHERE idx = 6",
        "UPDATE entry SET leaf_hash = x'00' WHERE idx = 5",
    ],
)
def test_an_altered_entry_is_tampering(small: Box, change: str) -> None:
    small.edit(change)
    with pytest.raises(TamperError), small.reader() as reader:
        reader.entry(6)


def test_a_missing_payload_cannot_be_told(small: Box) -> None:
    small.edit("DELETE FROM payload WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 7)")
    with small.reader() as reader, pytest.raises(CannotTellError) as caught:
        reader.entry(7)
    assert caught.value.code is Code.INCOMPLETE


def test_a_view_does_not_change_while_others_write(small: Box) -> None:
    with small.reader() as reader:
        size = reader.head.size
        small.append(small.passed(1))
        assert reader.rows("SELECT count(*) FROM entry") == [(size,)]
        with pytest.raises(InputError):
            reader.entry(size)
    assert small.head.size == size + 1


def test_the_read_path_needs_no_sqlalchemy() -> None:
    program = "import sys, countermark.ledger.read, countermark.ledger.audit; print({name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "countermark" in done.stdout
    assert not [name for name in ("sqlalchemy", "alembic", "sigstore", "securesystemslib") if name in done.stdout]


def test_no_missing_row_changes_what_can_be_believed(small: Box, tmp_path: Path) -> None:
    """Some rows of each table in turn: the entries that can be read are the same as before, or reading fails."""
    with small.reader() as reader:
        entries = [reader.entry(index) for index in range(reader.head.size)]
        notices = reader.notices()
    connection = raw(small.path)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
    targets = []
    for table in tables:
        keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]] or ["rowid"]
        where = " AND ".join(f"{key} IS ?" for key in keys)
        rows = connection.execute(f"SELECT {', '.join(keys)} FROM {table}").fetchall()
        targets += [(table, where, row) for row in (*rows[:1], *rows[len(rows) // 2 :][:2])]
    connection.close()
    for number, (table, where, key) in enumerate(targets):
        box = small.copy(tmp_path / f"copy-{number}")
        box.edit(f"DELETE FROM {table} WHERE {where}", values=key)
        with suppress(TamperError, CannotTellError), box.reader() as reader:
            assert reader.notices() == notices, f"{table} {key!r}"
            assert [reader.entry(index) for index in range(reader.head.size)] == entries, f"{table} {key!r}"


def test_rows_that_nobody_reads_to_the_end_do_not_outlive_the_view(small: Box) -> None:
    """An interrupted audit drops its rows after the file is closed, which must not be told on the terminal."""
    with small.reader() as reader:
        rows = reader.stream("SELECT idx FROM entry")
        next(rows)
    del rows  # pytest turns what a finalizer raises into an error
    gc.collect()
