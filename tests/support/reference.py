"""The fold in plain Python, as the design defines it; nothing is shared with the SQL.

Every version of a key has a place. Streamed events rank by epoch and LSN. A snapshot read
stands right after the highest streamed event of its key that was first delivered before
it in its partition; where offsets are unknown, by its own LSN. The version with the
greatest place is the key's row. A value that it did not bring is the one with the
greatest place among the events of the same life that brought it; a create, a delete or a
read begins a life. A create that lacks values begins the life of a row whose key changed:
they are the values of the row that the delete at the same LSN ended.

A value that its column's type cannot hold is null, whatever the column had before.

A truncate (``op`` t, without a key) is a delete of each key whose newest event before it is
of its topic and source table; a read that was taken after it stands behind that delete. A
complete snapshot is a read, of a row that is gone, of each key of its topic that it lacks:
one with an event before it, none of its reads, and no event of a transaction that was open
when it was taken. Without an offset, which it has of the snapshot's first read in the key's
partition, it stands at its own LSN, and later reads of the key behind it.

A read of a blocking snapshot may overtake changes: it has seen them, and they are delivered
behind it. Where the key has an earlier event of the epoch, or the first of them creates
the row, such a read is no version of the history, and has no value of a column that an
overtaken change brought.

The history of a key has one version for each time between two changes of its values. A
version begins no later, by time and by LSN, than what stands behind it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Value = Any
Values = Mapping[str, Value]
Place = tuple[int, float, int, int, float, int, str]

NOWHERE = float("-inf")


@dataclass(frozen=True)
class Event:
    """A delivered change event."""

    key: Any  # of the row
    op: str  # c, u, d or r; or t of a truncate, which is of no key
    lsn: int | None  # its position; None of a read of an incremental snapshot
    time: int  # when the source made the change, in milliseconds
    # of the columns that it brings; nothing of a delete
    values: Values = field(default_factory=dict, hash=False)
    missing: frozenset[str] = frozenset()  # the columns that it does not bring
    partition: int | None = 0  # of Kafka's; None where the position is unknown
    offset: int | None = None  # in the partition; None where it is unknown
    epoch: int = 0  # of the source
    generation: int = 0  # of the topic; a higher one was delivered later
    topic: str = ""  # that it came in, of which its partition is one
    table: str = ""  # at the source; "" where the event does not say
    # of a read the highest position of a truncate that it was taken after
    behind: float = NOWHERE
    is_gone: bool = False  # whether a complete snapshot lacked the row: a read of none
    event_id: str = ""  # tells two events apart that have no position
    # the columns whose value their type cannot hold: None in ``values``
    untyped: frozenset[str] = frozenset()

    @property
    def is_read(self) -> bool:
        """Whether a snapshot read it."""
        return self.op == "r"

    @property
    def identity(self) -> tuple[Any, ...]:
        """The same for every delivery of one event in a partition."""
        when = self.time if self.is_read else None
        log = (self.topic, self.generation, self.partition)
        return (self.key, self.epoch, log, self.is_read, self.lsn, when, self.is_deleted)

    @property
    def is_deleted(self) -> bool:
        """Whether the source has no such row any more."""
        return self.op == "d" or self.is_gone

    def is_before(self, truncate: "Event") -> bool:
        """Whether a truncate took its row away."""
        if self.epoch != truncate.epoch:
            return self.epoch < truncate.epoch
        if self.lsn is not None:
            return self.lsn < (truncate.lsn or 0)
        at, its = [
            (each.topic, each.generation, each.partition) for each in (self, truncate)
        ]
        if at == its and self.offset is not None and truncate.offset is not None:
            return self.offset < truncate.offset
        return self.time < truncate.time


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that read every row of a topic's table."""

    topic: str  # of its reads
    epoch: int  # of the source
    lsn: int  # of its reads
    # how many reads a marker counts; 0 where a person says that it is complete
    rows: int = 0
    batch: int = 0  # that the marker arrives in

    @property
    def point(self) -> tuple[int, int]:
        """Where it was taken in the logs of the source."""
        return (self.epoch, self.lsn)

    def has_read(self, event: Event) -> bool:
        """Whether an event is one of its reads."""
        at = (event.topic, event.epoch, event.lsn)
        return event.is_read and at == (self.topic, self.epoch, self.lsn)


