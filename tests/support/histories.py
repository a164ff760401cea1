"""Histories of a few rows: what the source did, what Debezium sent, how it arrived.

A history is a list of small steps, so that Hypothesis can draw it and shorten it: every
list of steps is a history that a source could have had. A lane says which steps there
are, and how the records travel.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.records import (
    START_MS,
    UNAVAILABLE,
    Record,
    Row,
    envelope,
    flattened,
    position_at,
)
from tests.support.records import record as kafka_record
from tests.support.reference import Event, Snapshot

BATCHES = 4
KEYS = 5
DAY_MS = 86_400_000
KEYS_A_HISTORY = 10
LSNS_A_HISTORY = 1_000
COLUMNS = ("customer_id", "shipped_date", "employee", "order_items")
NOTE = "note"
TOASTED = ("employee", "order_items", NOTE)
PRODUCTS = (11, 42, 72, 42)
# A log that is sent again and again would double each time.
MOST_SENT_AGAIN = 16

EPOCHS = 3
GENERATIONS = 3
SNAPSHOTS = 2

# A text where a date is declared.
ODD_DATE = "soon"


@dataclass(frozen=True)
class Lane:
    """What may happen in the histories of one table."""

    name: str  # of the lane
    steps: tuple[str, ...]  # the kinds of steps
    leaves_out: bool = False  # whether changes leave unchanged TOASTed values out
    is_late: bool = False  # whether records arrive in any order, and twice
    partitions: int | None = 1  # of the topic; None where no record has a position
    has_composite_key: bool = False  # whether the key is two columns
    connector: str = "postgresql"  # whose positions its records have; they count as LSNs do
    has_odd_values: bool = False  # whether the source has dates that are none
    has_clock: bool = False  # whether the source's clock stands still, and is set back
    is_logged: bool = False  # whether its table is merge-on-read
    is_refreshed: bool = False  # whether a full refresh rebuilds it between two increments
    # how many histories, those with the most of the last kind of steps, whose cost is their
    # number's
    at_most: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of its table but the key; what the source adds comes last."""
        return (*COLUMNS, NOTE) if "add column" in self.steps else COLUMNS

    @property
    def source_table(self) -> str:
        """The table at the source, which bronze's table is called after."""
        return "cdc_events" if self.name == "everything" else f"lane_{self.name}"

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic of each epoch's records."""
        is_restored = "restore" in self.steps or self.name == "everything"
        epochs = range(EPOCHS if is_restored else 1)
        return tuple(f"lanes{number or ''}.public.{self.source_table}" for number in epochs)

    @property
    def marker_topics(self) -> tuple[str, ...]:
        """The topic of each epoch's markers of complete snapshots."""
        epochs = range(EPOCHS if "complete snapshot" in self.steps else 0)
        return tuple(f"lanes{epoch or ''}.public.complete_snapshots" for epoch in epochs)

    @property
    def silver_table(self) -> str:
        """The table of its rows. What holds everything is the project's own."""
        return "orders" if self.name == "everything" else self.source_table


def _flat(steps: list[Any]) -> Iterator[str]:
    """The steps of a list, in which lists of several lanes' are whole."""
    for step in steps:
        yield from step if isinstance(step, list) else [step]


LANES = tuple(
    Lane(name, **lane | {"steps": tuple(_flat(lane["steps"]))})
    for name, lane in yaml.safe_load(
        Path(__file__).with_name("lanes.yml").read_text(encoding="utf-8")
    )["lanes"].items()
)


@dataclass(frozen=True)
class Step:
    """One thing that happens; what a kind does not need of the numbers it ignores."""

    kind: str
    key: int = 0
    number: int = 0

    def bit(self, place: int) -> bool:
        """One of the number's bits."""
        return bool(self.number >> place & 1)


@dataclass(frozen=True)
class History:
    """Steps, and the batch that each record arrives in."""

    steps: tuple[Step, ...]  # in their order at the source
    # the batch of each record, again from the start where there are more
    spread: tuple[int, ...] = (0,)
    # records that arrive once more in another file: their number, and the batch
    repeats: tuple[tuple[int, int], ...] = ()
    form: str = "flattened"  # ``flattened`` or ``envelope``


