"""Lanes: identical small models side by side, and their rows against the reference fold."""

import datetime as dt
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.histories import (
    COLUMNS,
    DAY_MS,
    GENERATIONS,
    KEYS,
    LANES,
    NOTE,
    Lane,
    Outcome,
    drawn,
    play,
)
from tests.support.lake import Lake
from tests.support.project import PROJECT, write_rejected_rows
from tests.support.records import START_MS, Row
from tests.support.reference import (
    NOWHERE,
    Event,
    Period,
    Values,
    Version,
    decided,
    fold,
    periods,
)
from tests.support.small_project import empty_project, write_model, write_staging

MODELS = ("-s", "path:models")
# Of the project itself, what the lane of everything needs.
OWN_MODELS = (
    "staging/stg_orders.sql",
    "staging/stg_orders.yml",
    "silver/orders.sql",
    "silver/orders.yml",
    "silver/order_items.sql",
    "silver/order_items.yml",
    "silver/history/orders_history.sql",
)
# The lanes with a history beside the silver table: it costs a build of its own.
WITH_HISTORY = (
    *("toast", "reads", "composite", "mixed", "truncated", "resynced", "added"),
    *("everything", "emptied", "read_again", "lost"),
)
TYPES = {
    "customer_id": "bpchar",
    "shipped_date": "date",
    **dict.fromkeys(("employee", "order_items", NOTE), "json"),
}
# The lanes with a gold table that recomputes the groups of what changed, and all of it.
WITH_GROUPS = ("deletes", "binlog", "mixed", "emptied")
GROUPED = """
select shipped_date, coalesce(string(shipped_date), '-') as id, sum(order_id) as orders
from {} where not is_deleted group by shipped_date
"""
# Each insert goes to files of its own, so that an update has to find its row's.
SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
# Rows by table, by key and by what tells the rows of a key apart.
Rows = dict[Any, Row]
Tables = dict[str, dict[Any, Rows]]


def write_models(folder: Path, lane: Lane, columns: Sequence[str]) -> None:
    """Write the models of a lane, with some of its columns."""
    table, key = lane.source_table, key_column(lane)
    meta: dict[str, Any] = {"key": key, "columns": {"order_id": "int"}}
    if lane.has_composite_key:
        meta["key_columns"] = ["order_id", "part"]
        meta["columns"]["part"] = "int"
    meta["columns"] |= {name: TYPES[name] for name in columns}
    write_staging(folder, f"stg_{table}", meta, table)
    query = f"select * from {{{{ ref('stg_{table}') }}}}"
    kind = {"type": "mor" if lane.is_logged else "cow"} | SMALL_FILES
    write_model(folder, f"silver/{table}", query, unique_key=key, tblproperties=kind)
    if lane.name in WITH_HISTORY:
        settings: dict[str, Any] = {"materialized": "cdc_merge", "scd_type": 2}
        settings |= {"unique_key": "history_id", "tblproperties": SMALL_FILES}
        write_model(folder, f"silver/{table}_history", query, **settings)
    if lane.name in WITH_GROUPS:
        settings = {"unique_key": "id", "recompute_by": "shipped_date"}
        settings["tblproperties"] = kind | BUCKETS
        text = GROUPED.format(f"{{{{ ref('{table}') }}}}")
        write_model(folder, f"gold/{table}_days", text, **settings)


def write_project(folder: Path, lanes: Sequence[Lane]) -> Path:
    """A dbt project with one table for each lane, on the project's own macros."""
    empty_project(folder)
    tables = [lane.source_table for lane in lanes]
    if any(lane.marker_topics for lane in lanes):
        tables.append("complete_snapshots")
    for lane in lanes:
        if lane.name != "everything":
            write_models(folder, lane, COLUMNS)
            continue
        for name in OWN_MODELS:
            own = folder / "models" / name.replace("history/", "")
            own.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / "models" / name, own)
    write_rejected_rows(folder / "models")
    named = [{"name": table} for table in tables]
    source = {"name": "bronze", "schema": "bronze", "tables": named}
    # YAML takes JSON as it is.
    (folder / "models/sources.yml").write_text(json.dumps({"sources": [source]}))
    (folder / "topics.toml").write_text(_topics(lanes))
    return folder


