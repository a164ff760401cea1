"""The positions that the ingest makes of what each connector says, and those it rejects."""

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.support.lake import Lake
from tests.support.parser import classify
from tests.support.records import START_MS, Row

Source = dict[str, Any]
# Operations and the `source` of events as Debezium's pages on each connector document it,
# without what the ingest does not read; those that are rejected are changed in one way:
# https://debezium.io/documentation/reference/stable/connectors/
CASES: dict[str, list[tuple[str, Source]]] = json.loads(
    Path(__file__).with_name("positions.json").read_text()
)
FORMS = ("envelope", "names", "source_names")


def event(op: str, source: Source, form: str) -> Row:
    """A change in Debezium's envelope, or flattened with either way to name its fields."""
    if form == "envelope":
        row = {"id": 1}
        return {
            "op": op,
            "before": row if op == "d" else None,
            "after": None if op == "d" else row,
            "source": {**source, "ts_ms": START_MS, "table": "cdc_events"},
        }
    prefix = "__" if form == "names" else "__source_"
    return {
        "id": 1,
        "__op": op,
        "__table": "cdc_events",
        "__source_ts_ms": START_MS,
        **{f"{prefix}{name}": value for name, value in source.items()},
    }


@pytest.mark.parametrize("kind", CASES)
def test_position_of_a_connector(
    kind: str, lake: Lake, snapshot: SnapshotAssertion
) -> None:
    """Or the reason why an event has none, the same in each form."""
    texts = [json.dumps(event(*case, form)) for form in FORMS for case in CASES[kind]]
    names = ("destination", "reason", "op", "source_table", "source_position", "source_lsn")
    found = []
    for row in classify(lake, texts):
        assert row is not None
        found.append({name: row[name] for name in names if row[name] is not None})
    count = len(CASES[kind])
    assert found == found[:count] * len(FORMS)
    cases = [f"{op} {json.dumps(source)}" for op, source in CASES[kind]]
    assert dict(zip(cases, found[:count], strict=True)) == snapshot

    # Of one width, they sort as the numbers in them do.
    widths = {
        (source["connector"], len(row["source_position"]))
        for (_, source), row in zip(CASES[kind], found[:count], strict=True)
        if "source_position" in row
    }
    assert len(widths) == len({connector for connector, _ in widths}) > 0
