"""`search`: an entry is found by the beginning of any digest, whatever it is."""

from worlds import IMAGE, World

from countermark.actions.appending import FILE_TYPE, append
from countermark.actions.search import search_ledger
from countermark.attestations.keys import Signer
from countermark.attestations.predicate_types import PredicateName
from countermark.ledger.leaf import EntryKind
from countermark.ledger.submission import Submission


def test_a_statement_is_found_by_what_it_is_about(world: World) -> None:
    done = world.image()
    (hit,) = search_ledger(world.workspace, f"oci-config:{IMAGE.hex[:5]}").hits
    assert (hit.digest, hit.index, hit.role, hit.predicate_type) == (str(IMAGE), done.index, "subject", PredicateName.IMAGE.uri)


def test_a_kept_file_is_found_by_its_digest(world: World) -> None:
    signer = Signer.load(str(world.key("ci")))
    ((kept,), _) = append(world.workspace, [Submission.sign(EntryKind.ATTESTATION, FILE_TYPE, b'{"not": "a statement"}', signer)])
    (hit,) = search_ledger(world.workspace, f"payload:{kept.payload.hex[:9]}").hits
    assert (hit.digest, hit.index, hit.predicate_type) == (str(kept.payload), kept.index, FILE_TYPE)
