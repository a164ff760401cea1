"""A made collection of films with Pagila's six tables, as Parquet files of a sink.

It changes as a source does: rows come, change and go, and each change is an event as
Debezium flattens it. Pagila's own rows are not used.
"""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_lakehouse.command import STYLE, run, version

Row = dict[str, Any]
Key = tuple[int, ...]

UNAVAILABLE = "__debezium_unavailable_value"
START_MS = 1_767_225_600_000  # 2026-01-01 in UTC
INT, TEXT = pa.int32(), pa.string()
# What Debezium sends of each column; the first ones are the key.
COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "actor": {"actor_id": INT, "first_name": TEXT, "last_name": TEXT},
    "category": {"category_id": INT, "name": TEXT},
    "language": {"language_id": INT, "name": TEXT},
    "film": {
        "film_id": INT,
        "title": TEXT,
        "description": TEXT,
        "release_year": INT,
        "language_id": INT,
        "original_language_id": INT,
        "rental_duration": INT,
        "rental_rate": TEXT,
        "length": INT,
        "replacement_cost": TEXT,
        "rating": TEXT,
        "special_features": pa.list_(TEXT),
        "fulltext": TEXT,
    },
    "film_actor": {"actor_id": INT, "film_id": INT},
    "film_category": {"film_id": INT, "category_id": INT},
}
KEY_LENGTHS = {"film_actor": 2, "film_category": 2}
ADDED = {"last_update": TEXT, "__op": TEXT, "__deleted": TEXT, "__table": TEXT}
ADDED |= {"__schema": TEXT, "__lsn": pa.int64(), "__source_ts_ms": pa.int64()}
PLACE = {"topic": TEXT, "partition": INT, "offset": pa.int64(), "timestamp": pa.int64()}
LANGUAGES = ("English", "Deutsch", "日本語", "Français", "Türkçe", "Ελληνικά")
CATEGORIES = ("Adventure", "Cartoon", "Comedy", "Crime", "Drama", "Nature", "Travel")
RATINGS = ("G", "PG", "PG-13", "R", "NC-17", None)
FEATURES = ("Trailers", "Commentaries", "Deleted Scenes", "Behind the Scenes")
FIRST_NAMES = ("Ada", "Béla", "Chloë", "Dana", "Émile", "Farid", "Greta", "Hana")
LAST_NAMES = ("Öztürk", "O'Hara", "Quist", "Ruiz", "Stone")
ADJECTIVES = ("Amber", "Brisk", "Candid", "Distant", "Electric", "Frozen", "Gentle")
NOUNS = ("Orchard", "Harbour", "Lantern", "Meridian", "Sparrow", "Tunnel", "Winter")


