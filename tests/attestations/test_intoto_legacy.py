"""in-toto layouts and links of our own keys: verified, and refused with anything changed."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from bundles import changed_texts
from local_layout import BUILDER, OTHER, OWNER, Chain, described
from signing import public

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError, InputError, NothingError, RefusedError
from countermark.attestations.intoto_legacy import LegacyFile, ProvenLayout, read_links, verify_layout
from countermark.attestations.keys import Algorithm, PublicKey, generate_pem


def verify(chain: Chain, *keys: PublicKey, **options: Any) -> ProvenLayout:
    layout = LegacyFile.parse((chain.folder / "root.layout").read_bytes(), "root.layout")
    return verify_layout(layout, read_links(chain.folder / "links"), keys or [public(OWNER)], **options)


@pytest.fixture(params=[True, False], ids=["envelope", "canonical JSON"])
def chain(request: pytest.FixtureRequest, tmp_path: Path) -> Chain:
    """A good chain in each of the two forms."""
    return Chain(tmp_path, dsse=request.param).write()


def test_a_chain_of_one_step_holds(chain: Chain) -> None:
    proven = verify(chain)
    assert proven.steps == ("build",)
    assert set(proven.products) == {"engine.bin"}


class TestRefused:
    def test_another_owner(self, chain: Chain) -> None:
        with pytest.raises(RefusedError):
            verify(chain, public(OTHER))

    def test_one_owner_of_two(self, chain: Chain) -> None:
        """Every key that is given must have signed."""
        with pytest.raises(RefusedError):
            verify(chain, public(OWNER), public(OTHER))

    def test_no_owner(self, chain: Chain) -> None:
        layout = LegacyFile.parse((chain.folder / "root.layout").read_bytes(), "root.layout")
        with pytest.raises(RefusedError):
            verify_layout(layout, read_links(chain.folder / "links"), [])

    def test_an_expired_layout(self, chain: Chain) -> None:
        chain.days = -1
        with pytest.raises(RefusedError, match="expired"):
            verify(chain.write())

    def test_a_missing_link(self, chain: Chain) -> None:
        next((chain.folder / "links").iterdir()).unlink()
        with pytest.raises(RefusedError, match="requires '1' link"):
            verify(chain)

    def test_a_link_by_a_stranger(self, chain: Chain) -> None:
        path = next((chain.folder / "links").iterdir())
        chain.write_link(OTHER).rename(path)
        with pytest.raises(RefusedError, match="Only found '0'"):
            verify(chain)

    def test_a_link_whose_product_was_changed(self, chain: Chain) -> None:
        path = next((chain.folder / "links").iterdir())
        value = json.loads(path.read_text())
        if chain.dsse:
            payload = base64.b64decode(value["payload"]).replace(b'"sha256": "', b'"sha256": "0')
            value["payload"] = base64.b64encode(payload).decode()
        else:
            value["signed"]["products"]["engine.bin"]["sha256"] = "0" * 64
        path.write_text(json.dumps(value))
        with pytest.raises(RefusedError, match="Only found '0'"):
            verify(chain)

    def test_a_product_that_the_layout_does_not_allow(self, chain: Chain) -> None:
        chain.change = lambda layout: setattr(layout.steps[0], "expected_products", [["DISALLOW", "*"]])
        with pytest.raises(RefusedError, match="DISALLOW"):
            verify(chain.write())

    def test_two_functionaries_who_differ(self, chain: Chain) -> None:
        chain.threshold, chain.functionaries = 2, (BUILDER, OTHER)
        verify(chain.write())
        chain.write_link(OTHER, b"something else")
        with pytest.raises(RefusedError, match="different artifacts"):
            verify(chain)

    def test_every_text_of_the_layout(self, chain: Chain) -> None:
        """Its key ids help to find a key, and say nothing."""
        path = chain.folder / "root.layout"
        for pointer, changed in changed_texts(json.loads(path.read_bytes()), stride=37):
            path.write_bytes(changed)
            if pointer == "/signatures/0/keyid":
                verify(chain)
                continue
            with pytest.raises(CountermarkError):
                verify(chain)

    def test_a_field_that_nobody_signed(self, tmp_path: Path) -> None:
        """The older form is signed over what in-toto reads; more can be written into it."""
        chain = Chain(tmp_path, dsse=False).write()
        for path in (tmp_path / "root.layout", next((tmp_path / "links").iterdir())):
            good = path.read_bytes()
            value = json.loads(good)
            value["signed"]["approved"] = "yes"
            path.write_text(json.dumps(value))
            with pytest.raises(RefusedError, match="nobody signed"):
                verify(chain)
            path.write_text(json.dumps(json.loads(good) | {"approved": "yes"}))
            with pytest.raises(InputError):
                verify(chain)
            path.write_bytes(good)
        verify(chain)

    def test_no_step(self, chain: Chain) -> None:
        """It demands nothing, so that nothing was verified."""
        chain.change = lambda layout: setattr(layout, "steps", [])
        with pytest.raises(NothingError):
            verify(chain.write())

    def test_a_link_for_a_layout(self, chain: Chain) -> None:
        link = next(iter(read_links(chain.folder / "links").values()))
        with pytest.raises(InputError, match="not a layout"):
            verify_layout(link, {}, [public(BUILDER)])

    def test_a_type_of_key_that_in_toto_does_not_know(self, chain: Chain) -> None:
        _, other = generate_pem(Algorithm.ML_DSA_65)
        with pytest.raises(RefusedError):
            verify(chain, other)


class TestInspections:
    """They are commands, which the package runs while it verifies."""

    def test_they_do_not_run(self, chain: Chain) -> None:
        mark = chain.folder / "ran"
        chain.inspect = (f"open({str(mark)!r}, 'w')",)
        with pytest.raises(RefusedError, match="--run-inspections") as caught:
            verify(chain.write())
        assert (caught.value.code, mark.exists()) == (Code.UNSUPPORTED, False)

    def test_those_of_a_sublayout_neither(self, chain: Chain) -> None:
        """A step may be a layout of its own, and its inspections run as well."""
        mark = chain.folder / "ran"
        inner = Chain(chain.folder, dsse=chain.dsse, inspect=(f"open({str(mark)!r}, 'w')",))
        chain.sign(inner.layout(), BUILDER, next((chain.folder / "links").iterdir()))
        with pytest.raises(RefusedError, match="--run-inspections"):
            verify(chain)
        assert not mark.exists()

    @pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # in-toto asks pathspec for it
    def test_they_run_when_they_are_asked_for(self, chain: Chain) -> None:
        chain.inspect = ("open('ran', 'w')",)
        chain.write()
        verify(chain, inspect_in=chain.folder / "products")
        assert (chain.folder / "products" / "ran").exists()
        chain.inspect = ("raise SystemExit(3)",)
        with pytest.raises(RefusedError, match="return"):
            verify(chain.write(), inspect_in=chain.folder / "products")


class TestFiles:
    def test_one_key_under_two_ids_is_refused(self, tmp_path: Path) -> None:
        """in-toto would count it as two functionaries."""

        def twice(layout: Any) -> None:
            key = described(BUILDER)
            layout.keys["ab" * 32] = {**key, "keyid": "ab" * 32}

        with pytest.raises(InputError, match="once more"):
            verify(Chain(tmp_path, change=twice).write())

    @pytest.mark.parametrize("value", [{}, [], "text", {"signed": {"_type": "root"}, "signatures": []}, {"signed": 1}])
    def test_other_files_are_refused(self, value: Any) -> None:
        with pytest.raises(InputError):
            LegacyFile.parse(json.dumps(value).encode(), "file")

    def test_a_statement_is_no_link(self, chain: Chain) -> None:
        payload = base64.b64encode(b'{"_type": "https://in-toto.io/Statement/v1"}').decode()
        for payload_type in ("application/vnd.in-toto+json", "text/plain"):
            value = {"payload": payload, "payloadType": payload_type, "signatures": [{"sig": "AAAA"}]}
            with pytest.raises(InputError):
                LegacyFile.parse(json.dumps(value).encode(), "file")

    def test_a_key_of_a_layout_has_a_public_part(self) -> None:
        value = {"signed": {"_type": "layout", "keys": {"a": {"keyval": {}}}}, "signatures": []}
        with pytest.raises(InputError, match="public part"):
            LegacyFile.parse(json.dumps(value).encode(), "file")

    def test_a_key_stands_once(self, chain: Chain) -> None:
        path = chain.folder / "root.layout"
        name = b'"payload"' if chain.dsse else b'"signed"'
        path.write_bytes(path.read_bytes().replace(b"{", b"{" + name + b": 1, ", 1))
        with pytest.raises(InputError) as caught:
            verify(chain)
        assert caught.value.code == Code.DUPLICATE_KEY

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="not a folder"):
            read_links(tmp_path / "nowhere")

    def test_a_signature_of_another_key_id_is_found(self, tmp_path: Path) -> None:
        """A key id is whatever its signer chose; ours are not in-toto's."""
        chain = Chain(tmp_path).write()
        path = chain.folder / "root.layout"
        value = json.loads(path.read_text())
        value["signatures"][0]["keyid"] = public(OWNER).fingerprint.hex
        path.write_text(json.dumps(value))
        assert verify(chain).steps == ("build",)
