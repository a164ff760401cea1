"""Truncates and complete snapshots of restored, split and moved tables.

Every epoch's log starts again, so that the positions of a later one are the lower ones.
After each of three builds and a full refresh silver and the histories are what the
reference makes of the same events and decisions.
"""

import json
from itertools import count
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.histories import Lane, Outcome, Placed
from tests.support.lanes import Difference, compare, write_project
from tests.support.records import START_MS
from tests.support.reference import Event, Snapshot

pytestmark = pytest.mark.thorough

EMPTIED, READ_AGAIN = LANES = (Lane("emptied", ()), Lane("read_again", ()))
# A topic whose source is restored after the first build; one that several partitions of a
# table share; one of the same table of another source; those of a server and its successor.
RESTORED, SPLIT, OTHER, OLD, NEW, RESYNCED = (
    f"lanes.public.{name}"
    for name in ("restored", "split", "other", "old", "new", "resynced")
)
TOPICS = f"""[topics]
"{RESTORED}" = "lane_emptied"
"{SPLIT}" = "lane_emptied"
"{OTHER}" = "lane_emptied"
"{OLD}" = "lane_emptied"
"{NEW}" = "lane_emptied"
"{RESYNCED}" = "lane_read_again"
[source_tables]
"{RESTORED}" = ["orders"]
"{SPLIT}" = ["orders_*"]
"{OTHER}" = ["orders_*"]
"{OLD}" = ["orders"]
"{NEW}" = ["orders"]
"{RESYNCED}" = ["orders"]
[epochs]
"{NEW}" = 1
"""
EPOCHS_RAISED = f'"{RESTORED}" = 1\n"{RESYNCED}" = 1\n'
AT, LATER = f"{210:016x}", f"{230:016x}"
SNAPSHOT = f"{500:016x}"

_offsets: dict[tuple[str, int, int], Any] = {}


def event(
    op: str,
    key: int | None,
    lsn: int | None,
    name: str | None = "A",
    *,
    topic: str = RESTORED,
    table: str = "orders",
    epoch: int = 0,
    partition: int = 0,
    time: int | None = None,
    offset: int | None = None,
) -> Event:
    """An event at the next offset of its partition; without a name it lacks a value."""
    log = _offsets.setdefault((topic, 0, partition), count())
    offset = next(log) if offset is None else offset
    has_values = op not in ("d", "t")
    values = {"customer_id": "ALFKI", "shipped_date": 1, "order_items": None}
    values |= {"employee": name} if name else {}
    return Event(
        key,
        op,
        lsn,
        START_MS + epoch * 1_000 + (lsn or 0 if time is None else time),
        values if has_values else {},
        frozenset({"employee"}) if has_values and not name else frozenset(),
        partition=partition,
        offset=offset,
        epoch=epoch,
        topic=topic,
        table=table,
        event_id=f"{topic}/{partition}/{offset:06d}",
    )


def restored(*arguments: Any, **columns: Any) -> Event:
    return event(*arguments, epoch=1, **columns)


def split(op: str, key: int | None, lsn: int, year: int, topic: str = SPLIT) -> Event:
    return event(op, key, lsn, topic=topic, table=f"orders_{year}")


def resynced(op: str, key: int, lsn: int | None, epoch: int = 0, **columns: Any) -> Event:
    return event(op, key, lsn, topic=RESYNCED, epoch=epoch, **columns)


