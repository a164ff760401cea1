"""Lanes: identical small models side by side, and their rows against the reference fold."""

import datetime as dt
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.histories import (
    COLUMNS,
    DAY_MS,
    GENERATIONS,
    KEYS,
    LANES,
    LSNS_A_HISTORY,
    NOTE,
    Lane,
    Outcome,
    Placed,
    drawn,
    play,
)
from tests.support.lake import Lake
from tests.support.project import PROJECT, write_rejected_rows
from tests.support.records import START_MS, Row, position_at
from tests.support.reference import NOWHERE, Period, Version, decided, fold, periods

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
STAGING = """{{{{ config(meta={{
    'key': '{key}',{key_columns}
    'columns': {{
        'order_id': 'int',{part}
        'customer_id': 'bpchar',
        'shipped_date': 'date',
        'employee': 'json',
        'order_items': 'json',{added}
    }},
}}) }}}}

{{{{ change_events(source('bronze', '{table}')) }}}}
"""
# In both, each insert goes to files of its own, so that an update has to find its row's.
HISTORY = """{{{{ config(
    materialized='cdc_merge', scd_type=2, unique_key='history_id',
    tblproperties={{'hoodie.parquet.small.file.limit': '0'}}
) }}}}

select * from {{{{ ref('stg_{table}') }}}}
"""
SILVER = """{{{{ config(
    unique_key='{key}',
    tblproperties={{'type': '{type}', 'hoodie.parquet.small.file.limit': '0'}}
) }}}}

select * from {{{{ ref('stg_{table}') }}}}
"""


def write_models(folder: Path, lane: Lane, columns: Sequence[str]) -> None:
    """Write the models of a lane, with some of its columns."""
    is_composite = lane.has_composite_key
    words = {
        "key": key_column(lane),
        "table": lane.source_table,
        "part": "\n        'part': 'int'," if is_composite else "",
        "key_columns": "\n    'key_columns': ['order_id', 'part']," * is_composite,
        "added": f"\n        '{NOTE}': 'json'," if NOTE in columns else "",
        "type": "mor" if lane.is_logged else "cow",
    }
    models = {"staging/stg_{}": STAGING, "silver/{}": SILVER}
    if lane.name in WITH_HISTORY:
        models |= {"silver/{}_history": HISTORY}
    for name, text in models.items():
        file = folder / f"models/{name.format(lane.source_table)}.sql"
        file.write_text(text.format(**words))


def write_project(folder: Path, lanes: Sequence[Lane]) -> Path:
    """A dbt project with one table for each lane, on the project's own macros."""
    shutil.copytree(PROJECT / "macros", folder / "macros")
    shutil.copytree(PROJECT / "profiles", folder / "profiles")
    shutil.copy(PROJECT / "dbt_project.yml", folder)
    (folder / "tests/dbt").mkdir(parents=True)
    for name in ("staging", "silver"):
        (folder / "models" / name).mkdir(parents=True)
    tables = []
    for lane in lanes:
        tables.append({"name": lane.source_table})
        if lane.name == "everything":
            for name in OWN_MODELS:
                own = name.replace("history/", "")
                shutil.copy(PROJECT / "models" / name, folder / "models" / own)
            continue
        write_models(folder, lane, COLUMNS)
    write_rejected_rows(folder / "models")
    if any(lane.marker_topics for lane in lanes):
        tables.append({"name": "complete_snapshots"})
    source = {"name": "bronze", "schema": "bronze", "tables": tables}
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
    for lane in lanes:
        count = lane.at_most if lane.marker_topics else None
        own = [""] if count is None else [f"{number}-" for number in range(count)]
        for epoch, topic in enumerate(lane.topics):
            for name in [f'"{number}{topic}"' for number in own]:
                lines["topics"].append(f'{name} = "{lane.source_table}"')
                lines["epochs"].append(f"{name} = {epoch}")
                is_new = "recreate" in lane.steps
                lines["recreated"].append(f"{name} = [{times if is_new else ''}]")
                if "truncate" in lane.steps:
                    lines["source_tables"].append(f'{name} = ["{lane.source_table}_*"]')
        for epoch, topic in enumerate(lane.marker_topics):
            lines["topics"].append(f'"{topic}" = "complete_snapshots"')
            lines["epochs"].append(f'"{topic}" = {epoch}')
            lines["recreated"].append(f'"{topic}" = []')
    return "\n".join(line for part in lines.values() for line in (*part, ""))


