"""Cases 38, 41 to 45, 49, 63, 64: what must not get in, what gets in as one thing, and what the gate says when rows are hidden."""

import base64
import json
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from bundles import STATEMENT, encoded, expecting, modern, put
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from insider import leaf_of, replace_leaf, sign_again
from ledger_box import TEST_RESULT
from worlds import IMAGE, NOW, World, make_world

from countermark.actions.audit import audit_ledger
from countermark.actions.gate import Asked, gate
from countermark.actions.importing import import_files
from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.envelope import MAX_PAYLOAD, PAYLOAD_TYPE, pae
from countermark.attestations.keys import PublicKey, Signer
from countermark.ledger.leaf import EntryKind, Leaf
from countermark.ledger.note import open_checkpoint
from countermark.ledger.signed_note import MAX_NOTE_BYTES
from countermark.ledger.submission import Submission

from .lab import Lab, Look, Seen, all_of, asked, audited, case, of_report

BODY = {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [{"name": "build", "digest": {"sha256": "ab" * 32}}],
    "predicateType": TEST_RESULT,
    "predicate": {"result": "PASSED", "configuration": []},
}


def _world(lab: Lab) -> World:
    return make_world(lab.space() / "box")


def _signed(world: World, payload: bytes, payload_type: str = PAYLOAD_TYPE) -> dict[str, Any]:
    """The envelope of a payload; the builder's signature is over it as a statement, whatever its type is said to be."""
    signature = Signer.load(str(world.key("ci"))).sign(pae(PAYLOAD_TYPE, payload))
    lines = {"keyid": "", "sig": base64.b64encode(signature).decode()}
    return {"payload": base64.b64encode(payload).decode(), "payloadType": payload_type, "signatures": [lines]}


def _imported(world: World, texts: Iterable[str]) -> list[Look]:
    """Import each text as a file of its own, as `countermark import` does: what it was refused for, if it was."""

    def looking(path: str) -> Look:
        def look() -> Seen:
            done = import_files(world.workspace, [path], lambda _: None, workers=1)
            (refused,) = done.refused or (None,)
            return Seen(refused.exit, ((refused.finding.code, "", ""),)) if refused else Seen(ExitCode.YES)

        return look

    paths = []
    for number, text in enumerate(texts):
        paths.append(world.folder / f"{number}.json")
        paths[-1].write_text(text)
    return [looking(str(path)) for path in paths]


def _bodies(*texts: str) -> list[bytes]:
    return [json.dumps(BODY).replace('"PASSED"', text).encode() for text in texts]


TWICE = ('"PASSED", "result": "FAILED"', '"PASSED", "a": {"b": 1, "b": 1}')
NUMBERS = (f'"PASSED", "n": {text}' for text in (str(2**64), "1e400", "NaN", "9" * 400, "-Infinity"))
NUMBER_BODIES = _bodies(*NUMBERS)


@case(Code.DUPLICATE_KEY, exits=ExitCode.INVALID)
def case_41_a_key_twice_is_not_admitted(lab: Lab) -> Look:
    world = _world(lab)
    return all_of(*_imported(world, (json.dumps(_signed(world, body)) for body in _bodies(*TWICE))))


@case(Code.MALFORMED, "entry 9", "it was signed as a statement: key 'result' stands twice")
def case_41_a_key_twice_that_is_in_the_log(lab: Lab) -> Look:
    box = lab.small()
    box.append(*(Submission.sign(EntryKind.ATTESTATION, PAYLOAD_TYPE, body, box.operator) for body in _bodies(*TWICE)))
    return audited(box)


@case(Code.BAD_NUMBER, exits=ExitCode.INVALID)
def case_42_a_number_that_readers_read_differently_is_not_admitted(lab: Lab) -> Look:
    world = _world(lab)
    return all_of(*_imported(world, (json.dumps(_signed(world, body)) for body in NUMBER_BODIES)))


