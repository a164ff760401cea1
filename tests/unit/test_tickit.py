"""TICKIT's generator: the shape that it promises, and the same rows each time."""

from __future__ import annotations

import re
from datetime import datetime, time
from decimal import Decimal

from examples.tickit.source.generator import COMMISSION, Row, Tickit
from examples.tickit.source.stack import FOLDER, PROJECT, TABLES, TOPICS
from ingest.topics import read_topics

SMALL = Tickit(0.01)
ROWS = {
    "category": [*SMALL.categories()],
    "event": [*SMALL.events()],
    "venue": [*SMALL.venues()],
    "date": [*SMALL.dates()],
    "listing": [*SMALL.listings()],
    "sale": [*SMALL.sales()],
    "user": [*SMALL.users()],
}
BY_KEY = {table: {row[0]: row for row in rows} for table, rows in ROWS.items()}


def test_as_many_rows_as_the_documents_say() -> None:
    whole = Tickit()
    assert sum(1 for _ in whole.listings()) == 192_497
    assert sum(1 for _ in whole.sales()) == 171_100


def test_the_same_seed_gives_the_same_rows() -> None:
    assert [*Tickit(0.01).sales()] == ROWS["sale"]
    assert [*Tickit(0.01, seed=1).sales()] != ROWS["sale"]


def test_every_reference_is_of_a_row() -> None:
    for table, parents in {
        "event": ["venue", "category", "date"],
        "listing": ["user", "event", "date"],
        "sale": ["listing", "user", "user", "event", "date"],
    }.items():
        for column, parent in enumerate(parents, start=1):
            assert {row[column] for row in ROWS[table]} <= BY_KEY[parent].keys()


def test_sales_are_of_their_listing() -> None:
    left = {listid: row[4] for listid, row in BY_KEY["listing"].items()}
    for _, listid, seller, buyer, event, day, number, paid, commission, at in ROWS["sale"]:
        listing: Row = BY_KEY["listing"][listid]
        assert (seller, event) == listing[1:3]
        assert buyer != seller
        assert paid == number * listing[5]
        assert commission == (paid * COMMISSION).quantize(Decimal("0.01"))
        assert day >= listing[3]
        assert at >= datetime.combine(BY_KEY["date"][day][1], time())
        assert number > 0
        left[listid] -= number
    assert min(left.values()) == 0


def test_columns_are_those_of_the_tables() -> None:
    for name, tables in TABLES.items():
        script = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
        for table in tables:
            [body] = re.findall(rf"create table {name}\.{table} \((.*?)\n\);", script, re.S)
            assert len(body.strip().splitlines()) == len(ROWS[table][0]), table


def test_every_topic_has_its_bronze_table() -> None:
    listed = read_topics(PROJECT / "topics.toml").tables
    assert {listed[topic] for topic in TOPICS} == {f"tickit_{table}" for table in ROWS}