def decisions(placed: dict[Lane, list[Placed]]) -> tuple[str, str]:
    """That every truncate is applied, as an option of dbt.

    Also of those to come: dbt parses the project again where variables differ.
    """
    points = {
        f"{event.epoch}@{position_at(lane.connector, lsn)}": "apply"
        for lane, of_lane in placed.items()
        for each in of_lane
        for batch in each.outcome.batches
        for event in batch
        if event.op == "t"
        for lsn in [(event.lsn or 0) + each.number * LSNS_A_HISTORY]
    }
    return ("--vars", json.dumps({"cdc_lakehouse_truncates": points}))


def key_column(lane: Lane) -> str:
    """The key of a lane's silver table."""
    return "order_key" if lane.has_composite_key else "order_id"


@dataclass
class Difference:
    """A history whose rows are not what the reference has.

    Attributes:
        batch: the last that had arrived; their number for a full refresh after all.
        texts: what differs.
    """

    placed: Placed
    batch: int
    texts: list[str]

    @property
    def size(self) -> tuple[int, int]:
        """How large a reproduction it is."""
        outcome = self.placed.outcome
        steps = 0 if outcome.history is None else len(outcome.history.steps)
        return (steps, sum(map(len, outcome.batches)))

    def __str__(self) -> str:
        is_refresh = self.batch == len(self.placed.outcome.batches)
        when = "a full refresh" if is_refresh else f"batch {self.batch}"
        text = "\n    ".join(self.texts)
        return f"after {when}:\n    {text}\n{self.placed}"


def run_lanes(
    lake: Lake,
    project: Path,
    outcomes: dict[Lane, list[Outcome]],
    *,
    refreshes: bool = True,
) -> dict[str, list[Difference]]:
    """The first difference of each history that has one, by the lane's name.

    Args:
        lake: a lake whose topics file is the project's.
        project: as ``write_project`` makes it, for these lanes.
        outcomes: of the histories of each lane, all of as many batches.
        refreshes: whether a full refresh follows.
    """
    found: dict[str, dict[int, Difference]] = {lane.name: {} for lane in outcomes}
    for lane, difference in differences(lake, project, outcomes, refreshes=refreshes):
        found[lane.name].setdefault(difference.placed.number, difference)
    return {name: list(by_number.values()) for name, by_number in found.items()}


def differences(
    lake: Lake,
    project: Path,
    outcomes: dict[Lane, list[Outcome]],
    *,
    refreshes: bool = True,
) -> Iterator[tuple[Lane, Difference]]:
    """Deliver histories batch by batch, and compare every lane after each of them.

    After a full refresh of all every column is the one of the increments, also what a row
    only remembers of its key. The arguments are those of ``run_lanes``.
    """
    placed = {
        lane: [Placed(number, each) for number, each in enumerate(of_lane)]
        for lane, of_lane in outcomes.items()
    }
    variables = decisions(placed)

    def build(*options: str) -> None:
        lake.dbt("run", *options, *variables, project=project)

    batches = max(len(o.batches) for of_lane in outcomes.values() for o in of_lane)
    refreshed = [lane for lane in placed if lane.is_refreshed]
    for batch in range(batches + refreshes):
        if batch < batches:
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
                    write_models(project, lane, lane.columns)
            build(*MODELS)
        else:
            before = {lane: _stored(lake, lane) for lane in placed}
            build("--full-refresh", *MODELS)
        for lane, of_lane in placed.items():
            for difference in compare(lake, lane, of_lane, batch):
                yield lane, difference
        # The next increment is one of a rebuilt table.
        if batch == 1 and batches > 2 and refreshed:
            models = [f"stg_{lane.source_table}+" for lane in refreshed]
            build("--full-refresh", "-s", *models)
            for lane in refreshed:
                for difference in compare(lake, lane, placed[lane], batch):
                    yield lane, difference
    for lane, of_lane in placed.items() if refreshes else ():
        changed = _refreshed_otherwise(before[lane], _stored(lake, lane))
        for each in of_lane:
            keys = [str(each.key(key)) for key in range(KEYS)]
            if texts := [text for key in keys for text in changed.get(key, ())]:
                yield lane, Difference(each, batches, texts)