class Collection:
    """The source: what its tables have now, and the events that made it so.

    Args:
        seed: of all that is drawn.
    """

    def __init__(self, seed: int = 1928) -> None:
        self._random = random.Random(seed)
        self._position = 0
        self._offsets = dict.fromkeys(COLUMNS, 0)
        self._events: dict[str, list[Row]] = {table: [] for table in COLUMNS}
        self.rows: dict[str, dict[Key, Row]] = {table: {} for table in COLUMNS}

    def fill(self) -> None:
        """Add the first rows."""
        for number, name in enumerate(LANGUAGES, start=1):
            self.put("language", language_id=number, name=f"{name:<20}")
        for number, name in enumerate(CATEGORIES, start=1):
            self.put("category", category_id=number, name=name)
        names = [(first, last) for first in FIRST_NAMES for last in LAST_NAMES]
        for number, (first, last) in enumerate(names, start=1):
            self.put("actor", actor_id=number, first_name=first, last_name=last)
        for _ in range(120):
            self.add_film()

    def change(self, count: int) -> None:
        """Draw changes: of a film's rating, price or features, and of who is in it."""
        for _ in range(count):
            film = self._pick(sorted(self.rows["film"]))
            kind = self._pick(("rate", "price", "feature", "cast", "add", "remove"))
            if kind == "add":
                self.add_film()
            elif kind == "remove":
                self.remove_film(film)
            elif kind == "cast":
                cast = [key for key in self.rows["film_actor"] if key[1] == film[0]]
                self.delete("film_actor", self._pick(cast))
                (actor,) = self._pick(
                    sorted(self.rows["actor"].keys() - {(each,) for each, _ in cast})
                )
                self.put("film_actor", actor_id=actor, film_id=film[0])
            else:
                self.edit("film", film, **self._edited(kind))

    def add_film(self) -> None:
        """Add a film with its actors and its category."""
        number = max(self.rows["film"], default=(0,))[0] + 1
        words = self._pick(ADJECTIVES), self._pick(NOUNS)
        lexemes = [f"'{word.lower()}':{place}" for place, word in enumerate(words, start=1)]
        self.put(
            "film",
            film_id=number,
            title=" ".join(words).upper(),
            description=f"A story of the {words[1].lower()} that nobody saw",
            release_year=self._random.randint(1960, 2025),
            language_id=self._pick((1, 1, 1, 2, 3, 4, 5)),
            original_language_id=self._pick((None, None, None, 2, 4)),
            rental_duration=self._random.randint(3, 7),
            rental_rate=self._pick(("0.99", "2.99", "4.99")),
            length=self._random.randint(46, 185),
            replacement_cost=f"{self._random.randint(9, 29)}.99",
            rating=self._pick(RATINGS),
            fulltext=" ".join(sorted(lexemes)),
            **self._edited("feature"),
        )
        category = self._random.randint(1, len(CATEGORIES) - 1)
        self.put("film_category", film_id=number, category_id=category)
        for actor in self._random.sample(range(1, len(self.rows["actor"])), 4):
            self.put("film_actor", actor_id=actor, film_id=number)

    def remove_film(self, key: Key) -> None:
        """Delete a film, and first what refers to it."""
        for table in ("film_actor", "film_category"):
            place = [*COLUMNS[table]].index("film_id")
            for its in [each for each in self.rows[table] if each[place] == key[0]]:
                self.delete(table, its)
        self.delete("film", key)

    def put(self, table: str, **row: Any) -> None:
        """Add a row."""
        key = tuple(row[name] for name in _key_names(table))
        self.rows[table][key] = row
        self._send(table, "c", row)

    def edit(self, table: str, key: Key, **values: Any) -> None:
        """Change columns of a row; Debezium leaves out a long text that stays as it was."""
        self.rows[table][key] |= values
        sent = self.rows[table][key]
        self._send(table, "u", sent | {"description": UNAVAILABLE})

    def delete(self, table: str, key: Key) -> None:
        """Delete a row: the event has its key alone."""
        del self.rows[table][key]
        self._send(table, "d", dict(zip(_key_names(table), key, strict=True)))

    def write(self, landing: Path) -> int:
        """Write the events since the last call, a file for each topic; how many."""
        count = 0
        for table, events in self._events.items():
            if events:
                place = events[-1]["metadata"]
                file = landing / place["topic"] / "0" / f"{place['offset']:012d}.parquet"
                file.parent.mkdir(parents=True, exist_ok=True)
                rows = pa.Table.from_pylist(events, _schema(table))
                pq.write_table(rows, file, compression="snappy")
                count += len(events)
            self._events[table] = []
        return count

    def _pick(self, values: Any) -> Any:
        return self._random.choice(values)

    def _edited(self, kind: str) -> Row:
        if kind == "rate":
            return {"rating": self._pick(RATINGS)}
        if kind == "price":
            return {"rental_rate": self._pick(("1.99", "3.99", "5.99"))}
        features = self._random.sample(FEATURES, self._random.randint(0, 3))
        return {"special_features": features or None}

    def _send(self, table: str, op: str, row: Row) -> None:
        """A record of Kafka, as Lenses' sink keeps it with ``store.envelope``."""
        self._position += 1
        time = START_MS + 1000 * self._position
        value = row | {"__op": op, "__deleted": "true" if op == "d" else "false"}
        value |= {"__table": table, "__schema": "public", "__lsn": self._position}
        value |= {"__source_ts_ms": time}
        if op != "d":
            value["last_update"] = datetime.fromtimestamp(time / 1000, UTC).isoformat()
        place = {"topic": f"pagila.public.{table}", "partition": 0}
        place |= {"offset": self._offsets[table], "timestamp": time}
        self._offsets[table] += 1
        key = {name: row[name] for name in _key_names(table)}
        self._events[table].append({"key": key, "value": value, "metadata": place})


def _key_names(table: str) -> list[str]:
    return [*COLUMNS[table]][: KEY_LENGTHS.get(table, 1)]


def _schema(table: str) -> pa.Schema:
    columns = COLUMNS[table]
    key = {name: columns[name] for name in _key_names(table)}
    parts = {"key": key, "value": columns | ADDED, "metadata": PLACE}
    return pa.schema(
        {name: pa.struct(list(fields.items())) for name, fields in parts.items()}
    )


@click.command("examples.pagila.source", context_settings=STYLE)
@version
@click.argument("landing", type=click.Path(path_type=Path))
@click.option(
    "--changes", type=click.IntRange(0), default=0, help="Of films, after the first rows."
)
def command(landing: Path, changes: int) -> None:
    """Write the events of 120 films, and of changes to them, as Parquet below LANDING.

    Each call begins with the same events.
    """
    collection = Collection()
    collection.fill()
    written = collection.write(landing)
    collection.change(changes)
    written += collection.write(landing)
    click.echo(f"{written} records below {landing}")


def main(arguments: list[str] | None = None) -> int:
    """Write the files."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
