"""A made collection with the columns of the Museum of Modern Art's artists and artworks.

It changes as a source does: rows come, change and go, and each change is an event.
The museum's own files (github.com/MuseumofModernArt/collection) are not used.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import UTC, date, datetime, timedelta
from typing import Any

import click

from cdc_lakehouse.command import STYLE, run, version

Row = dict[str, Any]
Record = dict[str, Any]

UNAVAILABLE = "__debezium_unavailable_value"
START_MS = 1_767_225_600_000  # 2026-01-01 in UTC
KEYS = {"artists": "constituent_id", "artworks": "object_id"}
NATIONALITIES = ("American", "French", "Côte d'Ivoire", "Bosnian / Herzegovinian", None)
MEDIA = ("Oil on canvas", "Gelatin silver print", 'Ink on paper, 9 x 12"', "Blätter", None)
DEPARTMENTS = ("Drawings & Prints", "Photography", "Painting & Sculpture")
EPOCH = date(1970, 1, 1)


class Collection:
    """The source: what is in both tables now, and the events that made it so.

    Args:
        seed: of all that is drawn.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._events: list[Record] = []
        self._position = 0
        self.rows: dict[str, dict[int, Row]] = {table: {} for table in KEYS}

    @property
    def time(self) -> datetime:
        """When the last change was made: one follows the other after a second."""
        return datetime.fromtimestamp(START_MS / 1000 + self._position, UTC)

    def taken(self) -> list[Record]:
        """The events since the last call, in the order of the source's log."""
        events, self._events = self._events, []
        return events

    def add(self, table: str, count: int) -> None:
        """Add rows."""
        make = {"artists": self._artist, "artworks": self._artwork}[table]
        first = max(self.rows[table], default=0) + 1
        for key in range(first, first + count):
            self.rows[table][key] = make(key)
            self._send(table, "c", key, self.rows[table][key])

    def move(self, table: str, key: int, nationality: str | None) -> None:
        """Give a row another nationality; Debezium leaves its longest text out."""
        row = self.rows[table][key]
        row["nationality"] = nationality
        text = {"artists": "artist_bio", "artworks": "title"}[table]
        self._send(table, "u", key, row | {text: UNAVAILABLE})

    def edit(self, table: str, key: int, **values: Any) -> None:
        """Change other columns of a row, which stays in its partition."""
        self.rows[table][key] |= values
        self._send(table, "u", key, self.rows[table][key])

    def delete(self, table: str, key: int) -> None:
        """Delete a row, under REPLICA IDENTITY DEFAULT: the event has its key alone."""
        del self.rows[table][key]
        self._send(table, "d", key, {})

    def change(self, table: str, count: int) -> None:
        """Draw changes of rows but the first three; one in two moves its row."""
        for _ in range(count):
            key = self._pick(sorted(self.rows[table])[3:])
            kind = self._pick(["move"] * 3 + ["edit", "delete", "add"])
            if kind == "move":
                self.move(table, key, self._pick(NATIONALITIES))
            elif kind == "edit":
                self.edit(table, key, **self._edited(table))
            elif kind == "delete":
                self.delete(table, key)
            else:
                self.add(table, 1)

    def _pick(self, values: Any) -> Any:
        return self._random.choice(values)

    def _edited(self, table: str) -> Row:
        if table == "artists":
            return {"end_date": self._random.randint(1900, 2020)}
        return {"credit_line": f"Gift of a friend, {self._random.randint(1930, 2020)}"}

    def _artist(self, key: int) -> Row:
        nationality = self._pick(NATIONALITIES)
        born = self._random.choice([0, *range(1850, 1990)])
        return {
            "constituent_id": key,
            "display_name": f"Artist {key} " + self._pick(("Müller", "O'Neill", "Abdić")),
            "artist_bio": f"{nationality or 'Nationality unknown'}, born {born}",
            "nationality": nationality,
            "gender": self._pick(("female", "male", None)),
            "begin_date": born,
            "end_date": 0,
            "wiki_qid": f"Q{key}" if key % 3 else None,
            "ulan": f"{500_000_000 + key}" if key % 2 else None,
        }

    def _artwork(self, key: int) -> Row:
        makers = self._random.sample(range(1, 40), self._random.choice([1, 1, 1, 2]))
        acquired = EPOCH + timedelta(days=self._random.randint(-14_000, 19_000))
        return {
            "object_id": key,
            "title": f"Untitled, plate {key} " + self._pick(("(recto)", 'from "Ærø"', "é")),
            "constituent_id": ", ".join(map(str, makers)),
            "artist": ", ".join(f"Artist {maker}" for maker in makers),
            "nationality": self._pick(NATIONALITIES),
            "date_made": self._pick(("1976-77", "c. 1900", "n.d.", "(1962)", None)),
            "medium": self._pick(MEDIA),
            "dimensions": '19 1/8 x 66 1/2" (48.6 x 168.9 cm)',
            "credit_line": "Fractional and promised gift",
            "accession_number": f"{key % 999}.19{key % 90 + 10}",
            "classification": self._pick(("Print", "Photograph", "Drawing")),
            "department": self._pick(DEPARTMENTS),
            "date_acquired": acquired if key % 7 else None,
        }

    def _send(self, table: str, op: str, key: int, row: Row) -> None:
        """An event as Debezium's unwrap transform writes it: a date is a count of days."""
        self._position += 1
        # The source calls it ``date``.
        sent = {{"date_made": "date"}.get(name, name): value for name, value in row.items()}
        if isinstance(acquired := sent.get("date_acquired"), date):
            sent["date_acquired"] = (acquired - EPOCH).days
        sent[KEYS[table]] = key
        sent |= {"__op": op, "__deleted": "true" if op == "d" else "false"}
        sent |= {"__db": "moma", "__schema": "datalake", "__table": table}
        time = START_MS + 1000 * self._position
        sent |= {"__lsn": self._position, "__source_ts_ms": time}
        place = {"topic": f"demo.datalake.{table}", "partition": 0}
        place |= {"offset": self._position, "timestamp": time}
        event = {"key": {KEYS[table]: key}, "value": sent, "metadata": place}
        self._events.append(event)


@click.command("examples.moma.source", context_settings=STYLE)
@version
@click.option(
    "--changes",
    type=click.IntRange(0),
    default=0,
    help="Of each table, after its first rows.",
)
@click.option("--seed", default=1929, help="Of all that is drawn.")
def command(changes: int, seed: int) -> None:
    """Print the events of 40 artists and 400 artworks, and of changes to them.

    The same seed begins with the same events.
    """
    source = Collection(seed)
    source.add("artists", 40)
    source.add("artworks", 400)
    for _ in range(changes):
        for table in KEYS:
            source.change(table, 1)
    for event in source.taken():
        click.echo(json.dumps(event, ensure_ascii=False))


def main(arguments: list[str] | None = None) -> int:
    """Print the events."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