def compare(
    lake: Lake, lane: Lane, placed: list[Placed], batch: int
) -> Iterator[Difference]:
    """The histories of a lane whose rows are not the reference's, up to a batch."""
    rows = _by_key(lake, lane)
    lines: dict[int, dict[str, Row]] = {}
    if lane.name == "everything":
        for line in lake.rows("silver.order_items"):
            number = line["order_item_id"].removeprefix(f"{line['order_id']}-")
            of_order = lines.setdefault(line["order_id"], {})
            assert number not in of_order, "an order line has two rows"
            of_order[number] = line
    histories: dict[Any, list[Row]] = {}
    if lane.name in WITH_HISTORY:
        for version in _history(lake, lane).values():
            histories.setdefault(version[key_column(lane)], []).append(version)
    columns = lane.columns if batch else COLUMNS
    for each in placed:
        arrived = decided(each.outcome.arrived(batch), each.outcome.applied(batch))
        expected = fold(arrived, columns)
        texts: list[str] = []
        for key in sorted(expected):
            wide = each.key(key)
            row = rows.pop(wide, None)
            texts += _wrong_values(each, key, row, expected[key])
            if row is not None and lane.name == "everything":
                built = range(batch if batch < len(each.outcome.batches) else 0)
                known = [_folded(each.outcome, number).get(key) for number in built]
                wanted = [_lines_of(version) for version in (expected[key], *known)]
                texts += _wrong_lines(key, expected[key], lines.get(wide, {}), *wanted)
        if lane.name in WITH_HISTORY:
            for key, of_key in sorted(periods(arrived, columns).items()):
                found = histories.pop(each.key(key), [])
                texts += _wrong_history(each, key, found, of_key)
        if texts:
            yield Difference(each, batch, texts)
    assert not histories, f"{lane.name}: histories that no event is of: {histories}"
    assert not rows, f"{lane.name}: rows that no event is of: {list(rows.values())[:2]}"


def _by_key(lake: Lake, lane: Lane) -> dict[Any, Row]:
    read = lake.merged_rows if lane.is_logged else lake.rows
    return {row[key_column(lane)]: row for row in read(f"silver.{lane.silver_table}")}


Stored = tuple[dict[Any, Row], dict[Any, Row]]


def _stored(lake: Lake, lane: Lane) -> Stored:
    """A lane's rows, and the versions of its history."""
    history = _history(lake, lane) if lane.name in WITH_HISTORY else {}
    return _by_key(lake, lane), history


def _history(lake: Lake, lane: Lane) -> dict[Any, Row]:
    rows = lake.rows(f"silver.{lane.silver_table}_history")
    assert len({row["history_id"] for row in rows}) == len(rows), "a version has two rows"
    return {row["history_id"]: row for row in rows}


def _wrong_history(
    placed: Placed, key: int, rows: list[Row], expected: list[Period]
) -> Iterator[str]:
    base = placed.number * LSNS_A_HISTORY
    connector = placed.outcome.lane.connector

    def time(number: int | None) -> dt.datetime | None:
        return None if number is None else dt.datetime.fromtimestamp(number / 1000, dt.UTC)

    def position(lsn: float | None) -> str | None:
        return None if lsn is None else position_at(connector, int(lsn) + base)

    rows = sorted(rows, key=lambda row: row["version_number"])
    if len(rows) != len(expected):
        yield f"history of key {key}: {len(rows)} versions, not {len(expected)}: {rows}"
        return
    for number, (row, period) in enumerate(zip(rows, expected, strict=True), start=1):
        wanted: Row = {
            "history_id": f"{placed.key(key)}#{number}",
            "version_number": number,
            "op": period.began.op,
            "valid_from": time(period.valid_from),
            "valid_to": time(period.valid_to),
            "is_current": period.valid_to is None,
            "from_epoch": period.from_epoch,
            "from_position": position(period.from_lsn),
            "to_epoch": period.to_epoch,
            "to_position": position(period.to_lsn),
            **{name: _in_silver(name, value) for name, value in period.values.items()},
        }
        if period.began.op != "d":
            wanted["untyped_columns"] = sorted(period.began.untyped)
        for name, value in wanted.items():
            if row[name] != value:
                yield (
                    f"history of key {key}, version {number}:"
                    f" {name} is {row[name]!r}, not {value!r}"
                )
        if (row["cdc_state"] is None) == (number == len(rows)):
            yield f"history of key {key}, version {number}: {row['cdc_state']!r}"


