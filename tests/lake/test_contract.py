"""The silver contract: whatever the change stream does, silver equals the source.

Each story of ``tests/support/stories.py`` is delivered in several ways, each with keys of
its own, in the builds of one lake. After each build and a full refresh, orders, their lines
and their histories are what the reference (``tests/support/reference.py``) makes of the
events that have arrived. Spark generates code, as it does for users.
"""

import os
import re
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow.parquet as pq
import pytest

from tests.conftest import NewLake
from tests.support.histories import LANES, Outcome
from tests.support.lake import Lake
from tests.support.lanes import run_lanes, write_project
from tests.support.stories import FORMS, STORIES, Batches, parse_story

BUILDS = 4
(ORDERS,) = [lane for lane in LANES if lane.name == "everything"]


def ways(batches: Batches) -> dict[str, Batches]:
    """The same events in other builds, in another order, or delivered again."""
    whole = [*chain.from_iterable(batches)]
    apart = [[event] for event in whole]
    first_offset = 1 + max(event.offset or 0 for event in whole)
    repeated = [
        event if event.offset is None else replace(event, offset=first_offset + number)
        for number, event in enumerate(whole)
    ]
    found = {
        "as it is": batches,
        "in increments": [[], *batches],
        "in the first build": [whole],
        "in one increment": [[], whole],
        "event by event": apart,
        "twice": [*batches, repeated],
        "backwards": apart[::-1],
    }
    cut = BUILDS - 1
    padded = {
        way: [*way_of[:cut], [*chain.from_iterable(way_of[cut:])], *[[]] * BUILDS][:BUILDS]
        for way, way_of in found.items()
    }
    first = {repr(batches): way for way, batches in reversed(padded.items())}
    return {way: padded[way] for way in padded if way in first.values()}


@dataclass
class Contract:
    """The lake in which all stories happened, in every way, and what was wrong."""

    lake: Lake
    outcomes: dict[tuple[str, str], Outcome]
    wrong: dict[str, list[str]]


@pytest.fixture(scope="module")
def contract(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Contract:
    outcomes = {
        (story, way): Outcome(ORDERS, batches, form=FORMS.get(story, "flattened"))
        for story, text in STORIES.items()
        for way, batches in ways(parse_story(text)).items()
    }
    # The late events of what arrives backwards have only each other's rows folded again.
    names = sorted(outcomes, key=lambda name: name[1] == "backwards")
    project = write_project(tmp_path_factory.mktemp("contract") / "project", [ORDERS])
    lake = new_lake(project=project, generates_code=True)
    found = run_lanes(lake, {ORDERS: [outcomes[name] for name in names]})
    wrong: dict[str, list[str]] = {}
    for difference in found[ORDERS.name]:
        story, way = names[difference.outcome.number]
        wrong.setdefault(story, []).append(f"{way}, {difference}")
    for number, name in enumerate(names):
        outcomes[name].number = number
    return Contract(lake, outcomes, wrong)


@pytest.mark.parametrize("name", STORIES)
def test_story(name: str, contract: Contract) -> None:
    texts = contract.wrong.get(name, [])
    assert not texts, "\n\n".join(texts)


@pytest.mark.parametrize(
    ("story", "is_known"),
    [("toasted_items_in_a_key_change", True), ("toasted_items_of_an_unknown_row", False)],
)
def test_carried_value_says_whether_it_is_known(
    story: str, is_known: bool, contract: Contract
) -> None:
    """Of the order of a story that was told as it is."""
    key = contract.outcomes[story, "as it is"].key(1)
    (row,) = [r for r in contract.lake.rows("silver.orders") if r["order_id"] == key]
    (carried,) = row["carried_columns"]
    assert (carried["column_name"], carried["is_known"]) == ("order_items", is_known)


def test_hudi_is_the_version_that_was_asked_for(contract: Contract) -> None:
    """``HUDI_VERSION`` switches the jar: this file runs on what EMR ships, too."""
    wanted = os.environ.get("HUDI_VERSION", "1.2.0")
    [[classes]] = contract.lake.sql(
        "select java_method('java.lang.System', 'getProperty', 'java.class.path')"
    )
    assert re.findall(r"hudi-spark[^/:]*-([0-9.]+)\.jar", classes) == [wanted]


@pytest.mark.parametrize("table", ["bronze.cdc_events", "silver.orders"])
def test_files_are_compressed_by_zstd(contract: Contract, table: str) -> None:
    """By gzip, Hudi's default, an upsert of a large table takes twice as long."""
    files = contract.lake.tables.path(table).rglob("*.parquet")
    columns = [pq.ParquetFile(file).metadata.row_group(0).column(0) for file in files]
    assert {column.compression for column in columns} == {"ZSTD"}
