"""No bit of any row can change, and no row can go, without the audit saying so; no anchor helps."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from ledger_box import Box, raw

from countermark.attestations.codes import ExitCode
from countermark.ledger.schema import COLUMNS

SEED = 20260830
DRAWS = 5
OUTSIDE = {"quarantine"}
EMPTY = {"cosignature"}
Cell: TypeAlias = int | str | bytes | None
TABLES = [table for table in COLUMNS if table not in OUTSIDE | EMPTY]


def _flipped(value: Cell, rng: random.Random) -> Cell:
    """The value with one bit changed, of the same type."""
    if isinstance(value, int):
        return value ^ (1 << rng.randrange(31))
    data = value.encode() if isinstance(value, str) else value or b""
    while data:
        at, bit = rng.randrange(len(data)), rng.randrange(8 if isinstance(value, bytes) else 7)
        changed = data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
        if isinstance(value, bytes):
            return changed
        try:
            text = changed.decode()
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    return None


def _keys(connection: sqlite3.Connection, table: str) -> list[str]:
    found = [row[1] for row in sorted(connection.execute(f"PRAGMA table_info({table})"), key=lambda row: row[5]) if row[5]]
    return found or ["rowid"]


def _draws(box: Box, table: str) -> Iterator[tuple[str, str, tuple[Cell, ...], Cell]]:
    """(where clause, column, key values, new value) of random cells."""
    connection = raw(box.path)
    keys = _keys(connection, table)
    rows = connection.execute(f"SELECT {', '.join(keys)}, * FROM {table}").fetchall()
    connection.close()
    rng = random.Random(f"{SEED} {table}")
    where = " AND ".join(f"{key} IS ?" for key in keys)
    while True:
        row = rng.choice(rows)
        cells = [(column, value) for column, value in zip(COLUMNS[table], row[len(keys) :], strict=True) if value is not None]
        column, value = rng.choice(cells)
        new = _flipped(value, rng)
        if new not in (None, value):
            yield where, column, row[: len(keys)], new


@pytest.mark.parametrize("table", TABLES)
def test_a_changed_bit_is_seen(large: Box, table: str, tmp_path: Path) -> None:
    large.forget()
    seen = 0
    for number, (where, column, key, new) in enumerate(_draws(large, table)):
        if seen == DRAWS:
            break
        box = large.copy(tmp_path / f"copy-{number}")
        try:
            box.edit(f"UPDATE {table} SET {column} = ? WHERE {where}", values=(new, *key))
        except sqlite3.IntegrityError:
            continue
        report = box.audit()
        assert report.exit is ExitCode.TAMPERED, f"{table}.{column} at {key} became {new!r}: {report.findings}"
        seen += 1
    assert seen == DRAWS


@pytest.mark.parametrize("table", TABLES)
def test_a_removed_row_is_seen(large: Box, table: str, tmp_path: Path) -> None:
    large.forget()
    draws = _draws(large, table)
    for number in range(4):
        where, _, key, _ = next(draws)
        box = large.copy(tmp_path / f"copy-{number}")
        box.edit(f"DELETE FROM {table} WHERE {where}", values=key)
        report = box.audit()
        allowed = {ExitCode.TAMPERED, ExitCode.CANNOT_TELL} if table in ("payload", "tile") else {ExitCode.TAMPERED}
        assert report.exit in allowed, f"{table} at {key} removed: {report.findings}"


def test_the_untouched_ledger_passes(large: Box) -> None:
    report = large.audit()
    assert (report.exit, report.findings) == (ExitCode.YES, ())
    assert report.evaluated == report.of == report.size > 256
    large.forget()
    assert large.audit().exit is ExitCode.YES
