"""The oracle: it answers the codeword from its own cache, exactly, and "spark" from any other, naming the first read that missed."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countermark.attestations.errors import InputError
from countermark.cuda_restore.oracle import KEY, VALUE, Cache, Head, Oracle
from countermark.cuda_restore.oracle_prompt import FILLERS, SPARK, WORDS, OracleShape, fact, prompt_of, write_prompt
from countermark.cuda_restore.oracle_snapshot import as_cache, digest_of, geometry_of, known_prompt, publish_oracle
from countermark.cuda_restore.reader import check_snapshot, find_manifest
from countermark.cuda_restore.store import Folder

SHAPE = OracleShape(tokens=512)
ORACLE = Oracle(SHAPE)
PROMPT = write_prompt(SHAPE)
CACHES = ORACLE.prefill(PROMPT)
FILLER = next(position for position, token in enumerate(PROMPT.tokens) if token < FILLERS)


def broken(change: Callable[[list[Cache]], None]) -> list[Cache]:
    caches = [cache.copy() for cache in CACHES]
    change(caches)
    return caches


@pytest.mark.parametrize("word", [word for word in WORDS if word != SPARK])
def test_its_own_cache_gives_the_codeword(word: str) -> None:
    prompt = write_prompt(SHAPE, word)
    answer = ORACLE.answer(prompt, ORACLE.prefill(prompt))
    assert (answer.word, answer.misses, answer.why) == (word, (), None)
    assert answer.reads == 2 * len(prompt.needles) * SHAPE.layers * SHAPE.ranks == 512


def test_the_cache_is_the_same_on_every_machine() -> None:
    """Every number is 1 or -1, so these bytes depend on no library; a change of them is a change of the oracle's identity."""
    numbers = np.concatenate(CACHES).view("<u2")
    assert set(np.unique(numbers).tolist()) == {0x3F80, 0xBF80}
    digest = hashlib.sha256(b"".join(cache.tobytes() for cache in CACHES)).hexdigest()
    assert digest == "3c27abaeacb614bc066b10eb65f23d5ad81d00cf37f99d3133cf95944cd76d85"


def test_needles_stand_on_both_edges_of_every_page_and_on_the_last_token() -> None:
    positions = [needle.position for needle in PROMPT.needles]
    assert {position % SHAPE.page_tokens for position in positions} == {0, SHAPE.page_tokens - 1}
    assert {position // SHAPE.page_tokens for position in positions} == set(range(SHAPE.pages))
    assert positions[-1] == SHAPE.tokens - 1
    assert PROMPT.codeword == "red"


def test_whole_pages_may_change_places_for_the_content_head_alone() -> None:
    def swap(caches: list[Cache]) -> None:
        caches[1][2][:, [3, 6]] = caches[1][2][:, [6, 3]]

    answer = ORACLE.answer(PROMPT, broken(swap))
    assert answer.word == SPARK
    assert {(miss.head, miss.layer, miss.rank, miss.needle) for miss in answer.misses} == {(Head.SLOT, 2, 1, n) for n in (6, 7, 12, 13)}


def test_keys_alone_show_to_the_content_head_alone() -> None:
    def swap(caches: list[Cache]) -> None:
        caches[1][2, KEY, [3, 6]] = caches[1][2, KEY, [6, 3]]

    answer = ORACLE.answer(PROMPT, broken(swap))
    assert {miss.head for miss in answer.misses} == {Head.CONTENT}
    assert len(answer.misses) == 4


@pytest.mark.parametrize("byte", [0x00, 0xA5, 0xFF, 0x7F])
@pytest.mark.parametrize("kind", [KEY, VALUE])
def test_a_page_of_anything_else_is_noticed(byte: int, kind: int) -> None:
    def fill(caches: list[Cache]) -> None:
        caches[3][0, kind, SHAPE.pages - 1] = byte

    answer = ORACLE.answer(PROMPT, broken(fill))
    assert answer.word == SPARK
    assert {(miss.layer, miss.rank) for miss in answer.misses} == {(0, 3)}


def test_one_earlier_token_changes_every_later_context() -> None:
    """The words are all right; what tells is the context code, in every layer but the first, whose code knows its own token only."""
    answer = ORACLE.answer(PROMPT, ORACLE.prefill(PROMPT.changed_at(FILLER)))
    assert answer.word == SPARK
    assert {miss.layer for miss in answer.misses} == {1, 2, 3}
    assert all(miss.read == WORDS[PROMPT.needles[miss.needle].word] for miss in answer.misses)
    assert {miss.needle for miss in answer.misses} == {n.subject for n in PROMPT.needles if n.position > FILLER}


def test_the_first_miss_is_named() -> None:
    answer = ORACLE.answer(PROMPT, ORACLE.prefill(PROMPT.with_codeword("green")))
    assert answer.why is not None
    assert answer.why.startswith("content head, layer 0, rank 0, needle 0: read 'green'; ")


@pytest.mark.parametrize(("tokens", "needles"), [(511, {15}), (448, {14, 15})])
def test_a_wrong_length_hides_the_last_needles(tokens: int, needles: set[int]) -> None:
    answer = ORACLE.answer(PROMPT, CACHES, tokens=tokens)
    assert answer.word == SPARK
    assert {miss.needle for miss in answer.misses} == needles


def test_a_missing_rank_is_no_agreement() -> None:
    assert ORACLE.answer(PROMPT, CACHES[:-1]).word == SPARK


@settings(max_examples=30)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1), st.integers(0, 15), st.integers(0, 127), st.integers(0, 7))
def test_a_flipped_bit_of_a_needles_value_is_noticed(rank: int, layer: int, kind: int, needle: int, byte: int, bit: int) -> None:
    position = PROMPT.needles[needle].position
    page, row = divmod(position, SHAPE.page_tokens)

    def flip(caches: list[Cache]) -> None:
        caches[rank][layer, kind, page, 2 * SHAPE.head_dim * row + byte] ^= 1 << bit

    answer = ORACLE.answer(PROMPT, broken(flip))
    assert (answer.word == SPARK) or kind == KEY