@case(Code.MALFORMED, "entry 9", "it was signed as a statement: NaN is not JSON")
def case_42_a_number_that_is_in_the_log(lab: Lab) -> Look:
    box = lab.small()
    box.append(Submission.sign(EntryKind.ATTESTATION, PAYLOAD_TYPE, NUMBER_BODIES[2], box.operator))
    return audited(box)


@case(Code.OK)
def case_43_names_that_look_alike_are_told_apart_by_digest(lab: Lab) -> Look:
    """CONFUSABLE is no word of the design page: names decide nothing anywhere, and a look-up is by digest."""
    box = lab.small()
    names = [unicodedata.normalize(form, "café") for form in ("NFC", "NFD")] + ["c\N{CYRILLIC SMALL LETTER A}fe", "cafe"]
    digests = [f"{number:02x}" * 32 for number, _ in enumerate(names, 7)]
    subjects: list[dict[str, object]] = [{"name": name, "digest": {"sha256": digest}} for name, digest in zip(names, digests, strict=True)]
    places = box.append(*(box.statement(TEST_RESULT, {"result": "PASSED"}, subject=subject) for subject in subjects))

    def look() -> Seen:
        with box.reader() as reader:
            found = [reader.find_subject("unknown", digest) for digest in digests]
        return audited(box)() if found == [(place,) for place in places] else Seen(ExitCode.INTERNAL)

    return look


@case(Code.SIG_INVALID, exits=ExitCode.NO)
def case_44_another_payload_type_over_the_same_body_is_not_admitted(lab: Lab) -> Look:
    world = _world(lab)
    (body,) = _bodies('"PASSED"')
    types = ("application/vnd.in-toto.other+json", "application/vnd.in-toto+json ", "text/plain")
    return all_of(*_imported(world, (json.dumps(_signed(world, body, payload_type)) for payload_type in types)))


@case(Code.UNTRUSTED, "entry 8", "a signature does not hold")
def case_44_another_payload_type_in_the_log(lab: Lab) -> Look:
    box = lab.small()
    leaf = Leaf.decode(leaf_of(box, 8))
    replace_leaf(box, 8, replace(leaf, payload_type="application/vnd.in-toto.other+json").encode())
    sign_again(box)
    return audited(box)


@case(Code.OK)
def case_45_the_same_envelope_written_in_other_ways_is_one_entry(lab: Lab) -> Look:
    world = _world(lab)
    (body,) = _bodies('"PASSED"')
    plain = _signed(world, body)
    (signature,) = plain["signatures"]
    stranger = {"keyid": "x", "sig": base64.b64encode(bytes(64)).decode()}
    url_safe = base64.urlsafe_b64encode(body).decode()
    hinted = {"keyid": "f00", "sig": base64.urlsafe_b64encode(base64.b64decode(signature["sig"])).decode()}
    forms = (
        json.dumps(plain),
        json.dumps(plain, indent=3),
        json.dumps({"x": 1, **plain}),
        json.dumps({**plain, "payload": url_safe}),
        json.dumps({**plain, "signatures": [hinted]}),
        json.dumps({**plain, "signatures": [stranger, signature]}),
        json.dumps({**plain, "signatures": [signature, stranger, signature]}),
    )
    files = _imported(world, forms)

    def look() -> Seen:
        answers = [each() for each in files]
        report = audit_ledger(world.workspace, [])
        return of_report(report) if report.size == 2 and set(answers) == {Seen(ExitCode.YES)} else Seen(ExitCode.INTERNAL)

    return look


@case(Code.UNSUPPORTED, "", "anyone can sign for this ed25519 key", exits=ExitCode.INVALID)
def case_49_a_key_for_which_anyone_can_sign(lab: Lab) -> Look:
    """The neutral element, the points of order 2 and 4, one of order 8, and an encoding that is not canonical."""
    del lab
    prime = 2**255 - 19
    eighth = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
    encodings = [n.to_bytes(32, "little") for n in (1, prime - 1, 0, 1 << 255, prime, prime + 1)] + [bytes.fromhex(eighth)]
    keys = [Ed25519PublicKey.from_public_bytes(raw).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for raw in encodings]
    return all_of(*(asked(partial(_algorithm, pem)) for pem in keys))


