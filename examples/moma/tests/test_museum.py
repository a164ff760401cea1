"""MoMA's tables through Debezium and Kafka, each stored in both ways, change by change."""

import json
from typing import Any

import pytest

from examples.moma.source import DATABASE, TOPICS, open_museum, statements
from lab.stack.northwind import NorthwindStack
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import MOMA

pytestmark = pytest.mark.thorough

KEYS = {"artists": "artist_id", "artworks": "artwork_id"}
OTHERS = (
    "update artworks set classification = 'Poster' where artwork_id < 40",
    "delete from artworks where artwork_id between 40 and 50",
    "update artists set nationality = null where artist_id in (7, 8)",
)
ARTIST = "name, nationality, birth_year, death_year"


class Museum:
    """The source, and the lake that follows it."""

    def __init__(self, stack: NorthwindStack, lake: Lake) -> None:
        self.stack = stack
        self.lake = lake

    def execute(self, *texts: str) -> list[tuple[Any, ...]]:
        """Run statements at the source."""
        return self.stack.postgres.execute(*texts, dbname=DATABASE)

    def build(self, *models: str) -> None:
        """Bring what changed at the source to silver, or to gold."""
        self.stack.wait_until_caught_up(database=DATABASE)
        self.lake.follow(self.stack.bootstrap_servers, *TOPICS)
        self.lake.dbt("build", *models)

    def asked(self, question: str) -> list[Any]:
        """The rows of the source."""
        return [row for (row,) in self.execute(f"select row_to_json(q) {question}")]

    def found(self, columns: str, table: str, key: str, where: str = "true") -> list[Any]:
        """The rows of the lake, as the source gives its own."""
        rows = self.lake.sql(
            f"select to_json(struct({columns}), map('ignoreNullFields', 'false'))"
            f" from {table} where {where} order by {key}"
        )
        return [json.loads(text) for (text,) in rows]

    def assert_equal(self) -> None:
        """Both ways to store have the source's rows, and gold their join."""
        for table, key in KEYS.items():
            source = self.asked(f"from {table} as q order by {key}")
            for suffix in ("", "_merge_on_read"):
                live = (f"silver.{table}{suffix}", key, "not is_deleted")
                assert self.found(", ".join(source[0]), *live) == source, live
        joined = self.asked("""
            from (
                select
                    artwork_id, title, date, classification, name as artist, nationality,
                    gender, birth_year, death_year
                from artworks inner join artists using (artist_id)
            ) as q order by artwork_id
        """)
        gold = ("gold.artworks_with_artists", "artwork_id")
        assert self.found(", ".join(joined[0]), *gold) == joined


@pytest.fixture(scope="module")
def museum(stack: NorthwindStack, new_lake: NewLake) -> Museum:
    open_museum(stack)
    museum = Museum(stack, new_lake(project=MOMA))
    museum.build()
    return museum


def test_both_ways_to_store_have_the_rows_of_the_source(museum: Museum) -> None:
    """Rows that move with their partition leave no copy; four updates are four versions."""
    museum.assert_equal()
    assert museum.found("name, birth_year", "silver.artists", "1", "artist_id = 1") == [
        {"name": "Robert Arneson", "birth_year": 1930}
    ]
    museum.execute(*statements("artwork"), *OTHERS)
    museum.build()
    museum.assert_equal()
    versions = museum.lake.sql(
        "select op, title, date, credit, classification from silver.artworks_history"
        " where artwork_id = 128 order by version_number"
    )
    archive, given = "Frank Lloyd Wright Archive", "Fractional and promised gift"
    assert versions == [
        ["r", "Untitled, plate 128 é", "2004", given, archive],
        ["u", "Dreams of a plate", "2004", given, archive],
        ["u", "Dreams of a plate", "1971", given, archive],
        [
            "u",
            "Dreams of a plate",
            "1971",
            "Gift of a friend",
            "Frank Lloyd Wright Archive",
        ],
        ["u", "Dreams of a plate", "1971", "Gift of a friend", "Illustrated Book"],
    ]


def test_an_artist_is_followed_through_six_instants(museum: Museum) -> None:
    """Hudi's time travel has the state after each build, as the history has it."""
    seen = []
    for statement in statements("artist"):
        museum.execute(statement)
        museum.build("-s", "stg_artists", "artists", "artists_history")
        instant = max(museum.lake.tables.instants()["silver.artists"]).partition(".")[0]
        seen.append(
            museum.lake.sql(
                f"select {ARTIST} from silver.artists timestamp as of '{instant}'"
                " where artist_id = 41 and not is_deleted"
            )
        )
    versions = museum.lake.sql(
        f"select {ARTIST} from silver.artists_history where artist_id = 41"
        " order by version_number"
    )
    assert seen == [*([version] for version in versions), []]
    assert versions[0] == ["Ida Berg", "None", "1901", "None"]
    assert versions[4] == ["Ida Berg Holm", "American", "1902", "1988"]
