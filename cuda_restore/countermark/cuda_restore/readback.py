"""Reading back: what lies in a restored cache, held against the reference's expectation, page by page.

Where the reference says that a page must lie is where its digest is taken, so a page that was planned and placed elsewhere shows.
"""

import secrets
from dataclasses import replace

import numpy as np

from countermark.cuda_restore.device import Bytes
from countermark.cuda_restore.page_digest import DigestKey
from countermark.cuda_restore.reference import Page, differing_pages, expected_digests, page_homes, pages_in_order
from countermark.cuda_restore.result import PageReadBack
from countermark.cuda_restore.session import RankSession
from countermark.cuda_restore.store import Folder


def by_reference(session: RankSession) -> RankSession:
    """The session, its restores reading back where the reference says that the pages are."""
    request = session.request
    return replace(session, request=replace(request, read_back=page_homes(request.arena, request.blocks)))


def read_back(session: RankSession) -> PageReadBack:
    """The digests of the pages as they lie there now, under a key drawn now."""
    key, request = DigestKey.of(secrets.token_bytes(16)), session.request
    homes = page_homes(request.arena, request.blocks)
    return PageReadBack(key, session.device.page_digests(request.destination, homes, key, session.stream))


def bad_pages(session: RankSession, found: PageReadBack) -> tuple[int, ...]:
    """The pages, by number in stream order, whose digests are not those of the stored ones.

    Reads and authenticates the whole snapshot once more, its stream digest too. Raises `InputError` when that fails.
    """
    request = session.request
    with Folder.at(request.chunks) as chunks:
        expected = expected_digests(request.loaded.manifest, chunks, request.arena.layout, found.key)
    return tuple(differing_pages(expected, found.digests))


def page_name(session: RankSession, number: int) -> Page:
    """The page with that number in stream order."""
    return pages_in_order(session.request.arena.layout, session.request.blocks.counts)[number]


def pages_of(session: RankSession) -> Bytes:
    """The bytes of all pages as they lie there now, one behind the other in stream order. For small caches."""
    memory, request = session.memory(), session.request
    return np.concatenate([memory[start : start + size] for start, size in page_homes(request.arena, request.blocks).tolist()])