@st.composite
def histories(draw: st.DrawFn, lane: Lane) -> History:
    """The histories of a lane."""
    steps = draw(
        st.lists(
            st.builds(
                Step,
                st.sampled_from(lane.steps),
                st.integers(0, KEYS - 1),
                st.integers(0, 255),
            ),
            min_size=4,
            max_size=20,
        )
    )
    spread = draw(st.lists(st.integers(0, BATCHES - 1), min_size=1, max_size=12))
    repeats: list[tuple[int, int]] = []
    if lane.is_late and draw(st.booleans()):
        places = st.tuples(st.integers(0, 30), st.integers(0, BATCHES - 1))
        repeats = draw(st.lists(places, max_size=3))
    form = draw(st.sampled_from(("flattened", "envelope")))
    return History(tuple(steps), tuple(spread), tuple(repeats), form)


@cache
def drawn(lane: Lane, count: int, seed_number: int) -> tuple[History, ...]:
    """Some histories of a lane; the same for the same seed."""
    found = dict.fromkeys(examples(histories(lane), count, seed_number))
    if lane.at_most is None:
        return tuple(found)

    def count_rare(history: History) -> int:
        return sum(step.kind == lane.steps[-1] for step in history.steps)

    return tuple(sorted(found, key=count_rare)[-lane.at_most :])


@dataclass
class Outcome:
    """A history as it came out, with keys, LSNs and offsets of its own in its lane."""

    lane: Lane  # what its records are of
    # the events that each batch brings, in their order in the log
    batches: list[list[Event]]
    # the source's rows in the end; None for an odd date
    rows: dict[int, Row] = field(default_factory=dict)
    # what it was; None of a story that a test has written down
    history: History | None = None
    # ``flattened`` or ``envelope``; ``, bare`` where deletes have no row
    form: str = "flattened"
    # after each change the LSN, the time in milliseconds, and the source's rows
    past: list[tuple[int, int, dict[int, Row]]] = field(default_factory=list)
    snapshots: tuple[Snapshot, ...] = ()  # those that are said to be complete
    number: int = 0  # among those of its lane

    def arrived(self, batch: int) -> list[Event]:
        """The events that have arrived with a batch and those before it."""
        return [event for part in self.batches[: batch + 1] for event in part]

    def applied(self, batch: int) -> list[Snapshot]:
        """The snapshots that a build after a batch knows to be complete.

        A marker waits for the reads that it counts; one that a later snapshot of its topic
        has overtaken is not waited for any more.
        """
        found: list[Snapshot] = []
        for number in range(batch + 1):
            arrived = self.arrived(number)
            latest = {
                each.topic: each.point
                for each in sorted(found, key=lambda each: each.point)
            }
            for each in self.snapshots:
                read = {event.key for event in arrived if each.has_read(event)}
                is_new = each.point > latest.get(each.topic, (-1, -1))
                if each.batch <= number and is_new and len(read) >= each.rows:
                    found.append(each)
        return found

    @property
    def first_key(self) -> int:
        """Where its keys begin."""
        return 1_000_000 + self.number * KEYS_A_HISTORY

    @property
    def base(self) -> int:
        """Where its LSNs and offsets begin."""
        return self.number * LSNS_A_HISTORY

    def position(self, lsn: float | None) -> str | None:
        """The position of one of its LSNs."""
        if lsn is None:
            return None
        return position_at(self.lane.connector, int(lsn) + self.base)

    def key(self, key: int) -> Any:
        """The key of a row in silver."""
        wide = self.first_key + key
        return f"{wide}-{wide % 7}" if self.lane.has_composite_key else wide

    def records(self, batch: int) -> Iterator[Record]:
        """The Kafka records of a batch."""
        for event in self.batches[batch]:
            yield self._record(event)
        for number, snapshot in enumerate(self.snapshots):
            if snapshot.rows and snapshot.batch == batch:
                yield self._marker(snapshot, number)

    def _marker(self, snapshot: Snapshot, number: int) -> Record:
        row = {
            "id": f"{self.number}-{number}",
            "topic": self.topic(snapshot.topic),
            "bronze_table": self.lane.source_table,
            "row_count": snapshot.rows,
        }
        value = flattened("r", row, snapshot.lsn + self.base, table="complete_snapshots")
        offset = self.number * 100 + number
        topic = self.lane.marker_topics[snapshot.epoch]
        return kafka_record({"id": row["id"]}, value, offset, topic)

    def topic(self, topic: str) -> str:
        """A topic of its own, where what is decided of one is decided of all its rows."""
        return f"{self.number}-{topic}" if self.lane.marker_topics else topic

    def _record(self, event: Event) -> Record:
        wide = self.first_key + (event.key or 0)
        key = {"order_id": wide}
        if self.lane.has_composite_key:
            key["part"] = wide % 7
        row = {**key, **event.values} | dict.fromkeys(sorted(event.missing), UNAVAILABLE)
        row |= dict.fromkeys(sorted(event.untyped), ODD_DATE)
        lsn = None if event.lsn is None else event.lsn + self.base
        lane, is_flat = self.lane, self.form.startswith("flattened")
        form: Any = flattened if is_flat and event.op != "t" else envelope
        is_bare = self.form.endswith("bare") and event.op == "d"
        # A truncate is of one source table: each history has its own.
        own = f"_{self.number}" if "truncate" in lane.steps else ""
        table = event.table or lane.source_table + own
        value = form(
            event.op,
            row if not is_bare else key if is_flat else None,
            *(lsn, event.time, table, lane.connector),
        )
        offset = None if event.offset is None else event.offset + self.base
        # A record may come without a key, which the row has, too.
        has_key = lane.name != "everything" or is_bare or (event.offset or 0) % 7 != 3
        has_key &= event.op != "t"
        return kafka_record(
            key if has_key else None,
            value,
            offset,
            self.topic(event.topic or lane.topics[event.epoch]),
            event.partition,
            START_MS + DAY_MS * event.generation,
        )

    def __str__(self) -> str:
        lines = [f"lane {self.lane.name}, {self.history}"]
        for number, batch in enumerate(self.batches):
            lines.append(f"  batch {number} brings")
            for event in batch:
                lines.append(
                    "    " + " ".join(f"{n}={v}" for n, v in vars(event).items() if v)
                )
        return "\n".join([*lines, f"  the source ended as {self.rows}"])