def _algorithm(pem: bytes) -> object:
    return PublicKey.from_pem(pem, "key.pub").algorithm


@case(Code.MALFORMED, "", "")
def case_63_a_note_of_ten_thousand_lines(lab: Lab) -> Look:
    box = lab.small()
    line = box.head.note.splitlines()[-1] + "\n"
    longer = (box.head.note + line * 10_000, box.head.note + line * 101, "x" * (MAX_NOTE_BYTES + 1))
    return all_of(*(asked(partial(open_checkpoint, note, box.log.vkey)) for note in longer))


@case(Code.TOO_LARGE, exits=ExitCode.INVALID)
def case_63_a_payload_of_a_gigabyte(lab: Lab) -> Look:
    """It is refused by its size, before it is read."""
    world = _world(lab)
    (look,) = _imported(world, ["x"])
    with (world.folder / "0.json").open("r+b") as file:
        file.truncate(1 << 30)
    return look


@case(Code.TOO_LARGE, exits=ExitCode.INVALID)
def case_63_a_payload_over_the_limit(lab: Lab) -> Look:
    world = _world(lab)
    payload = base64.b64encode(bytes(MAX_PAYLOAD + 1)).decode()
    return _imported(world, [f'{{"payload": "{payload}", "payloadType": "{PAYLOAD_TYPE}", "signatures": [{{"sig": "AA=="}}]}}'])[0]


@case(Code.TOO_LARGE, exits=ExitCode.INVALID)
def case_63_json_a_hundred_thousand_deep(lab: Lab) -> Look:
    world = _world(lab)
    deep = "[" * 100_000 + "]" * 100_000
    return all_of(*_imported(world, [deep, json.dumps(_signed(world, _bodies(f'"PASSED", "a": {deep}')[0]))]))


@case(Code.SIG_INVALID, exits=ExitCode.NO)
def case_38_a_lower_version_of_a_bundle_skips_no_check(lab: Lab) -> Look:
    """A bundle that no log holds is refused whatever version it calls itself."""
    del lab
    bundle = put(modern().sign(STATEMENT, stamped=timedelta(seconds=3)), ("verificationMaterial", "tlogEntries"), [])
    types = [f"application/vnd.dev.sigstore.bundle+json;version=0.{minor}" for minor in (1, 2, 3)]
    versions = [put(bundle, ("mediaType",), name) for name in (bundle["mediaType"], *types)]
    verifier = expecting(modern())
    return all_of(*(asked(partial(verifier.verify, encoded(version), "bundle")) for version in versions))


def _rejected(lab: Lab) -> World:
    """An image that passed and was rejected, and the subject row by which the rejection would be found is gone."""
    world = _world(lab)
    world.receipt()
    rejection = world.reject()
    world.edit("DELETE FROM subject WHERE idx = ?", rejection.index)
    return world


@case(Code.IMAGE_REJECTED, exits=ExitCode.NO)
def case_64_the_gate_denies_though_the_row_of_the_rejection_is_gone(lab: Lab) -> Look:
    world = _rejected(lab)
    policy = world.policy()

    def look() -> Seen:
        (decision,) = gate(world.workspace, Asked((str(IMAGE),), policy, effective_time=NOW)).decisions
        codes = tuple((result.code, "", "") for result in decision.requirements)
        return Seen(ExitCode.YES if decision.verdict == "ALLOW" else ExitCode.NO, codes)

    return look


@case(Code.TAMPERED, "entry 3", "the rows of table subject are not what the payload calls for")
def case_64_the_audit_names_the_rejection_whose_row_is_gone(lab: Lab) -> Look:
    world = _rejected(lab)
    return lambda: of_report(audit_ledger(world.workspace, []))
