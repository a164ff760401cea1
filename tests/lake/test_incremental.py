"""dbt's own ``incremental`` over silver, as its users write it first, in Hudi's format."""

from pathlib import Path

import pytest

from tests.conftest import NewLake
from tests.lake.test_materializations import order
from tests.support.records import Record
from tests.support.small_project import set_columns, small_project

pytestmark = pytest.mark.thorough

MODEL = """
{{{{ config(
    materialized='incremental', incremental_strategy='{strategy}', file_format='hudi',
    unique_key='order_id', {settings}
) }}}}

select
    order_id, freight, is_deleted, ingest_batch, changed_at, date(changed_at) as changed_on
from {{{{ ref('orders') }}}}
{{% if is_incremental() and '{strategy}' != 'microbatch' %}}
where ingest_batch > (select max(ingest_batch) from {{{{ this }}}})
{{% endif %}}
"""
STRATEGIES = {
    "merge": "",
    "append": "",
    "insert_overwrite": "partition_by='order_id'",
    "microbatch": "partition_by='changed_on', event_time='changed_at',"
    " begin='2026-01-01', batch_size='day', lookback=0",
}
# A microbatch asks for rows by their time.
EVENT_TIME = "models: [{name: orders, config: {event_time: changed_at}}]"
DAY = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02")
FIRST = {(1, 10, False), (2, 20, False), (3, 30, False)}
LAST = {(1, 10, False), (2, 22, False), (3, None, True), (4, 40, False)}
LAST_OF_ALL = dict.fromkeys(STRATEGIES, LAST)
Rows = dict[str, set[tuple[int, int | None, bool]]]


def test_each_strategy_means_what_dbt_says(new_lake: NewLake, tmp_path: Path) -> None:
    """A change that arrives late has lost in silver; the tables are of version 6."""
    project = small_project(tmp_path / "project")
    set_columns(project, {"order_id": "int", "freight": "int"})
    for strategy, settings in STRATEGIES.items():
        text = MODEL.format(strategy=strategy, settings=settings)
        (project / "models/silver" / f"by_{strategy}.sql").write_text(text)
    (project / "models/silver/orders.yml").write_text(EVENT_TIME)
    lake = new_lake(project=project)
    models = ("-s", *(f"by_{strategy}" for strategy in STRATEGIES), *DAY)

    def rows() -> Rows:
        found: Rows = {}
        for strategy in STRATEGIES:
            all_rows = lake.rows(f"silver.by_{strategy}")
            names = ("order_id", "freight", "is_deleted")
            found[strategy] = {tuple(row[name] for name in names) for row in all_rows}
            assert len(found[strategy]) == len(all_rows)
        return found

    def build(*events: Record) -> None:
        lake.build(events, "-s", "path:models/staging", "orders")
        lake.dbt("run", *models)

    build(order(1, "c", 1), order(2, "c", 2), order(3, "c", 3))
    assert rows() == dict.fromkeys(STRATEGIES, FIRST)
    build(order(12, "u", 2, freight=22), order(13, "d", 3), order(14, "c", 4))
    assert rows() == LAST_OF_ALL | {"append": FIRST | LAST}
    build(order(11, "u", 2, freight=21))
    assert rows() == LAST_OF_ALL | {"append": FIRST | LAST}
    lake.dbt("run", "--full-refresh", *models)
    assert rows() == LAST_OF_ALL
    for strategy in STRATEGIES:
        properties = lake.tables.properties(f"silver.by_{strategy}")
        assert properties["hoodie.table.version"] == "6", strategy
