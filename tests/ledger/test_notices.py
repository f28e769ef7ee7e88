"""The chain of notices: whatever the derived rows say, no negative record can be lost from it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_box import BASE, Box, make_box

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, TamperError
from countermark.attestations.statement import Statement
from countermark.ledger.leaf import NO_HASH, Leaf


def _notices(box: Box) -> list[int]:
    with box.reader() as reader:
        return [notice.index for notice in reader.notices()]


def test_notices_are_all_of_them_in_order(small: Box) -> None:
    assert _notices(small) == [0, 1, 2, 3, 4, 5]


def test_each_leaf_names_the_newest_notice_before_it(large: Box) -> None:
    with large.reader() as reader:
        newest = NO_HASH
        for index in range(reader.head.size):
            entry = reader.entry(index)
            assert entry.leaf.prev_notice == newest
            newest = entry.leaf_hash if entry.leaf.notice else newest


def test_a_rejection_is_read_though_its_rows_are_gone(small: Box) -> None:
    """Tamper case 64."""
    small.append(*(small.passed(number) for number in range(20)))
    before = _notices(small)
    small.forget()
    small.edit("DELETE FROM subject WHERE idx = 5", "DELETE FROM statement WHERE idx = 5")
    with small.reader() as reader:
        assert reader.find_subject("oci-config", "ab" * 32) == (3,)
        read = [Statement.parse(notice.payload, "-") for notice in reader.notices() if notice.leaf.payload_type.endswith("in-toto+json")]
        rejections = [statement for statement in read if statement.predicate_type == f"{BASE}rejection/v1"]
        assert [notice.index for notice in reader.notices()] == before
        assert [subject.digests["sha256"] for subject in rejections[0].subjects] == ["ab" * 32]
    report = small.audit()
    assert report.exit is ExitCode.TAMPERED
    assert "entry 5" in [finding.subject for finding in report.findings]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM entry WHERE idx = 5",
        "UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 6) WHERE idx = 5",
        "UPDATE entry SET leaf_hash = x'00' WHERE idx = 5",
        "UPDATE entry SET idx = 99 WHERE idx = 5",
        "UPDATE payload SET data = x'7b7d' WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 5)",
        "UPDATE entry SET leaf = zeroblob(200) WHERE idx = 5",
    ],
)
def test_a_broken_chain_is_tampering(small: Box, change: str) -> None:
    small.edit(change)
    with pytest.raises(TamperError) as caught, small.reader() as reader:
        reader.notices()
    assert caught.value.code is Code.LEDGER_TAMPERED


def test_a_notice_without_its_payload_is_no_notice_fewer(small: Box) -> None:
    small.edit("DELETE FROM payload WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 5)")
    with small.reader() as reader, pytest.raises(CannotTellError):
        reader.notices()


@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1, max_size=4))
def test_any_history_gives_its_notices(tmp_path_factory: pytest.TempPathFactory, batches: list[list[bool]]) -> None:
    box = make_box(tmp_path_factory.mktemp("history"))
    number, expected = 1, [0]
    for batch in batches:
        submissions = []
        for negative in batch:
            hexed = f"{number:064x}"
            submissions.append(box.rejection(hexed) if negative else box.passed(number))
            expected += [number] if negative else []
            number += 1
        box.append(*submissions)
    assert _notices(box) == expected
    assert box.audit().findings == ()


def test_the_flag_itself_is_covered_by_the_tree(small: Box) -> None:
    with small.reader() as reader:
        leaf = reader.entry(5).leaf.encode()
    cleared = leaf[:2] + b"\0" + leaf[3:]
    assert not Leaf.decode(cleared).notice
    small.edit("UPDATE entry SET leaf = ? WHERE idx = 5", values=(cleared,))
    with small.reader() as reader, pytest.raises(TamperError):
        reader.notices()