def play(history: History, lane: Lane) -> Outcome:
    """Let a history happen."""
    source = _Source(lane)
    for step in history.steps:
        source.take(step)
        source.note()
    log = source.all
    if lane.partitions is None:
        log = [replace(event, offset=None, partition=None) for event in log]
    batches: list[list[Event]] = [[] for _ in range(BATCHES)]
    spread = [history.spread[n % len(history.spread)] for n in range(len(log))]
    if not lane.is_late:
        spread.sort()
    is_added = False
    for event, batch in zip(log, spread, strict=True):
        if NOTE in lane.columns:
            # The model has the column from the second batch on.
            is_added |= NOTE in event.values
            batch = max(batch, 1) if is_added else 0
        batches[batch].append(event)
    for number, batch in history.repeats:
        if log:
            batches[batch].append(log[number % len(log)])
    rows = {key: _without_odd_date(row) for key, row in source.rows.items()}
    snapshots = tuple(source.snapshots)
    return Outcome(lane, batches, rows, history, history.form, source.past, snapshots)


def _without_odd_date(row: Row) -> Row:
    return {name: None if value == ODD_DATE else value for name, value in row.items()}


def _typed(event: Event) -> Event:
    """An event with what silver can hold of its values."""
    untyped = frozenset(name for name, value in event.values.items() if value == ODD_DATE)
    return replace(event, values=_without_odd_date(dict(event.values)), untyped=untyped)