@dataclass(frozen=True)
class Version:
    """A key's row."""

    event: Event  # the newest
    values: Values  # of every column; None of all of them where the row is deleted
    carried: frozenset[str]  # the columns whose value another event brought, or none so far
    # the highest that is known of it: of a read that of the changes before it, too
    lsn: float = NOWHERE

    @property
    def is_deleted(self) -> bool:
        """Whether the source has no such row any more."""
        return self.event.is_deleted


@dataclass(frozen=True)
class Period:
    """A time during which a key's row had the same values."""

    began: Event  # the event that it began with
    values: Values  # of every column; None of all of them where no row is known
    valid_from: int  # when it began, in milliseconds
    valid_to: int | None = None  # when it ended; None of a row that still is
    from_lsn: float | None = None  # the position where it began; None where none is known
    to_lsn: float | None = None  # where it ended
    from_epoch: int = 0  # of the source, where it began
    to_epoch: int | None = None  # where it ended


def periods(events: Iterable[Event], columns: Iterable[str]) -> dict[Any, list[Period]]:
    """The history of every key, oldest first.

    Of a key without any row one period of no length: its newest event is remembered.
    """
    folded = _Fold(events, list(columns))
    return {key: folded.periods(key) for key in folded.histories}


def fold(events: Iterable[Event], columns: Iterable[str]) -> dict[Any, Version]:
    """The rows after some events, whatever the order of their arrival."""
    return _Fold(events, list(columns)).rows()


def first_deliveries(events: Iterable[Event]) -> list[Event]:
    """Of each event the delivery with the lowest offset."""
    first: dict[tuple[Any, ...], Event] = {}
    for event in events:
        other = first.setdefault(event.identity, event)
        if _delivery(event) < _delivery(other):
            first[event.identity] = event
    return list(first.values())


def _delivery(event: Event) -> tuple[float, str]:
    return (float("inf") if event.offset is None else event.offset, event.event_id)


def place(event: Event, versions: list[Event]) -> Place:
    """Where an event stands among the versions of its key."""
    lsn, after = (NOWHERE if event.lsn is None else event.lsn), 0
    if event.is_read and event.offset is None:
        after = -1
    elif event.is_read:
        after = 1
        lsn = max(
            (
                other.lsn
                for other in versions
                if not other.is_read
                and other.epoch == event.epoch
                and other.lsn is not None
                and _is_delivered_before(other, event)
            ),
            default=NOWHERE,
        )
        # Only what was committed before it was delivered before it.
        lsn = min(lsn, float("inf") if event.lsn is None else event.lsn)
        lsn = max(lsn, event.behind)
    offset = NOWHERE if event.offset is None else event.offset
    # Of a change that was delivered in several generations the first counts.
    generation = event.generation if event.is_read else -event.generation
    return (event.epoch, lsn, after, generation, offset, event.time, event.event_id)


def _is_delivered_before(event: Event, read: Event) -> bool:
    if event.generation != read.generation or event.offset is None:
        return event.generation < read.generation
    is_same = (event.topic, event.partition) == (read.topic, read.partition)
    return is_same and event.offset < (read.offset or 0)