def _refreshed_otherwise(before: Stored, after: Stored) -> dict[str, list[str]]:
    """What a full refresh changed of rows and of versions, by the key."""
    found: dict[str, list[str]] = {}
    for old, new in zip(before, after, strict=True):
        for place in old.keys() | new.keys():
            was, is_now = old.get(place, {}), new.get(place, {})
            for name in (was.keys() | is_now.keys()) - {"ingested_at", "ingest_batch"}:
                if was.get(name) != is_now.get(name):
                    text = f"{name} was {was.get(name)!r} and is {is_now.get(name)!r}"
                    key = str(place).partition("#")[0]
                    found.setdefault(key, []).append(f"{place}: {text}")
    return found


def _wrong_values(
    placed: Placed, key: int, row: Row | None, expected: Version
) -> Iterator[str]:
    if row is None:
        yield f"key {key}: no row"
        return
    event = expected.event
    base = placed.number * LSNS_A_HISTORY
    wanted: Row = {
        "op": event.op,
        "is_deleted": expected.is_deleted,
        "source_epoch": event.epoch,
        "kafka_offset": None if event.offset is None else event.offset + base,
        "untyped_columns": None if expected.is_deleted else sorted(event.untyped),
        "changed_at": dt.datetime.fromtimestamp(event.time / 1000, dt.UTC),
        **{name: _in_silver(name, value) for name, value in expected.values.items()},
    }
    connector = placed.outcome.lane.connector
    if not event.is_read:
        lsn = (event.lsn or 0) + base
        wanted["source_lsn"] = lsn if connector == "postgresql" else None
    is_known = expected.lsn > NOWHERE
    wanted["source_position"] = (
        position_at(connector, int(expected.lsn) + base) if is_known else None
    )
    for name, value in wanted.items():
        if row[name] != value:
            yield f"key {key}: {name} is {row[name]!r}, not {value!r}"
    carried = {entry["column_name"] for entry in row["carried_columns"]}
    if carried != expected.carried:
        yield f"key {key}: carried {sorted(carried)}, not {sorted(expected.carried)}"


def _folded(outcome: Outcome, batch: int) -> dict[int, Version]:
    events = decided(outcome.arrived(batch), outcome.applied(batch))
    return fold(events, outcome.lane.columns)


def _lines_of(version: Version | None) -> dict[str, Row]:
    """The lines of an order, by product; a second line of it has another name."""
    text = version and version.values["order_items"]
    found: dict[str, Row] = {}
    for line in json.loads(text or "null") or ():
        name = str(line["product_id"])
        found[f"{name}#2" if name in found else name] = line
    return found


def _wrong_lines(
    key: int,
    expected: Version,
    lines: dict[str, Row],
    wanted: dict[str, Row],
    *known: dict[str, Row],
) -> Iterator[str]:
    """Also of lines that an earlier build had: they stay, marked, without their values."""
    removed = {number for each in known for number in each} - wanted.keys()
    if wanted.keys() | removed != lines.keys():
        yield f"key {key}: lines {sorted(lines)}, not {sorted(wanted)} and {removed}"
        return
    for number, row in lines.items():
        line = wanted.get(number, dict.fromkeys(("unit_price", "quantity", "discount")))
        values: Row = {
            **{name: value and round(value, 4) for name, value in line.items()},
            "order_item_id": f"{row['order_id']}-{number}",
            "product_id": int(number.removesuffix("#2")),
            "is_deleted": number in removed,
            "customer_id": None,
            "revenue": None,
        }
        if number in wanted:
            price = line["unit_price"] * line["quantity"] * (1 - line["discount"])
            values["revenue"] = round(price, 4)
            values["customer_id"] = _in_silver(
                "customer_id", expected.values["customer_id"]
            )
        for name, value in values.items():
            found = float(row[name]) if isinstance(row[name], Decimal) else row[name]
            if found != value:
                yield f"key {key}, line {number}: {name} is {found!r}, not {value!r}"


def _in_silver(name: str, value: Any) -> Any:
    if name == "shipped_date" and value is not None:
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    if name == "customer_id" and value is not None:
        return value.rstrip(" ")  # it is declared as bpchar
    return value


def draw_all(
    count: int, seed: int, lanes: Iterable[Lane] = LANES
) -> dict[Lane, list[Outcome]]:
    """What histories of every lane came to."""
    return {
        lane: [play(history, lane) for history in drawn(lane, count, seed)]
        for lane in lanes
    }