class _Source:
    """A table of the source, its log, and Debezium with it."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.rows: dict[int, Row] = {}
        self.logs: dict[tuple[int, int, int], list[Event]] = {}
        self.all: list[Event] = []
        self.lsn = 10
        self.epoch = 0
        self.generation = 0
        self.time = 0
        self.has_note = False
        self.past: list[tuple[int, int, dict[int, Row]]] = []
        self.snapshots: list[Snapshot] = []

    def note(self) -> None:
        """Keep the rows as they are."""
        rows = {key: _without_odd_date(row) for key, row in self.rows.items()}
        self.past.append((self.lsn, START_MS + self.time, rows))

    def take(self, step: Step) -> None:
        is_whole = {"truncate", "complete snapshot"} & {*self.lane.steps}
        match step.kind:
            case "snapshot":
                self._snapshot([])
            case "open snapshot":
                self._snapshot([replace(step, kind="write")])
            case "blocking snapshot":
                self._blocking_snapshot(step)
            case "gap":
                # Changes that nobody captured, before the first snapshot or while a slot
                # was lost, and the snapshot after them.
                self._change(replace(step, kind="write"))
                self._snapshot([])
            case "incremental snapshot":
                some = {key: row for key, row in self.rows.items() if not step.bit(key)}
                self._read(some, None)
            case "resend":
                self._resend(step)
            case "truncate":
                self.rows.clear()
                self.lsn += 3
                self.time += 1
                self._send(Event(None, "t", self.lsn, START_MS + self.time))
            case "complete snapshot" if len(self.snapshots) < SNAPSHOTS:
                self._complete_snapshot(step)
            case "add column":
                self.has_note = True
            case "restore" if self.epoch < EPOCHS - 1:
                # The log starts again, with or without changes that nobody captured.
                # Truncates and complete snapshots are of what came in their topic: it has
                # all rows first.
                self.epoch += 1
                self.lsn = 10 + step.number % 5
                if step.bit(1) or is_whole:
                    self.take(replace(step, kind="gap"))
            case "recreate" if self.generation < GENERATIONS - 1:
                self.generation += 1
                if step.bit(1):
                    self._snapshot([])
            case "write" | "delete" | "rekey":
                for event in self._change(step):
                    self._send(event)

    def _resend(self, step: Step) -> None:
        """Send the end of a log again, or of one before, whose reads are not sent again."""
        epoch = max(0, self.epoch - step.bit(7))
        generation = max(0, self.generation - step.bit(6))
        log = self.logs.get((epoch, generation, step.key % (self.lane.partitions or 1)), [])
        count = min(step.number % (len(log) + 1), MOST_SENT_AGAIN)
        for event in log[len(log) - count :]:
            if generation == self.generation or not event.is_read:
                self._send(event, epoch)

    def _send(self, event: Event, epoch: int | None = None) -> None:
        partition = (event.key or 0) % (self.lane.partitions or 1)
        epoch = self.epoch if epoch is None else epoch
        log = self.logs.setdefault((epoch, self.generation, partition), [])
        offset = len(log)
        event = replace(
            event,
            partition=partition,
            offset=offset,
            event_id=f"{offset:06d}",
            epoch=epoch,
            generation=self.generation,
            topic=self.lane.topics[epoch],
        )
        log.append(event)
        self.all.append(event)

    def _change(self, step: Step) -> list[Event]:
        """Change a row; the events that say so."""
        key = step.key
        if (before := self.rows.get(key)) is None:
            self.rows[key] = self._new_row(step)
            created = self._event("c", key, self.rows[key], step=step)
            if step.kind == "write":
                return [created]
            return [created, *self._change(step)]
        if step.kind == "delete":
            del self.rows[key]
            return [self._event("d", key, {})]
        if step.kind == "rekey":
            free = [other for other in range(KEYS) if other not in self.rows]
            if not free:
                return []
            after = self._changed(before, step)
            del self.rows[key]
            self.rows[free[step.number % len(free)]] = after
            deleted = self._event("d", key, {})
            created = self._event("c", free[step.number % len(free)], after, before, step)
            return [deleted, replace(created, lsn=deleted.lsn, time=deleted.time)]
        self.rows[key] = self._changed(before, step)
        return [self._event("u", key, self.rows[key], before, step)]

    def _event(
        self,
        op: str,
        key: int,
        row: Row,
        before: Row | None = None,
        step: Step | None = None,
    ) -> Event:
        self.lsn += 3
        goes_back = self.lane.has_clock and step is not None
        self.time += (1, 0, -3, 5)[step.number % 4] if goes_back and step else 1
        missing: frozenset[str] = frozenset()
        if self.lane.leaves_out and before is not None and step is not None:
            missing = frozenset(
                name
                for place, name in enumerate(TOASTED)
                if name in self.lane.columns
                and before[name] == row[name]
                and row[name] is not None
                and not step.bit(4 + place)
            )
        row = self._brought(row)
        brought = {name: value for name, value in row.items() if name not in missing}
        return _typed(Event(key, op, self.lsn, START_MS + self.time, brought, missing))

    def _brought(self, row: Row) -> Row:
        """What an event brings of a row: a column from when the source has it."""
        return {name: row[name] for name in row if self.has_note or name != NOTE}

    def _new_row(self, step: Step) -> Row:
        row = {
            "customer_id": ("ALFKI", "ANATR", "VINET")[step.number % 3],
            "shipped_date": None,
            "employee": self._text(step),
            "order_items": self._items(step),
            NOTE: self._text(step) if self.has_note else None,
        }
        return {name: row[name] for name in self.lane.columns}

    def _changed(self, row: Row, step: Step) -> Row:
        is_odd = self.lane.has_odd_values and step.bit(6) and step.bit(7)
        changed = {**row, "shipped_date": ODD_DATE if is_odd else 10_000 + self.lsn % 500}
        if step.bit(0):
            changed["customer_id"] = ("ALFKI", "ANATR", "VINET")[step.number % 3]
        if step.bit(1):
            changed["employee"] = self._text(step)
        if step.bit(2):
            changed["order_items"] = self._items(step)
        if step.bit(3) and self.has_note:
            changed[NOTE] = self._text(step)
        return changed

    def _text(self, step: Step) -> str | None:
        return None if step.number % 7 == 6 else json.dumps({"v": self.lsn})

    def _items(self, step: Step) -> str | None:
        if step.number % 11 == 10:
            return None
        return json.dumps(
            [
                {
                    "product_id": product,
                    "unit_price": (step.number + product + place) / 4,
                    "quantity": 1 + step.number % 9,
                    "discount": 0.05 * (step.number % 3),
                }
                for place, product in enumerate(PRODUCTS)
                if step.bit(3 + place)
            ]
        )

    def _snapshot(self, open_steps: list[Step]) -> None:
        """Read all rows at one LSN, while a transaction may be open.

        What that has changed is not read: its changes come later, with lower LSNs.
        """
        seen = {key: dict(row) for key, row in self.rows.items()}
        later = [event for each in open_steps for event in self._change(each)]
        self.lsn += 3
        self._read(seen, self.lsn)
        for event in later:
            self.time += 1
            self._send(replace(event, time=START_MS + self.time))

    def _complete_snapshot(self, step: Step) -> None:
        """Read all rows, of which some are gone whose deletes nobody captured."""
        for key in [key for key in self.rows if step.bit(key)][: len(self.rows) - 1]:
            del self.rows[key]
        self._snapshot([])
        if self.rows:
            topic = self.lane.topics[self.epoch]
            counted = (len(self.rows), step.number % BATCHES)
            self.snapshots.append(Snapshot(topic, self.epoch, self.lsn, *counted))

    def _blocking_snapshot(self, step: Step) -> None:
        """Read all rows after changes that are only sent when all has been read.

        The reads have the LSN of what was sent last.
        """
        lsn = self.lsn
        kinds = ["write", "rekey" if step.bit(5) else "write", "write", "write"]
        if step.bit(6) and "delete" in self.lane.steps:
            kinds = ["write", "delete", "write"]
        changes: list[Event] = []
        for place, kind in enumerate(kinds):
            if kind in self.lane.steps:
                number = step.number * (place + 3) % 256
                changes += self._change(replace(step, kind=kind, number=number))
                self.note()
        self._read(self.rows, lsn)
        for event in changes:
            self._send(event)

    def _read(self, rows: dict[int, Row], lsn: int | None) -> None:
        self.time += 10
        for key, row in rows.items():
            read = Event(key, "r", lsn, START_MS + self.time, self._brought(row))
            self._send(_typed(read))
        self.time += 10