TRUNCATES: list[list[Event]] = [
    [
        event("c", 1, 300),
        event("c", 2, 310),
        # A row moves from one partition of the table to another, which is not emptied.
        *(split("c", 20, 190, 2024), split("c", 21, 191, 2025), split("c", 22, 192, 2024)),
        *(split("d", 22, 193, 2024), split("c", 22, 194, 2025), split("c", 23, 195, 2024)),
        split("c", 24, 196, 2024, OTHER),
        split("t", None, 210, 2024),
        event("c", 30, 9_000, "first", topic=OLD, time=100),
        event("d", 30, 50, topic=NEW, epoch=1),
        event("c", 31, 50, None, topic=NEW, epoch=1),
    ],
    [
        *(restored("u", 2, 10, "B"), restored("c", 3, 20)),
        *(restored("c", key, 20 + key) for key in (5, 6, 7)),
        # It lost its place to the truncate, which was delivered after it.
        restored("r", 7, None, "B", time=9_000),
        restored("t", None, 210),
        restored("c", 4, 240),
        # What was inserted again and not captured, as reads find it.
        restored("r", 5, None, "B", time=1),
        restored("r", 6, 260, "B"),
        *(restored("c", 8, 28, partition=1), restored("r", 8, None, partition=1, time=900)),
        *(restored("c", 9, 29, partition=1), restored("r", 9, None, partition=1, time=30)),
        # That the row had moved was not known when its partition was emptied.
        *(split("d", 23, 197, 2024), split("c", 23, 198, 2025), split("u", 21, 220, 2025)),
        # The old server's, late: a value that the key change left out.
        event("u", 30, 9_100, "second", topic=OLD, time=200),
    ],
    [
        restored("c", 10, 15),
        restored("u", 1, 16, "B"),
        restored("r", 3, None, "B", time=2_000),
        split("t", None, 230, 2025),
        split("u", 24, 231, 2024, OTHER),
        split("c", 21, 240, 2025),
    ],
]
SNAPSHOTS: list[list[Event]] = [
    [
        *(resynced("c", key, 400 + key) for key in (0, 1, 2, 3)),
        # The snapshot finds nothing in this partition.
        resynced("c", 10, 410, partition=1),
        *(resynced("r", key, 500, time=900) for key in (0, 1, 3)),
        # Deleted while nobody captured it, and delivered again.
        resynced("c", 2, 402),
    ],
    [
        resynced("r", 6, None, 1, time=5),
        *(resynced("c", key, 20 + key, 1, offset=20 + key) for key in (11, 12, 13)),
        *(resynced("r", key, 500, 1, time=900, offset=40 + key) for key in (0, 1)),
        # An incremental snapshot found it later.
        resynced("r", 7, None, 1, time=990, offset=50),
        resynced("u", 1, 510, 1, name="B", offset=51),
    ],
    # Rows that the snapshot lacked, and that were not known when it was applied.
    [
        resynced("c", 4, 20, 1, offset=30),
        resynced("u", 3, 21, 1, name="B", offset=31),
        resynced("c", 5, 600, 1, offset=60),
        # Delivered again, read by the snapshot, and both.
        resynced("c", 11, 31, 1, offset=70),
        resynced("r", 12, 500, 1, offset=45, time=900),
        *(
            resynced("c", 13, 33, 1, offset=71),
            resynced("r", 13, 500, 1, offset=46, time=900),
        ),
    ],
]
STEPS: list[dict[str, Any]] = [
    {"truncates": {AT: "apply"}},
    {"truncates": {f"1@{AT}": "apply"}, "complete_snapshots": [f"1@{SNAPSHOT}"]},
    {"truncates": {LATER: "apply"}},
]
# What is said of a decision that names two, or is another than before, and of none.
REFUSED: list[tuple[int, dict[str, Any], str]] = [
    (1, {"truncates": {}}, f"holds a TRUNCATE at position 1@{AT}"),
    (
        1,
        {"truncates": {AT: "apply"}, "complete_snapshots": [f"1@{SNAPSHOT}"]},
        f"names position {AT}, and there are 0@{AT} and 1@{AT}: name each with its epoch",
    ),
    (
        1,
        {"truncates": {f"1@{AT}": "apply"}, "complete_snapshots": [500]},
        f"bronze.lane_read_again, and there are 0@{SNAPSHOT} and 1@{SNAPSHOT}: name",
    ),
    *(
        (1, {"truncates": {f"1@{AT}": "apply"}, "complete_snapshots": given}, said)
        for given, said in (
            (
                150,
                "position 0000000000000096 of bronze.lane_read_again, which holds no snap",
            ),
            (["x200"], "gives 'x200' for lane_read_again; a position is a text of"),
            ({"orders": 500}, "names 'orders', which is no bronze table; known: lane_em"),
        )
    ),
    (
        2,
        {"truncates": {f"l@{AT}": "apply"}},
        f"variable 'cdc_lakehouse_truncates' gives 'l@{AT}' for apply; a position is",
    ),
    (
        2,
        {"truncates": {LATER: "apply", f"0@{AT}": "ignore"}},
        f"TRUNCATE at 0@{AT}: apply; variable 'cdc_lakehouse_truncates' says ignore: dbt"
        " build --full-refresh -s lane_emptied",
    ),
]


def named(truncates: dict[str, str], complete_snapshots: Any = ()) -> tuple[str, str]:
    variables: dict[str, Any] = {"cdc_lakehouse_truncates": truncates}
    if complete_snapshots:
        if not isinstance(complete_snapshots, dict):
            complete_snapshots = {READ_AGAIN.source_table: complete_snapshots}
        variables["cdc_lakehouse_complete_snapshots"] = complete_snapshots
    return ("--vars", json.dumps(variables))


@pytest.fixture(scope="module")
def wrong(
    new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Difference]]:
    """What differs after each build, and the refusals that were not made."""
    project = write_project(tmp_path_factory.mktemp("decisions") / "project", LANES)
    topics = project / "topics.toml"
    lake = new_lake(topics)
    snapshots = (Snapshot(RESYNCED, 0, 500), Snapshot(RESYNCED, 1, 500))
    outcomes = {
        EMPTIED: Outcome(TRUNCATES, {}, EMPTIED),
        READ_AGAIN: Outcome(SNAPSHOTS, {}, READ_AGAIN, snapshots=snapshots),
    }
    found: dict[str, list[Any]] = {"refused": []}
    for step, variables in enumerate(STEPS):
        topics.write_text(TOPICS + EPOCHS_RAISED * bool(step))
        placed = {lane: Placed(0, outcome) for lane, outcome in outcomes.items()}
        lake.land(record for each in placed.values() for record in each.records(step))
        ingested = lake.ingest()
        assert (ingested.code, ingested.counts[2]) == (0, 0), ingested.err
        if step == 0:
            variables = variables | {"complete_snapshots": 500}
        for at, refused, message in REFUSED:
            if at == step:
                answer = lake.try_dbt("run", *named(**refused), project=project)
                nodes = [str(node["message"]) for node in answer["nodes"].values()]
                text = " ".join([str(answer["error"]), *answer["said"], *nodes])
                found["refused"] += [] if message in text else [(message, text)]
        lake.dbt("run", *named(**variables), project=project)
        for lane, each in placed.items():
            found[f"{lane.name} {step}"] = [*compare(lake, lane, [each], step)]
    lake.dbt("run", "--full-refresh", project=project)
    # Only a run looks for the epoch of a snapshot.
    lake.dbt("compile", *named({}, [500]), project=project)
    for lane, each in placed.items():
        found[f"{lane.name} refreshed"] = [*compare(lake, lane, [each], step)]
    return found


@pytest.mark.parametrize("step", [0, 1, 2, "refreshed"])
@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_rows_are_the_reference_s(
    lane: Lane, step: int | str, wrong: dict[str, list[Difference]]
) -> None:
    differences = wrong[f"{lane.name} {step}"]
    assert not differences, str(differences[0])


def test_decisions_that_are_refused(wrong: dict[str, list[Difference]]) -> None:
    """Names of two events, a decision that was another, none at all."""
    assert wrong["refused"] == []