def decided(events: Iterable[Event], snapshots: Iterable[Snapshot]) -> list[Event]:
    """The events with what truncates among them and complete snapshots come to.

    Args:
        events: those that have arrived; truncates are applied.
        snapshots: the complete ones.
    """
    arrived = first_deliveries(events)
    truncates = [event for event in arrived if event.op == "t"]
    changes = [event for event in arrived if event.op != "t"]
    by_key: dict[Any, list[Event]] = defaultdict(list)
    for event in changes:
        by_key[event.key].append(event)
    found: list[Event] = []
    for key, of_key in by_key.items():
        for truncate in truncates:
            before = [each for each in of_key if each.is_before(truncate)]
            if before and _is_of(max(before, key=_at), truncate):
                gone = replace(truncate, key=key, op="d", partition=None, offset=None)
                found.append(gone)
        for snapshot in snapshots:
            reads = [each for each in changes if snapshot.has_read(each)]
            if reads and _is_lacking(of_key, reads):
                found.append(_gone(key, of_key, reads))
    unplaced = [each for each in found if each.is_gone and each.offset is None]
    placed = [_behind(event, [], unplaced) for event in found]
    return [_behind(event, truncates, unplaced) for event in changes] + placed


def _at(event: Event) -> tuple[float, ...]:
    return (event.epoch, NOWHERE if event.lsn is None else event.lsn, event.time)


def _is_of(event: Event, truncate: "Event") -> bool:
    return (event.topic, event.table) == (truncate.topic, truncate.table)


def _behind(event: Event, truncates: list[Event], gone: list[Event]) -> Event:
    if not event.is_read:
        return event
    taken_away = [each for each in truncates if _is_of(event, each)]
    taken_away += [each for each in gone if each.key == event.key]
    behind = [
        each.lsn or 0
        for each in taken_away
        if each.epoch == event.epoch and not event.is_before(each)
    ]
    return replace(event, behind=max(behind, default=NOWHERE))


def _first_offset(event: Event, reads: list[Event]) -> float | None:
    """Where the snapshot begins in the partition of an event."""
    return min(
        (
            read.offset
            for read in reads
            if read.offset is not None
            and (read.generation, read.partition) == (event.generation, event.partition)
        ),
        default=None,
    )


def _is_lacking(of_key: list[Event], reads: list[Event]) -> bool:
    snapshot = reads[0]
    generation = max(read.generation for read in reads)
    taken_at = max(read.time for read in reads)
    is_known = False
    for event in of_key:
        if event.topic != snapshot.topic or event.epoch > snapshot.epoch:
            continue
        begin = _first_offset(event, reads)
        is_behind = (
            event.time > taken_at
            if begin is None or event.offset is None
            else event.offset > begin
        )
        is_now = event.epoch == snapshot.epoch
        if is_now and event.is_read and event.lsn == snapshot.lsn:
            return False
        if is_now and event.lsn is not None and event.lsn >= (snapshot.lsn or 0):
            continue
        if is_now and event.lsn is None and event.generation > generation:
            continue
        if is_now and is_behind and event.generation == generation:
            # A read without a position was taken later; a change was not committed yet.
            if event.lsn is not None:
                return False
            continue
        is_known = True
    return is_known


def _gone(key: Any, of_key: list[Event], reads: list[Event]) -> Event:
    """The read that a complete snapshot has of a row that it lacks."""
    found = [(each.partition, _first_offset(each, reads)) for each in of_key]
    begins = [(offset, partition) for partition, offset in found if offset is not None]
    offset, partition = max(begins, default=(None, None))
    return replace(
        reads[0],
        key=key,
        time=max(read.time for read in reads),
        values={},
        partition=partition,
        offset=None if offset is None else int(offset),
        is_gone=True,
        event_id=f"snapshot-{key}",
    )


