"""Cases 23 to 30: notes that say something else, or say it in another way, than the log signed."""

import base64
from functools import partial

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import Box

from countermark.attestations.codes import Code
from countermark.ledger.note import Checkpoint, CheckpointSigner, VerifierKey, open_checkpoint

from .lab import Lab, Look, all_of, asked, audited, case

DASH = "\N{EM DASH}"
ORIGIN, SIZE, ROOT, _EMPTY, SIGNATURE = range(5)


def _held(box: Box, *notes: str) -> Look:
    """An auditor who holds these: by themselves under the log's key, and against the ledger."""
    alone = [asked(partial(open_checkpoint, note, box.log.vkey)) for note in notes]
    return all_of(*alone, *(audited(box, held={"alice": note}) for note in notes))


def _lines(box: Box, changes: dict[int, str]) -> str:
    lines = box.head.note.split("\n")
    for number, line in changes.items():
        lines[number] = line
    return "\n".join(lines)


def _signed(box: Box, body: str) -> str:
    """A text of the log's owner, signed as it stands."""
    vkey = box.log.vkey
    signature = base64.b64encode(vkey.key_id + box.log._private.sign(body.encode())).decode()
    return f"{body}\n{DASH} {vkey.name} {signature}\n"


@case(Code.MALFORMED, "", "is not a tree size in decimal without leading zeros")
def case_23_a_size_that_int_would_take(lab: Lab) -> Look:
    box = lab.small()
    root = base64.b64encode(box.head.root).decode()
    sizes = ("007", "+7", " 7", "7 ", "\N{FULLWIDTH DIGIT SEVEN}", "1_0", "-0", "0x7", "7.0", "")
    return _held(box, *(_signed(box, f"{box.log.vkey.name}\n{size}\n{root}\n") for size in sizes if size))


@case(Code.MALFORMED, "", "a checkpoint cannot be of -1 entries")
def case_23_a_size_that_no_tree_has(lab: Lab) -> Look:
    box = lab.small()
    sizes = (-1, 2**63)
    return asked(partial(_checkpoints, box.log.vkey.name, sizes))


def _checkpoints(origin: str, sizes: tuple[int, ...]) -> list[Checkpoint]:
    return [Checkpoint(origin, size, bytes(32)) for size in sizes]


@case(Code.MALFORMED, "", "cannot be the root of ")
def case_24_a_root_that_no_tree_has(lab: Lab) -> Look:
    box = lab.small()
    forms = ((9, bytes(31)), (9, bytes(33)), (0, bytes(32)))
    bodies = (f"{box.log.vkey.name}\n{size}\n{base64.b64encode(root).decode()}\n" for size, root in forms)
    return _held(box, *(_signed(box, body) for body in bodies))


@case(Code.MALFORMED, "", "the root is not")
def case_24_a_root_that_b64decode_would_take(lab: Lab) -> Look:
    box = lab.small()
    root = base64.b64encode(box.head.root).decode()
    tail = root[:-2] + chr(ord(root[-2]) + 1) + "="
    forms = (tail, base64.urlsafe_b64encode(b"\xfb" * 32).decode(), root[:-1], root + "=", root.replace("=", "!="))
    return _held(box, *(_signed(box, f"{box.log.vkey.name}\n9\n{form}\n") for form in forms))


@case(Code.MALFORMED, "")
def case_25_a_note_of_another_form(lab: Lab) -> Look:
    box = lab.small()
    note = box.head.note
    body, _, signature = note.partition("\n\n")
    forms = (
        note.replace("\n", "\r\n"),
        f"{body}\n{signature}",
        note.rstrip("\n"),
        note.replace(DASH, "-"),
        note.replace(DASH, "\N{EN DASH}"),
        note.replace(f"{DASH} ", f"{DASH}  "),
        body + "\nextension\n\n" + signature,
        f"{body}\n\n",
        note + "\n",
    )
    return _held(box, *forms)


@case(Code.MALFORMED, "", "the note is not UTF-8")
def case_25_a_note_that_is_not_utf8(lab: Lab) -> Look:
    box = lab.small()
    note = box.head.note.encode()
    forms = (note + b"\xff", note.replace(DASH.encode(), b"\xe2\x80"), b"\xed\xa0\x80" + note)
    return all_of(*(asked(partial(open_checkpoint, form, box.log.vkey)) for form in forms))


@case(Code.UNTRUSTED, "", "the checkpoint is not signed by ")
def case_26_a_note_by_an_unknown_key(lab: Lab) -> Look:
    box = lab.small()
    other = CheckpointSigner(box.log.vkey.name, Ed25519PrivateKey.generate())
    return _held(box, other.sign(Checkpoint(other.vkey.name, box.head.size, box.head.root)))


@case(Code.UNTRUSTED, "", "bears a bad signature in the name of ")
def case_27_a_bad_line_by_the_known_key_beside_a_good_one(lab: Lab) -> Look:
    box = lab.small()
    line = f"{DASH} {box.log.vkey.name} {base64.b64encode(box.log.vkey.key_id + bytes(64)).decode()}\n"
    other = _lines(box, {SIZE: "8"})
    return _held(box, box.head.note + line, other)


