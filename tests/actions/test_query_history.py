"""`query history`: nothing that names a digest is left out, whatever sort of digest it is and wherever it stands."""

import json
import sqlite3
from contextlib import closing

import pytest
from worlds import COMMIT, IMAGE, MODEL, THIRD, UNKNOWN, World, config

from countermark.actions.queries.history import HistoryRow, history_listing
from countermark.actions.queries.listing import Bearing, Listing
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError


def ask(world: World, text: object) -> Listing:
    return history_listing(world.workspace, str(text))


def rows(listing: Listing) -> dict[int, HistoryRow]:
    return {row.index: row for row in listing.rows if isinstance(row, HistoryRow)}


def naming(world: World, text: str) -> set[int]:
    """The oracle: entries whose payload holds the text."""
    with closing(sqlite3.connect(world.workspace.ledger)) as db:
        found = db.execute("SELECT idx, CAST(data AS TEXT) FROM entry JOIN payload ON payload.sha256 = payload_sha256").fetchall()
    return {index for index, data in found if text in data}


def test_every_entry_in_order_with_signer_and_what_was_said_of_it(full: World) -> None:
    listing = ask(full, IMAGE)
    found = rows(listing)
    assert list(found) == sorted(found)
    assert set(found) == naming(full, IMAGE.hex) | {full.at["retraction"].index}
    image, retraction = found[full.at["image"].index], found[full.at["retraction"].index]
    assert (image.what, image.names_it_at, image.signer, image.code) == ("image", ("/subject/0",), "ci", Code.OK)
    assert retraction.names_it_at == (f"retracts entry {full.at['taken back'].index}",)
    assert (retraction.signer, retraction.bearing) == ("alice", Bearing.NEGATIVE)
    assert found[full.at["allow"].index].outcome == "ALLOW"


def test_an_image_inside_a_predicate_is_named(full: World) -> None:
    assert rows(ask(full, IMAGE))[full.at["built on"].index].names_it_at == ("/predicate/base",)


@pytest.mark.parametrize("text", [f"git-commit:{COMMIT}", f"git-commit:{MODEL['revision']}", str(THIRD)])
def test_digests_of_other_kinds(full: World, text: str) -> None:
    found = set(rows(ask(full, text)))
    assert found
    assert found == naming(full, text.rpartition(":")[2])


def test_a_statement_is_named_by_itself_and_by_what_rests_on_it(full: World) -> None:
    payload = full.at["pass"].payload
    found = rows(ask(full, payload))
    assert found[full.at["pass"].index].names_it_at == ("payload",)
    assert set(found) == naming(full, payload.hex) | {full.at["pass"].index}


def test_a_key_is_named_by_what_it_signed(full: World) -> None:
    found = rows(ask(full, full.fingerprint("lab")))
    signed = {index for index, row in found.items() if "signature" in row.names_it_at}
    assert signed == {full.at[name].index for name in ("pass", "fail", "rejection", "taken back")}
    others = [row.what for index, row in found.items() if index not in signed]
    assert others == ["retraction", "document"]


def test_a_policy_that_decisions_were_made_by(full: World) -> None:
    digest = Digest.of(DigestKind.FILE, (full.folder / "serving.yaml").read_bytes())
    found = rows(ask(full, digest))
    document = next(row for row in found.values() if row.names_it_at == ("document",))
    assert (document.what, document.signer) == ("document", "release-gate")
    assert {full.at["allow"].index, full.at["deny"].index} <= set(found)


def test_a_bare_digest_takes_the_kind_that_the_ledger_knows(full: World) -> None:
    assert set(rows(ask(full, f"sha256:{IMAGE.hex}"))) == set(rows(ask(full, IMAGE)))


def test_a_bare_digest_of_two_kinds_is_refused(full: World) -> None:
    digest = Digest.of(DigestKind.FILE, (full.folder / "serving.yaml").read_bytes())
    with pytest.raises(InputError, match=r"file:sha256:.* and payload:sha256:"):
        ask(full, f"sha256:{digest.hex}")


def test_the_same_hex_of_another_kind_is_another_thing(full: World) -> None:
    assert not ask(full, f"oci-manifest:sha256:{IMAGE.hex}").rows


@pytest.mark.parametrize("text", [str(UNKNOWN), f"sha256:{UNKNOWN.hex}"])
def test_nothing_found_is_told(full: World, text: str) -> None:
    listing = ask(full, text)
    assert listing.rows == []
    assert listing.not_found == (f"{text}: no entry names it [SUBJECT_UNKNOWN]",)


def test_a_payload_that_is_gone_is_told(world: World) -> None:
    done = world.tests(IMAGE)
    world.tests(THIRD)
    world.edit("DELETE FROM payload WHERE sha256 = ?", done.payload.raw)
    listing = ask(world, config("77"))
    assert f"whether entry {done.index} names it: its payload is not here" in listing.not_found
    found = ask(world, IMAGE)
    assert any(text.startswith(f"what entry {done.index} says: ") for text in found.not_found)


def test_a_digest_in_another_ledgers_statement_without_a_kind(world: World) -> None:
    """A foreign statement gives a bare sha256; it may be the image, so it is listed."""
    from countermark.attestations.statement import Subject

    done = world.say(
        "https://in-toto.io/attestation/test-result/v0.1",
        Subject({"sha256": IMAGE.hex}),
        {"result": "PASSED", "configuration": []},
        by="ci",
    )
    assert list(rows(ask(world, IMAGE))) == [done.index]


def test_rows_are_json(full: World) -> None:
    value = json.loads(json.dumps(ask(full, IMAGE).to_json()))
    assert value["counts"] == {"found": len(value["rows"]) - 1, "negative": 1, "not-found": 0}
    assert value["rows"][0]["payload"] == str(full.at["image"].payload)
