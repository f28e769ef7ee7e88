"""The stand-alone verifier: it imports nothing of ours, and says of every export what the product says."""

import ast
import importlib.util
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import Box

from countermark.attestations.errors import CountermarkError
from countermark.attestations.keys import Signer, generate_pem
from countermark.ledger.export import export
from countermark.ledger.export_audit import ExportOptions, audit_export
from countermark.ledger.leaf import EntryKind, Leaf
from countermark.ledger.note import Checkpoint, CheckpointSigner
from countermark.ledger.submission import WITHHOLD_TYPE, Submission

VERIFY = Path(__file__).parents[2] / "apps" / "countermark" / "standalone" / "verify.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("standalone_verify", VERIFY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


VERIFIER = load()


class Bench:
    """An export, the keys as files, and both verifiers."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.box = box
        self.out = folder / "out"
        self.folder = folder
        with box.reader() as reader:
            export(reader, self.out)
        self.keys: list[str] = []
        for number, key in enumerate(box.keys.values()):
            (folder / f"{number}.pub").write_bytes(key.to_pem())
            self.keys += ["--key", str(folder / f"{number}.pub")]

    def alone(self, *more: str, key: str | None = None) -> int:
        code: int = VERIFIER.main([str(self.out), "--log-key", key or str(self.box.log.vkey), *self.keys, *more])
        return code

    def product(self, *held: str) -> int:
        return int(audit_export(self.out, self.box.log.vkey, ExportOptions(self.box.keys, {note: note for note in held})).exit)


@pytest.fixture
def bench(small: Box, tmp_path: Path) -> Bench:
    return Bench(small, tmp_path)


def test_it_needs_the_standard_library_and_cryptography_alone() -> None:
    tree = ast.parse(VERIFY.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} - sys.stdlib_module_names == {"cryptography"}
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


def test_it_runs_by_itself(bench: Bench) -> None:
    """In isolated mode, from another folder, with the key in a file."""
    (bench.folder / "log.vkey").write_text(f"{bench.box.log.vkey}\n")
    command = [sys.executable, "-I", str(VERIFY), str(bench.out), "--log-key", str(bench.folder / "log.vkey"), *bench.keys, "--json"]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["evaluated"], told["size"]) == (9, 9)
    assert [(item["code"], item["entries"], item["blocks"]) for item in told["findings"]] == [("UNSUPPORTED", [1], False)], "a key event"


def test_it_agrees_on_several_sizes(large: Box, tmp_path: Path) -> None:
    """A full tile, a second level, and the files of a smaller head beside those of a larger."""
    bench = Bench(large, tmp_path)
    assert (bench.alone(), bench.product()) == (0, 0)
    large.append(*(large.passed(number) for number in range(3000, 3300)))
    with large.reader() as reader:
        export(reader, bench.out)
    assert (bench.alone(), bench.product()) == (0, 0)
    partial = bench.out / "tile" / "0" / "001.p" / "9"
    assert partial.exists()
    partial.write_bytes(partial.read_bytes()[:-1] + b"\0")
    assert (bench.alone(), bench.product()) == (6, 6)


def test_it_agrees_on_every_alteration(bench: Bench) -> None:
    """A bit in a place chosen at random in each file, the ends of each file, and each file gone."""
    chance = random.Random(7)
    files = [path for path in sorted(bench.out.rglob("*")) if path.is_file()]
    for path in files:
        data = path.read_bytes()
        variants = [data[:-1], data + b"\0", b""]
        for _ in range(8):
            changed = bytearray(data)
            changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            variants.append(bytes(changed))
        for variant in variants:
            path.write_bytes(variant)
            codes = (bench.alone(), bench.product())
            assert codes[0] == codes[1] != 0, (path.name, codes)
        path.unlink()
        assert (bench.alone(), bench.product()) == (4, 4), path.name
        path.write_bytes(data)
    assert (bench.alone(), bench.product()) == (0, 0)


def _link(bench: Bench) -> None:
    (bench.out / "checkpoint").rename(bench.folder / "elsewhere")
    (bench.out / "checkpoint").symlink_to(bench.folder / "elsewhere")


def _stray(bench: Bench) -> None:
    (bench.out / "tile" / "9").mkdir()
    (bench.out / "tile" / "9" / "000").write_bytes(b"x")


def _withheld(bench: Bench) -> None:
    box = bench.box
    index = box.append(box.passed(77))[0]
    with box.reader() as reader:
        digest = reader.entry(index).leaf.payload_sha256
    notice = json.dumps({"payload": f"payload:sha256:{digest.hex()}"}).encode()
    box.append(Submission.sign(EntryKind.WITHHOLD, WITHHOLD_TYPE, notice, box.operator))
    box.edit("DELETE FROM payload WHERE sha256 = ?", values=(digest,))
    with box.reader() as reader:
        export(reader, bench.out)


def _withheld_bundle(bench: Bench) -> None:
    """Of entry 7, whose payload stays."""
    box = bench.box
    with box.reader() as reader:
        digest = reader.entry(7).leaf.bundle_sha256
    notice = json.dumps({"payload": f"payload:sha256:{digest.hex()}"}).encode()
    box.append(Submission.sign(EntryKind.WITHHOLD, WITHHOLD_TYPE, notice, box.operator))
    with box.reader() as reader:
        export(reader, bench.out)
    (bench.out / "payload" / digest.hex()[:2] / digest.hex()).unlink()


def _wide(bench: Bench) -> None:
    """A partial tile of more hashes than a tile has."""
    (bench.out / "tile" / "0" / "000.p").mkdir(exist_ok=True)
    (bench.out / "tile" / "0" / "000.p" / "300").write_bytes(bytes(9600))


def _crowded(bench: Bench) -> None:
    """A checkpoint of more signature lines than a note may have."""
    with (bench.out / "checkpoint").open("a") as file:
        file.write("\N{EM DASH} somebody AAAAAAA=\n" * 100)


def _stranger(bench: Bench) -> None:
    box = bench.box
    stranger = Signer.from_pem(generate_pem()[0], "stranger")
    box.append(Submission.sign(EntryKind.ATTESTATION, "text/plain", b"hello", stranger))
    with box.reader() as reader:
        export(reader, bench.out)


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (_link, 3),
        (_stray, 0),
        (_withheld, 0),
        (_withheld_bundle, 0),
        (_wide, 0),
        (_crowded, 3),
        (_stranger, 1),
        (lambda bench: (bench.out / "SCHEMA").write_bytes(b"v9\n"), 4),
    ],
)
def test_it_agrees_on_what_else_may_be(bench: Bench, act: Callable[[Bench], object], code: int) -> None:
    act(bench)
    assert (bench.alone(), bench.product()) == (code, code)


@pytest.mark.parametrize("name", ["checkpoint", "SCHEMA", "tile/0/000.p/9", "tile/entries/000.p/9"])
def test_it_agrees_on_a_folder_where_a_file_should_be(bench: Bench, name: str) -> None:
    path = bench.out / name
    path.unlink()
    path.mkdir()
    assert (bench.alone(), bench.product()) == (3, 3)


def test_it_tells_of_key_events_and_of_payloads_only_what_it_looked_at(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.alone() == 0
    assert "key events are not judged" in capsys.readouterr().out
    assert VERIFIER.main([str(bench.out), "--log-key", str(bench.box.log.vkey), "--hash-only"]) == 0
    assert "belongs to nothing" not in capsys.readouterr().out


def test_it_agrees_on_what_is_held(bench: Bench) -> None:
    note = bench.box.head.note
    bench.box.append(bench.box.passed(1))
    forged = bench.box.log.sign(Checkpoint(bench.box.log.vkey.name, 5, bytes(32)))
    for held, code in ((note, 0), (bench.box.head.note, 6), (forged, 6), ("nonsense", 3)):
        (bench.folder / "note").write_text(held)
        assert (bench.alone("--checkpoint", str(bench.folder / "note")), bench.product(held)) == (code, code)


def test_keys_and_usage(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    other = CheckpointSigner(bench.box.log.vkey.name, Ed25519PrivateKey.generate()).vkey
    assert bench.alone(key=str(other)) == 1
    assert bench.alone(key="x+00000000+AAAA") == 3
    assert VERIFIER.main([str(bench.out)]) == 4
    assert VERIFIER.main([str(bench.out), "--log-key", str(bench.box.log.vkey)]) == 4
    assert VERIFIER.main([str(bench.out), "--log-key", str(bench.box.log.vkey), "--hash-only"]) == 0
    assert VERIFIER.main(["nowhere", "--log-key", str(bench.box.log.vkey)]) == 3
    assert VERIFIER.main([str(bench.out), "--log-key", str(bench.box.log.vkey), "--key", str(bench.out / "checkpoint")]) == 3
    assert VERIFIER.main([str(bench.out), "--log-key", str(bench.box.log.vkey), *bench.keys[:2]]) == 1
    small_order = "00" * 32
    with pytest.raises(VERIFIER.BadError):
        VERIFIER.refuse_weak(bytes.fromhex(small_order))
    with pytest.raises(SystemExit) as caught:
        VERIFIER.main(["--no-such-option"])
    assert caught.value.code == 2
    assert "TAMPERED" not in capsys.readouterr().out


def test_it_reads_leaves_as_the_product_does(small: Box) -> None:
    """Each byte of a leaf changed, and each cut of it: the two parsers refuse the same ones."""
    with small.reader() as reader:
        leaf = reader.entry(8).leaf.encode()
    variants = [leaf[:at] + bytes((leaf[at] ^ flip,)) + leaf[at + 1 :] for at in range(len(leaf)) for flip in (1, 0x80)]
    variants += [leaf[:at] for at in range(len(leaf))] + [leaf + b"\0", leaf]
    for variant in variants:
        assert _accepts(VERIFIER.parse_leaf, variant) == _accepts(Leaf.decode, variant), variant.hex()


def _accepts(parse: Callable[[bytes], object], data: bytes) -> str | None:
    try:
        parse(data)
    except (CountermarkError, VERIFIER.BadError) as error:
        return str(error.code)
    return None