@case(Code.UNTRUSTED, "", "the checkpoint is not signed by ")
def case_28_the_key_id_of_another_name(lab: Lab) -> Look:
    """The same four bytes under another name are another key; and the name with other bytes, too."""
    box = lab.small()
    encoded = box.head.note.rstrip("\n").rsplit(" ", 1)[1]
    body = box.head.note.partition("\n\n")[0]
    data = base64.b64decode(encoded)
    other_id = base64.b64encode(bytes(4) + data[4:]).decode()
    lines = (f"{DASH} other.example/log {encoded}\n", f"{DASH} {box.log.vkey.name} {other_id}\n")
    return _held(box, *(f"{body}\n\n{line}" for line in lines))


@case(Code.UNTRUSTED, "", "the checkpoint is about the log 'other.example/log'")
def case_29_a_note_about_another_log_by_this_ones_key(lab: Lab) -> Look:
    box = lab.small()
    root = base64.b64encode(box.head.root).decode()
    return _held(box, _signed(box, f"other.example/log\n9\n{root}\n"))


@case(Code.UNTRUSTED, "", "the log's key is ")
def case_29_another_log_than_the_auditor_believes(lab: Lab) -> Look:
    box = lab.small()
    return audited(box, log_vkey=VerifierKey.of(box.log.vkey.name, Ed25519PrivateKey.generate().public_key().public_bytes_raw()))


@case(Code.TAMPERED, "", "the head's note does not verify")
def case_27_the_note_of_the_head(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE head SET note = replace(note, 'countermark', 'countermarx')")
    return audited(box)


@case(Code.TAMPERED, "", "size and root are not those of the note")
def case_27_an_older_note_in_the_head(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE head SET note = (SELECT note FROM checkpoint WHERE size = 1)")
    return audited(box)


@case(Code.TAMPERED, "", "the entries do not hash to the root")
def case_27_another_root_in_the_head(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE head SET root = zeroblob(32)")
    return audited(box)


@case(Code.TAMPERED, "", "table head has 0 rows")
def case_27_no_head(lab: Lab) -> Look:
    box = lab.small()
    box.edit("DELETE FROM head")
    return audited(box)


@case(Code.TAMPERED, "", "the checkpoint at 1 does not verify")
def case_27_a_checkpoint_whose_signature_is_bad(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE checkpoint SET note = replace(note, char(10) || '1' || char(10), char(10) || '2' || char(10)) WHERE size = 1")
    return audited(box)


@case(Code.TAMPERED, "", "the checkpoint at 1 is not what its note says")
def case_27_a_checkpoint_with_another_root_than_its_note(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE checkpoint SET root = zeroblob(32) WHERE size = 1")
    return audited(box)


@case(Code.TAMPERED, "", "the checkpoints are not all those that were signed")
def case_27_a_checkpoint_is_gone(lab: Lab) -> Look:
    box = lab.small()
    box.edit("DELETE FROM checkpoint WHERE size = 1")
    return audited(box)


@case(Code.TAMPERED, "", "the checkpoint at 1 is bytes, not text")
def case_27_a_checkpoint_that_is_no_text(lab: Lab) -> Look:
    box = lab.small()
    box.edit(
        "PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = replace(sql, 'note TEXT', 'note ANY') WHERE name = 'checkpoint'"
    )
    box.edit("UPDATE checkpoint SET note = CAST(note AS BLOB) WHERE size = 1")
    return audited(box)


@case(Code.TAMPERED, "", "the cosignature of 'witness.example/w' at 9 is not what its line says")
def case_30_a_cosignature_that_was_moved_to_another_checkpoint(lab: Lab) -> Look:
    """Whether the witness signed that checkpoint is judged by who knows its key; here its row contradicts itself."""
    box = lab.small()
    data = b"\1\2\3\4" + (1_796_000_000).to_bytes(8) + bytes(64)
    line = f"{DASH} witness.example/w {base64.b64encode(data).decode()}"
    box.edit("INSERT INTO cosignature VALUES (?, ?, ?, ?, ?, ?)", values=(9, bytes(32), "witness.example/w", data[:4], 1_796_000_000, line))
    return audited(box)


@case(Code.TAMPERED, "", "the cosignature of 'witness.example/w' at 9 is not what its line says")
def case_30_a_cosignature_whose_line_is_none(lab: Lab) -> Look:
    box = lab.small()
    line = f"{DASH} witness.example/w not!base64"
    row = (9, box.head.root, "witness.example/w", b"\1\2\3\4", 1_796_000_000, line)
    box.edit("INSERT INTO cosignature VALUES (?, ?, ?, ?, ?, ?)", values=row)
    return audited(box)


@case(Code.TAMPERED, "", "the cosignature of 'witness.example/w' at 9 is not what its line says")
def case_30_a_cosignature_whose_line_no_note_may_have(lab: Lab) -> Look:
    """A hyphen for the em dash says the same to people, and breaks every note that the line is put in."""
    box = lab.small()
    data = b"\1\2\3\4" + (1_796_000_000).to_bytes(8) + bytes(64)
    line = f"- witness.example/w {base64.b64encode(data).decode()}"
    row = (9, box.head.root, "witness.example/w", data[:4], 1_796_000_000, line)
    box.edit("INSERT INTO cosignature VALUES (?, ?, ?, ?, ?, ?)", values=row)
    return audited(box)