def _topics(lanes: Sequence[Lane]) -> str:
    # Each history has offsets and times of its own, so that of all of them offsets do not
    # rise with time: a day of its own tells a generation.
    noon = dt.datetime.fromtimestamp((START_MS + DAY_MS // 2) / 1000, dt.UTC)
    days = [noon + dt.timedelta(days=each) for each in range(GENERATIONS - 1)]
    times = ", ".join(day.isoformat() for day in days)
    lines: dict[str, list[str]] = {
        name: [f"[{name}]"] for name in ("topics", "epochs", "source_tables", "recreated")
    }

    def add(name: str, table: str, epoch: int, recreated: str = "") -> None:
        lines["topics"].append(f'"{name}" = "{table}"')
        lines["epochs"].append(f'"{name}" = {epoch}')
        lines["recreated"].append(f'"{name}" = [{recreated}]')

    for lane in lanes:
        count = lane.at_most if lane.marker_topics else None
        own = [""] if count is None else [f"{number}-" for number in range(count)]
        for epoch, topic in enumerate(lane.topics):
            for number in own:
                is_new = "recreate" in lane.steps
                add(number + topic, lane.source_table, epoch, times * is_new)
            if "truncate" in lane.steps:
                of_topic = f'"{topic}" = ["{lane.source_table}_*"]'
                lines["source_tables"].append(of_topic)
        for epoch, topic in enumerate(lane.marker_topics):
            add(topic, "complete_snapshots", epoch)
    return "\n".join(line for part in lines.values() for line in (*part, ""))


def decisions(outcomes: dict[Lane, list[Outcome]]) -> tuple[str, str]:
    """That every truncate is applied, as an option of dbt.

    Also of those to come: dbt parses the project again where variables differ.
    """
    points = {
        f"{event.epoch}@{each.position(event.lsn)}": "apply"
        for of_lane in outcomes.values()
        for each in of_lane
        for batch in each.batches
        for event in batch
        if event.op == "t"
    }
    return ("--vars", json.dumps({"cdc_lakehouse_truncates": points}))


def key_column(lane: Lane) -> str:
    """The key of a lane's silver table."""
    return "order_key" if lane.has_composite_key else "order_id"


@dataclass
class Difference:
    """A history whose rows are not what the reference has."""

    outcome: Outcome
    batch: int  # the last that had arrived; their number for a full refresh after all
    texts: list[str]  # what differs

    @property
    def size(self) -> tuple[int, int]:
        """How large a reproduction it is."""
        history = self.outcome.history
        steps = 0 if history is None else len(history.steps)
        return (steps, sum(map(len, self.outcome.batches)))

    def __str__(self) -> str:
        is_refresh = self.batch == len(self.outcome.batches)
        when = "a full refresh" if is_refresh else f"batch {self.batch}"
        text = "\n    ".join(self.texts)
        return f"after {when}:\n    {text}\n{self.outcome}"


def smallest(wrong: list[Difference]) -> str:
    """The smallest of the differences of a lane, and how many there are; "" of none."""
    if not wrong:
        return ""
    least = min(wrong, key=lambda difference: difference.size)
    return f"{len(wrong)} histories differ; the smallest {least}"


def run_lanes(
    lake: Lake, outcomes: dict[Lane, list[Outcome]], *, refreshes: bool = True
) -> dict[str, list[Difference]]:
    """The first difference of each history that has one, by the lane's name."""
    found: dict[str, dict[int, Difference]] = {lane.name: {} for lane in outcomes}
    for lane, difference in differences(lake, outcomes, refreshes=refreshes):
        found[lane.name].setdefault(difference.outcome.number, difference)
    return {name: list(by_number.values()) for name, by_number in found.items()}


def differences(
    lake: Lake, outcomes: dict[Lane, list[Outcome]], *, refreshes: bool = True
) -> Iterator[tuple[Lane, Difference]]:
    """Deliver histories batch by batch, and compare every lane after each of them.

    After a full refresh of all every column is the one of the increments, also what a row
    only remembers of its key.

    Args:
        lake: a lake whose project is ``write_project``'s for these lanes.
        outcomes: of the histories of each lane, all of as many batches.
        refreshes: whether a full refresh follows.
    """
    placed = {
        lane: [replace(each, number=number) for number, each in enumerate(of_lane)]
        for lane, of_lane in outcomes.items()
    }
    variables = decisions(placed)
    batches = max(len(o.batches) for of_lane in outcomes.values() for o in of_lane)
    refreshed = [lane for lane in placed if lane.is_refreshed]

    def compared(lanes: Iterable[Lane], batch: int) -> Iterator[tuple[Lane, Difference]]:
        for lane in lanes:
            if lane.name in WITH_GROUPS:
                whole = GROUPED.format(f"silver.{lane.silver_table}")
                made = f"select shipped_date, id, orders from gold.{lane.source_table}_days"
                unlike = f"({made} except {whole}) union all ({whole} except {made})"
                assert lake.sql(unlike) == []
            for difference in compare(lake, lane, placed[lane], batch):
                yield lane, difference

    for batch in range(batches):
        lake.land(
            record
            for of_lane in placed.values()
            for each in of_lane
            for record in each.records(batch)
        )
        ingested = lake.ingest()
        assert (ingested.code, ingested.counts[2]) == (0, 0), ingested.err
        for lane in placed if batch == 1 else ():
            if NOTE in lane.columns:
                write_models(lake.project, lane, lane.columns)
        lake.dbt("run", *MODELS, *variables)
        yield from compared(placed, batch)
        # The next increment is one of a rebuilt table.
        if batch == 1 and batches > 2 and refreshed:
            models = [f"stg_{lane.source_table}+" for lane in refreshed]
            lake.dbt("run", "--full-refresh", "-s", *models, *variables)
            yield from compared(refreshed, batch)
    if not refreshes:
        return
    before = {lane: stored(lake, lane) for lane in placed}
    lake.dbt("run", "--full-refresh", *MODELS, *variables)
    yield from compared(placed, batches)
    for lane, of_lane in placed.items():
        after = stored(lake, lane)
        for each in of_lane:
            texts = [
                text
                for table, of_table in before[lane].items()
                if table != "order_items"  # a build from scratch knows no removed lines
                for key in map(each.key, range(KEYS))
                for text in _wrong(
                    table,
                    {at: _late(row) for at, row in after[table].get(key, {}).items()},
                    {at: _late(row) for at, row in of_table.get(key, {}).items()},
                )
            ]
            if texts:
                yield lane, Difference(each, batches, texts)


def _late(row: Row) -> Row:
    """A row without what says when it arrived, which a full refresh may change."""
    return {name: row[name] for name in row.keys() - {"ingested_at", "ingest_batch"}}


def stored(lake: Lake, lane: Lane) -> Tables:
    """What is in the tables of a lane."""
    key = key_column(lane)
    tables = {lane.silver_table: key}
    if lane.name in WITH_HISTORY:
        tables[f"{lane.silver_table}_history"] = "history_id"
    if lane.name == "everything":
        tables["order_items"] = "order_item_id"
    found: Tables = {}
    for table, place in tables.items():
        of_table: dict[Any, Rows] = found.setdefault(table, {})
        read = lake.merged_rows if lane.is_logged else lake.rows
        for row in read(f"silver.{table}"):
            of_key = of_table.setdefault(row[key], {})
            assert row[place] not in of_key, f"{table}: {row[place]} has two rows"
            of_key[row[place]] = row
    return found


def compare(
    lake: Lake, lane: Lane, outcomes: list[Outcome], batch: int
) -> Iterator[Difference]:
    """The histories of a lane whose rows are not the reference's, up to a batch."""
    found = stored(lake, lane)
    for each in outcomes:
        texts: list[str] = []
        for table, wanted in _expected(each, batch).items():
            for key, rows in wanted.items():
                of_key = found[table].pop(key, {})
                plain = {place: _plain(row) for place, row in of_key.items()}
                texts += _wrong(table, plain, rows)
        if texts:
            yield Difference(each, batch, texts)
    for table, rows_by_key in found.items():
        assert not rows_by_key, f"{table}: rows that no event is of: {rows_by_key}"


def _wrong(table: str, found: Rows, wanted: Rows) -> Iterator[str]:
    """Where rows of one key are not as wanted; they may have more columns."""
    if found.keys() != wanted.keys():
        yield f"{table} has {[*found.values()]}, not {[*wanted]}"
        return
    for place, row in wanted.items():
        for name, value in row.items():
            if (is_now := found[place][name]) != value:
                yield f"{table} {place}: {name} is {is_now!r}, not {value!r}"


def _plain(row: Row) -> Row:
    """A row in values that the reference has, too."""
    found = {n: float(v) if isinstance(v, Decimal) else v for n, v in row.items()}
    entries = row.get("carried_columns") or ()
    found["carried_columns"] = {entry["column_name"] for entry in entries}
    found["has_state"] = row.get("cdc_state") is not None
    return found


def _expected(outcome: Outcome, batch: int) -> Tables:
    """What the reference has in the tables of a history after a batch, of some columns."""
    lane = outcome.lane
    columns = lane.columns if batch else COLUMNS

    def events(batch: int) -> list[Event]:
        return decided(outcome.arrived(batch), outcome.applied(batch))

    rows = {outcome.key(k): row for k, row in fold(events(batch), columns).items()}
    found: Tables = {
        lane.silver_table: {key: {key: _row(outcome, row)} for key, row in rows.items()}
    }
    if lane.name in WITH_HISTORY:
        found[f"{lane.silver_table}_history"] = {
            outcome.key(key): _versions(outcome, key, of_key)
            for key, of_key in periods(events(batch), columns).items()
        }
    if lane.name == "everything":
        # A line that an earlier build had stays, marked, without its values.
        built = range(batch if batch < len(outcome.batches) else 0)
        known = [row for each in built for row in fold(events(each), columns).values()]
        found["order_items"] = {
            key: _lines(
                key, row, [each for each in known if outcome.key(each.event.key) == key]
            )
            for key, row in rows.items()
        }
    return found


def _row(outcome: Outcome, version: Version) -> Row:
    event, connector = version.event, outcome.lane.connector
    is_known = version.lsn > NOWHERE
    wanted: Row = {
        "op": event.op,
        "is_deleted": version.is_deleted,
        "source_epoch": event.epoch,
        "source_position": outcome.position(version.lsn if is_known else None),
        "kafka_offset": None if event.offset is None else event.offset + outcome.base,
        "untyped_columns": None if version.is_deleted else sorted(event.untyped),
        "changed_at": _time(event.time),
        "carried_columns": version.carried,
        **_values(version.values),
    }
    if not event.is_read:
        has_lsn = connector == "postgresql"
        wanted["source_lsn"] = (event.lsn or 0) + outcome.base if has_lsn else None
    return wanted


def _versions(outcome: Outcome, key: int, expected: list[Period]) -> Rows:
    found: Rows = {}
    for number, period in enumerate(expected, start=1):
        wanted: Row = {
            "version_number": number,
            "op": period.began.op,
            "valid_from": _time(period.valid_from),
            "valid_to": _time(period.valid_to),
            "is_current": period.valid_to is None,
            "from_epoch": period.from_epoch,
            "from_position": outcome.position(period.from_lsn),
            "to_epoch": period.to_epoch,
            "to_position": outcome.position(period.to_lsn),
            "has_state": number == len(expected),
            **_values(period.values),
        }
        if period.began.op != "d":
            wanted["untyped_columns"] = sorted(period.began.untyped)
        found[f"{outcome.key(key)}#{number}"] = wanted
    return found


def _lines(order: Any, version: Version, known: list[Version]) -> Rows:
    names = ("unit_price", "quantity", "discount", "revenue", "customer_id")
    removed = {"is_deleted": True} | dict.fromkeys(names)
    found: Rows = {
        f"{order}-{number}": removed | {"product_id": line["product_id"]}
        for each in known
        for number, line in _products(each).items()
    }
    for number, line in _products(version).items():
        price = line["unit_price"] * line["quantity"] * (1 - line["discount"])
        found[f"{order}-{number}"] = {
            **{name: round(value, 4) for name, value in line.items()},
            "is_deleted": False,
            "revenue": round(price, 4),
            "customer_id": _values(version.values)["customer_id"],
        }
    return found


def _products(version: Version) -> Rows:
    """The lines of an order, by product; a second line of it has another name."""
    found: Rows = {}
    for line in json.loads(version.values["order_items"] or "null") or ():
        name = str(line["product_id"])
        found[f"{name}#2" if name in found else name] = line
    return found


def _time(number: int | None) -> dt.datetime | None:
    return None if number is None else dt.datetime.fromtimestamp(number / 1000, dt.UTC)


def _values(values: Values) -> Row:
    """Values as silver has them."""
    found = dict(values)
    if (day := found["shipped_date"]) is not None:
        found["shipped_date"] = dt.date(1970, 1, 1) + dt.timedelta(days=day)
    if found["customer_id"] is not None:
        found["customer_id"] = found["customer_id"].rstrip(" ")  # it is declared as bpchar
    return found


def draw_all(
    count: int, seed: int, lanes: Iterable[Lane] = LANES
) -> dict[Lane, list[Outcome]]:
    """What histories of every lane came to."""
    return {
        lane: [play(history, lane) for history in drawn(lane, count, seed)]
        for lane in lanes
    }
