"""`explain DECISION -o bundle=FILE` and `verify bundle FILE`: a decision made again where there is nothing but the file."""

import base64
import io
import json
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from program import Program

IMAGE = f"oci-config:sha256:{'a1' * 32}"
Members = dict[str, bytes]


def read(bundle: Path) -> Members:
    with tarfile.open(bundle) as archive:
        return {name: file.read() for name in archive.getnames() if (file := archive.extractfile(name))}


def write(bundle: Path, members: Members) -> None:
    with tarfile.open(bundle, "w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.fixture(scope="module")
def recorded(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a ledger, a bundle of the decision in it, and the decision's id."""
    folder = tmp_path_factory.mktemp("recorded")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    program = Program(folder, folder / "state")
    ledger = ("--ledger", "box/countermark.db")
    decided = program("gate", IMAGE, "--require", "service.startup", *ledger, "--record", "-o", "json")
    assert decided.code == 1, decided.err
    name = str(program("query", "decisions", *ledger, "-o", "json").json["rows"][0]["id"])
    done = program("explain", name, *ledger, "-o", "bundle=bundle.tar")
    assert done.code == 0, done.err
    return folder, name


@pytest.fixture
def elsewhere(recorded: tuple[Path, str], program: Program) -> Program:
    """Another machine, which has the bundle and nothing else."""
    shutil.copy(recorded[0] / "bundle.tar", program.folder)
    return program


def test_the_decision_comes_out_again_where_nothing_else_is(elsewhere: Program, recorded: tuple[Path, str]) -> None:
    done = elsewhere("verify", "bundle", "bundle.tar", "-o", "json")
    assert (done.code, done.json["verdict"], done.json["evaluated"]) == (0, "OK", 1)
    (decision,) = done.json["decisions"]
    assert (decision["id"], decision["again"], decision["differences"]) == (recorded[1], decision["core"], [])
    assert done.json["details"]["trust"]["own"] is True
    assert done.json["findings"] == []
    own = elsewhere("verify", "bundle", "bundle.tar")
    assert "the bundle's own trust policy" in own.out
    mine = elsewhere("verify", "bundle", "bundle.tar", "--trust", recorded[0] / "box/trust.yaml")
    assert (mine.code, "judged by the trust policy" in mine.out) == (0, True)


def test_a_ledger_that_has_gone_on_does_not_accuse_an_older_bundle(recorded: tuple[Path, str]) -> None:
    program = Program(recorded[0], recorded[0] / "state")
    assert program("gate", IMAGE, "--require", "service.startup", "--ledger", "box/countermark.db", "--record").code == 1
    assert program("verify", "bundle", "bundle.tar").code == 0


def spoil_ledger(members: Members) -> None:
    """Another payload in the copy, and a manifest that fits: what only the audit can see."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.deserialize(members["ledger.db"])
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'payload'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        changed = db.execute("UPDATE payload SET data = zeroblob(size) WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 1)")
        assert changed.rowcount == 1
        members["ledger.db"] = db.serialize()
    refit(members)


def refit(members: Members) -> None:
    """A manifest whose digest is that of the copy."""
    manifest = json.loads(members["ledger.db.manifest"])
    members["ledger.db.manifest"] = json.dumps(manifest | {"sha256": sha256(members["ledger.db"]).hexdigest()}).encode()


def stated_otherwise(members: Members) -> None:
    members["decision.json"] = json.dumps(json.loads(members["decision.json"]) | {"decision": "another"}).encode()


def another_manifest(members: Members) -> None:
    members["ledger.db.manifest"] = json.dumps(json.loads(members["ledger.db.manifest"]) | {"size": 7}).encode()


def key_elsewhere(name: str) -> Callable[[Members], None]:
    def spoil(members: Members) -> None:
        members["trust/trust.yaml"] = members["trust/trust.yaml"].replace(b"keys/builder.pub", name.encode())

    return spoil


def another_note(members: Members) -> None:
    """The last byte of its signature."""
    manifest = json.loads(members["ledger.db.manifest"])
    head, line = manifest["note"].rstrip("\n").rsplit(" ", 1)
    spoilt = base64.b64encode(bytes([*base64.b64decode(line)[:-1], base64.b64decode(line)[-1] ^ 1])).decode()
    members["ledger.db.manifest"] = json.dumps(manifest | {"note": f"{head} {spoilt}\n"}).encode()


def flip_ledger(members: Members) -> None:
    data = bytearray(members["ledger.db"])
    data[len(data) // 2] ^= 1
    members["ledger.db"] = bytes(data)


def without(name: str) -> Callable[[Members], None]:
    def spoil(members: Members) -> None:
        del members[name]

    return spoil


def with_file(name: str, data: bytes) -> Callable[[Members], None]:
    def spoil(members: Members) -> None:
        members[name] = data

    return spoil


@pytest.mark.parametrize(
    ("spoil", "code", "says"),
    [
        (spoil_ledger, 6, "the payload is not what was signed"),
        (flip_ledger, 6, "manifest says"),
        (without("ledger.db"), 4, "no ledger.db"),
        (without("ledger.db.manifest"), 4, "no ledger.db.manifest"),
        (without("trust/trust.yaml"), 4, "no trust/trust.yaml"),
        (without("trust/keys/builder.pub"), 3, "builder.pub"),
        (with_file("../outside", b"x"), 3, "no plain file"),
        (with_file("/outside", b"x"), 3, "no plain file"),
        (with_file("decision.json/x", b"x"), 3, "no plain file"),
        (with_file("ledger.db-wal", b"x"), 3, "no plain file"),
        (with_file("no-anchor", b"x"), 3, "no plain file"),
        (with_file("trust/../x", b"x"), 3, "no plain file"),
        (stated_otherwise, 6, "the bundle says"),
        (another_manifest, 6, "its manifest says 7"),
        (another_note, 1, "bad signature"),
        (key_elsewhere("/proc/self/environ"), 3, "which is in no bundle"),
        (key_elsewhere("../../../../etc/passwd"), 3, "which is in no bundle"),
        (with_file("decision.json", b"{}"), 3, "decision.json"),
        (with_file("decision.json", b"{"), 3, "decision.json"),
    ],
)
def test_what_was_changed_on_the_way(elsewhere: Program, spoil: Callable[[Members], None], code: int, says: str) -> None:
    members = read(elsewhere.folder / "bundle.tar")
    spoil(members)
    write(elsewhere.folder / "bundle.tar", members)
    done = elsewhere("verify", "bundle", "bundle.tar")
    assert (done.code, says in done.out + done.err) == (code, True), done
    assert not (elsewhere.folder.parent / "outside").exists()
    assert "Traceback" not in done.err


def test_another_decision_than_was_asked_for_is_not_here(elsewhere: Program) -> None:
    members = read(elsewhere.folder / "bundle.tar")
    members["decision.json"] = json.dumps(json.loads(members["decision.json"]) | {"payload": f"payload:sha256:{'00' * 32}"}).encode()
    write(elsewhere.folder / "bundle.tar", members)
    assert elsewhere("verify", "bundle", "bundle.tar").code == 3


def test_a_trust_policy_that_does_not_know_the_signers_is_obeyed(elsewhere: Program) -> None:
    assert elsewhere("init", "mine").code == 0
    done = elsewhere("verify", "bundle", "bundle.tar", "--trust", "mine/trust.yaml", "-o", "json")
    assert (done.code, done.json["evaluated"]) == (1, 0)
    assert {finding["code"] for finding in done.json["findings"]} == {"UNTRUSTED"}
    assert done.json["not_evaluated"] == ["the decision, since its ledger does not hold"]


def test_a_link_and_a_second_file_of_one_name_are_refused(elsewhere: Program) -> None:
    for member in (tarfile.TarInfo("trust/link"), tarfile.TarInfo("decision.json")):
        bundle = shutil.copy(elsewhere.folder / "bundle.tar", elsewhere.folder / "changed.tar")
        if member.name == "trust/link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        with tarfile.open(bundle, "a") as archive:
            archive.addfile(member)
        assert elsewhere("verify", "bundle", "changed.tar").code == 3


@pytest.mark.parametrize("length", [512, 700_00])
def test_a_bundle_that_was_cut_off(elsewhere: Program, length: int) -> None:
    whole = (elsewhere.folder / "bundle.tar").read_bytes()
    (elsewhere.folder / "cut.tar").write_bytes(whole[:length])
    done = elsewhere("verify", "bundle", "cut.tar")
    assert done.code in (3, 4)
    assert "Traceback" not in done.err


def test_how_it_is_not_asked(recorded: tuple[Path, str]) -> None:
    program, ledger = Program(recorded[0], recorded[0] / "state"), ("--ledger", "box/countermark.db")
    assert program("explain", IMAGE, "--require", "service.startup", *ledger, "-o", "bundle=x.tar").code == 2
    assert program("explain", recorded[1], recorded[1], *ledger, "-o", "bundle=x.tar").code == 2
    assert program("explain", recorded[1], *ledger, "-o", "bundle").code == 2
    assert program("explain", recorded[1], *ledger, "-o", "bundle=bundle.tar").code == 3
    assert program("verify", "bundle", "bundle.tar", "bundle.tar").code == 2
    assert program("verify", "bundle", "bundle.tar", "--key", "box/keys/log.pub").code == 2
    assert not (recorded[0] / "x.tar").exists()