class _Fold:
    """The histories of all keys, oldest version first."""

    def __init__(self, events: Iterable[Event], columns: list[str]) -> None:
        self.columns = columns
        by_key: dict[Any, list[Event]] = defaultdict(list)
        for event in first_deliveries(events):
            by_key[event.key].append(event)
        self.histories: dict[Any, list[Event]] = {}
        self.lsns: dict[Any, float] = {}
        self.places: dict[Any, dict[Event, Place]] = {}
        for key, delivered in by_key.items():
            places = {event: place(event, delivered) for event in delivered}
            self.places[key] = places
            history = sorted(delivered, key=lambda event: places[event])
            self.histories[key] = history
            at = place(history[-1], delivered)[1]
            self.lsns[key] = max(at, history[-1].lsn or NOWHERE)
        # Which row a delete ended: of a key change, the create has the same LSN. Delivered
        # in two generations of a topic it is two versions, and the first ended the row.
        self.ended = {
            (event.epoch, event.lsn): (key, number)
            for key, history in self.histories.items()
            for number, event in reversed([*enumerate(history)])
            if event.op == "d"
        }

    def rows(self) -> dict[Any, Version]:
        """The newest version of every key."""
        return {key: self._version(key) for key in self.histories}

    def _values(self, key: Any, number: int) -> Values:
        """What a version of a key has in every column."""
        unseen: frozenset[tuple[Any, int]] = frozenset()
        return {name: self._value(key, number, name, unseen) for name in self.columns}

    def _version(self, key: Any) -> Version:
        history = self.histories[key]
        newest = history[-1]
        # Of a deleted row every value is None.
        values = self._values(key, len(history) - 1)
        missing = frozenset() if newest.is_deleted else newest.missing
        return Version(newest, values, missing, self.lsns[key])

    def periods(self, key: Any) -> list[Period]:
        """A key's history, oldest first."""
        history = self.histories[key]
        found: list[Period] = []
        before: tuple[Any, ...] | None = None
        for number, event in enumerate(history):
            if self._is_overtaking(key, number):
                continue
            later = history[number:]
            time = min(each.time for each in later)
            lsns = [self._lsn(key, each) for each in later if each.epoch == event.epoch]
            lsn = lsns[0] and min(each for each in lsns if each is not None)
            turn: Any = {"valid_to": time, "to_lsn": lsn, "to_epoch": event.epoch}
            if event.is_deleted:
                if before is not None:
                    found[-1] = replace(found[-1], **turn)
                before = None
                if number == len(history) - 1 and not found:
                    nothing = dict.fromkeys(self.columns)
                    began = Period(event, nothing, time, None, lsn, None, event.epoch)
                    found.append(replace(began, **turn))
                continue
            values = self._values(key, number)
            state = (*values.values(), event.untyped)
            if state != before:
                if before is not None:
                    found[-1] = replace(found[-1], **turn)
                found.append(Period(event, values, time, None, lsn, None, event.epoch))
            before = state
        return found

    def _is_overtaking(self, key: Any, number: int, column: str | None = None) -> bool:
        """Whether a read was delivered before changes that it has seen, of a column."""
        history = self.histories[key]
        event = history[number]
        if not event.is_read or event.lsn is None:
            return False
        behind = [each for each in history[number + 1 :] if not each.is_read]
        is_first = number == 0 or history[number - 1].epoch != event.epoch
        # The snapshot that a stream begins with reads before changes of lower times.
        if is_first and behind and behind[0].op != "c":
            return False
        return any(
            each.time <= event.time
            and (column is None or each.op in ("c", "d") or column not in each.missing)
            for each in behind
        )

    def _lsn(self, key: Any, event: Event) -> float | None:
        """The highest that is known of an event's, with what it stands behind."""
        at = self.places[key][event][1]
        lsn = max(at, NOWHERE if event.lsn is None else event.lsn)
        return lsn if lsn > NOWHERE else None

    def _value(
        self, key: Any, number: int, column: str, seen: frozenset[tuple[Any, int]]
    ) -> Value:
        """A column's value as of a version; None where no event of its life brought it."""
        if (key, number) in seen or number < 0:
            return None
        history = self.histories[key]
        for at in range(number, -1, -1):
            event = history[at]
            if self._is_overtaking(key, at, column):
                continue
            if event.is_deleted:
                return None
            if column not in event.missing:
                return event.values.get(column)
            if event.op == "c" and (event.epoch, event.lsn) in self.ended:
                old_key, delete = self.ended[event.epoch, event.lsn]
                visited = seen | {(key, number)}
                return self._value(old_key, delete - 1, column, visited)
            if event.op in ("c", "r"):
                return None
        return None