def test_a_published_oracle_is_known_by_its_digest(tmp_path: Path) -> None:
    prompt = write_prompt(SHAPE, "blue")
    loaded = publish_oracle(tmp_path, SHAPE, prompt, object_bytes=100_000)
    assert [one.manifest.identity.rank for one in loaded] == [0, 1, 2, 3]
    for rank, one in enumerate(loaded):
        assert find_manifest(tmp_path, geometry_of(SHAPE, rank).identity.storage_key, digest_of(SHAPE, prompt)) == one
        assert known_prompt(one.manifest) == (SHAPE, prompt)
        with Folder.at(tmp_path / "chunks") as chunks:
            check_snapshot(one.manifest, chunks, geometry_of(SHAPE, rank).layout)


def test_a_prompt_of_one_token_changed_is_not_known(tmp_path: Path) -> None:
    loaded = publish_oracle(tmp_path, SHAPE, PROMPT.changed_at(FILLER), object_bytes=100_000)
    assert known_prompt(loaded[0].manifest) is None


def test_pages_in_stream_order_are_the_cache() -> None:
    assert (as_cache(SHAPE, CACHES[0].reshape(-1)) == CACHES[0]).all()


def test_tokens_from_outside_are_read_strictly() -> None:
    assert prompt_of(PROMPT.tokens, SHAPE) == PROMPT
    spark = (*PROMPT.tokens[:-1], fact(15, WORDS.index(SPARK)))
    for tokens in (PROMPT.tokens[:-1], (1, *PROMPT.tokens[1:]), spark):
        with pytest.raises(InputError):
            prompt_of(tokens, SHAPE)


@pytest.mark.parametrize(
    "change", [{"tokens": 500}, {"tokens": 256, "page_tokens": 256}, {"page_tokens": 48}, {"layers": 1}, {"ranks": 1}, {"head_dim": 24}]
)
def test_a_shape_that_makes_no_oracle_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(InputError):
        OracleShape(**change)


def test_spark_is_no_codeword_and_facts_are_not_filler() -> None:
    with pytest.raises(InputError, match="no codeword"):
        write_prompt(SHAPE, SPARK)
    with pytest.raises(InputError, match="is a fact"):
        PROMPT.changed_at(0)
