"""A project of one topic and one silver table, for tests that change its models."""

import shutil
from pathlib import Path
from typing import Any

from tests.support.project import copy_project, write_rejected_rows

TOPICS = '[topics]\n"demo.datalake.cdc_events" = "cdc_events"\n'
SOURCES = """
sources:
  - name: bronze
    schema: bronze
    tables:
      - name: cdc_events
      - name: rejected_events
"""
STAGING = """
{{{{ config(meta={meta}) }}}}

{{{{ change_events(source('bronze', 'cdc_events')) }}}}
"""
SILVER = """
{{ config(unique_key='order_id') }}

{{ current_rows(ref('stg_orders')) }}
"""
GOLD = """
{{ config(unique_key='customer_id') }}

select customer_id, count(*) as orders from {{ ref('orders') }}
where not is_deleted
group by customer_id
"""
COLUMNS = {"order_id": "int", "customer_id": "bpchar", "customer": "json"}
MORE_COLUMNS = COLUMNS | {"priority": "int"}


def small_project(folder: Path) -> Path:
    """A project of one silver table with few columns, whose builds take seconds."""
    copy_project(folder)
    models = folder / "models"
    for name in (models, folder / "analyses", folder / "tests"):
        shutil.rmtree(name)
    for layer in ("staging", "silver"):
        (models / layer).mkdir(parents=True)
    (folder / "topics.toml").write_text(TOPICS)
    (models / "staging" / "_sources.yml").write_text(SOURCES)
    (models / "silver" / "orders.sql").write_text(SILVER)
    set_columns(folder, COLUMNS)
    write_rejected_rows(models)
    return folder


def add_gold(project: Path) -> None:
    """Add the table ``by_customer`` to a small project's gold."""
    folder = project / "models" / "gold"
    folder.mkdir()
    (folder / "by_customer.sql").write_text(GOLD)


def set_columns(project: Path, columns: dict[str, str], **settings: Any) -> None:
    """Have the staging model of a small project list these columns, with other settings."""
    model = project / "models" / "staging" / "stg_orders.sql"
    meta = {"key": "order_id", "columns": columns} | settings
    model.write_text(STAGING.format(meta=meta))
