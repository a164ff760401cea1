"""Histories of rows, and what they and silver still tell of events that bronze has lost.

What each kind of event does to a history ``tests/lake/test_contract.py`` and
``tests/lake/test_histories.py`` compare with the reference.
"""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import NewLake
from tests.support.histories import COLUMNS, NOTE, Lane, Outcome
from tests.support.lanes import compare, write_models, write_project
from tests.support.project import PROJECT
from tests.support.records import (
    START_MS,
    UNAVAILABLE,
    Record,
    Row,
    compact,
    flattened,
    record,
)
from tests.support.reference import Snapshot
from tests.support.small_project import small_project, write_model, write_staging
from tests.support.stories import parse_story

LOST = Lane("lost", ())
SILVER_TABLE, HISTORY = "silver.lane_lost", "silver.lane_lost_history"
(TOPIC,), OTHER = LOST.topics, "other.public.lane_lost"
CASES = tomllib.loads(Path(__file__).with_name("row_history.toml").read_text())
BATCHES = parse_story("|".join(CASES["batches"]))
SNAPSHOT = Snapshot(TOPIC, 0, 40, batch=4)
WRONG = {
    "cdc_merge": "the materialization cdc_merge cannot write a history",
    "cdc_history": "setting 'unique_key' is 'order_id'; its key is 'history_id'",
}
HISTORY_OF = "{{ row_history(ref('stg_%s')) }}"


def test_what_bronze_has_lost_the_tables_still_tell(
    new_lake: NewLake, tmp_path: Path
) -> None:
    """Each batch is built, some twice; bronze is emptied behind all but the first.

    A key change takes what is stored, and a read that comes again revives no row. Versions
    stay, and late ones come between them; what is repeated makes no commit. A complete
    snapshot ends the rows of its own topic, whether or not bronze has an event of them. A
    column that was removed stays with its versions, whatever their numbers are now, also
    where a surplus one goes. ``erase_key`` takes the history.
    """
    project = write_project(tmp_path / "project", [LOST])
    (project / "topics.toml").write_text(
        f'[topics]\n"{TOPIC}" = "lane_lost"\n"{OTHER}" = "lane_lost"\n'
    )
    lake = new_lake(project=project)
    batches = [
        [replace(event, topic=event.topic or TOPIC) for event in batch] for batch in BATCHES
    ]
    outcome = Outcome(LOST, batches, snapshots=(SNAPSHOT,))
    write_models(project, LOST, [*COLUMNS, NOTE])
    for batch in range(len(BATCHES)):
        records = [*outcome.records(batch)]
        snapshots = {LOST.source_table: SNAPSHOT.lsn} if batch == SNAPSHOT.batch else {}
        named = ("--vars", json.dumps({"cdc_lakehouse_complete_snapshots": snapshots}))
        lake.build(records, *named)
        # A complete snapshot leaves as it is what was deleted before, without its events.
        if batch < SNAPSHOT.batch:
            assert not [*map(str, compare(lake, LOST, [outcome], batch))]
        if batch in (1, SNAPSHOT.batch):
            before = lake.tables.instants()
            for each in records:
                each["metadata"]["offset"] += 100
            lake.build(records, *named)
            after = lake.tables.instants()
            changed = {table for table in after if after[table] != before[table]}
            assert changed == {"bronze.lane_lost"}
        days = {row["ingest_date"] for row in lake.rows("bronze.lane_lost")}
        for day in days if batch else ():
            lake.sql(f"alter table bronze.lane_lost drop partition (ingest_date = '{day}')")
        write_models(project, LOST, COLUMNS)

    versions = {row["history_id"].removeprefix("100000"): row for row in lake.rows(HISTORY)}
    notes = {name: row[NOTE] for name, row in versions.items() if name[0] in "89"}
    assert notes == {"8#1": "1", "8#2": None, "8#3": "3", "9#1": "7"}
    silver = lake.rows(SILVER_TABLE)
    live = [row["order_id"] for row in silver if not row["is_deleted"]]
    current = [row["order_id"] for row in versions.values() if row["is_current"]]
    assert sorted(live) == sorted(current) == [outcome.key(key) for key in (2, 4, 6)]

    key = compact({"order_id": outcome.key(2)})
    arguments = json.dumps({"table": LOST.source_table, "key": key})
    lake.dbt("run-operation", "erase_key", "--args", arguments)
    keys = {1, 3, 4, 5, 6, 7, 8, 9, 10}
    left = {outcome.first_key + key for key in keys}
    assert lake.tables.values_in_files(HISTORY, "order_id") == left
    for materialized, message in WRONG.items():
        settings = {"materialized": materialized, "unique_key": "order_id"}
        write_model(project, "silver/wrong", HISTORY_OF % "lane_lost", **settings)
        assert message in lake.dbt_error("run", "-s", "wrong")


NAMED = re.compile(
    r"\bas `?([a-z]\w*)\b|\b([a-z]\w*) as \(|\b([a-z]\w*) ->|'([a-z]\w*)',|\b([a-z]\w*): "
)
# Names that no column can have: a declaration with one is refused.
TAKEN = ("_check_change_table.sql", "position_columns.sql", "row_history.sql")
COLUMNS_A_TABLE = 56  # of which the text of a staging view has room
# In each table: fields of structs, which a relation called as a column would have, too.
FIELDS = ("is_known", "part", "sequence", "value")


def words_of_our_sql() -> list[dict[str, str]]:
    """What our SQL calls relations, aliases, fields and variables, as tables' columns."""
    types: dict[str, str] = {}
    for file in (PROJECT / "macros").rglob("*.sql"):
        text = re.sub(r"\{#.*?#\}", "", file.read_text(), flags=re.DOTALL)
        for *names, part, member in NAMED.findall(text):
            types |= dict.fromkeys(names, "string")
            types.setdefault(part, "int")
            types.setdefault(member, "int")
    taken: set[str] = {"order_id"}
    for name in TAKEN:
        (file,) = (PROJECT / "macros").rglob(name)
        taken |= set(re.findall(r"'(\w+)'", file.read_text()))
    names = sorted({*types} - {*taken, *FIELDS, ""})
    return [
        dict.fromkeys(FIELDS, "string")
        | {name: types[name] for name in names[at : at + COLUMNS_A_TABLE]}
        for at in range(0, len(names), COLUMNS_A_TABLE)
    ]


def event(op: str, key: int, lsn: int, offset: int, columns: Row) -> Record:
    row = {"order_id": key} | columns
    return record({"order_id": key}, flattened(op, row, lsn, START_MS + lsn), offset)


@pytest.mark.thorough
def test_no_name_of_ours_is_taken_for_a_column_s(new_lake: NewLake, tmp_path: Path) -> None:
    """CTEs, aliases, fields and variables of all macros, in silver and in a history."""
    tables = {f"words_{n}": columns for n, columns in enumerate(words_of_our_sql())}
    project = small_project(tmp_path / "project")
    for name in ("silver/orders.sql", "staging/stg_orders.sql"):
        (project / "models" / name).unlink()
    history = {"materialized": "cdc_history", "unique_key": "history_id"}
    for name, columns in tables.items():
        meta = {"key": "order_id", "columns": {"order_id": "int"} | columns}
        write_staging(project, f"stg_{name}", meta)
        current = f"{{{{ current_rows(ref('stg_{name}')) }}}}"
        write_model(project, f"silver/{name}", current, unique_key="order_id")
        write_model(project, f"silver/{name}_history", HISTORY_OF % name, **history)
    lake = new_lake(project=project)
    types = {name: kind for columns in tables.values() for name, kind in columns.items()}
    kept = {name: "kept" if kind == "string" else 1 for name, kind in types.items()}
    changed = {name: value if value == "kept" else 2 for name, value in kept.items()}

    def unsent(values: Row) -> Row:
        return {n: UNAVAILABLE if v == "kept" else v for n, v in values.items()}

    # A key change: the values are those of the previous key.
    lake.build([event("c", key, 100 + key, key, kept) for key in (1, 2)])
    moved = [event("d", 2, 120, 11, {}), event("c", 3, 120, 12, unsent(kept))]
    lake.build([event("u", 1, 110, 10, unsent(changed)), *moved])
    for name, columns in tables.items():
        rows = {row["order_id"]: row for row in lake.rows(f"silver.{name}")}
        versions = {row["history_id"]: row for row in lake.rows(f"silver.{name}_history")}
        last = "1#2" if "int" in columns.values() else "1#1"
        for row, values in [
            (rows[1], changed),
            (rows[3], kept),
            (versions[last], changed),
        ] + [(versions[f"{key}#1"], kept) for key in (1, 2, 3)]:
            assert {each: row[each] for each in columns} == {n: values[n] for n in columns}
        assert rows[2]["is_deleted"]
