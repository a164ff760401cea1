"""A query file in Athena, as far as moto goes: it runs nothing, and says what it is told.

What Athena's engine makes of the files is tests/servers/test_trino.py's.
"""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving import athena
from tests.support.aws import Aws, dbt_manifest
from tests.unit.conftest import Cli


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    return dbt_manifest(tmp_path, ["revenue_by_month"], sources=["orders"])


def query_file(folder: Path, sql: str) -> str:
    file = folder / "question.sql"
    file.write_bytes(sql.encode(errors="surrogateescape"))
    return str(file)


def test_rows_are_printed_as_a_table_or_as_json(
    aws: Aws, manifest: str, tmp_path: Path, cli: Cli, snapshot: SnapshotAssertion
) -> None:
    answer: list[list[str | None]] = [["month", "revenue"], ["1996-07", "27861.90"]]
    answer += [["1996-08", None], ["東京 e\u0301", "7.5"], ["a\nb\x1b[31m", "-2.5"]]
    # As an analysis begins that a variable switches on.
    settings = "{{ config(enabled=var('cdc_lakehouse_history', false)) }}"
    sql = f"{settings}select * from {{{{ ref('x', 'revenue_by_month') }}}}"
    options = ["--prefix", "shop", "--output-location", "s3://lake/a/"]
    ask = ["athena", query_file(tmp_path, sql), "--manifest", manifest, *options]
    for option in ([], ["--json"]):
        aws.queue(*answer)
        assert cli(*ask, *option) == snapshot
    client = aws.client("athena")
    [query, *_] = client.list_query_executions()["QueryExecutionIds"]
    ran = client.get_query_execution(QueryExecutionId=query)["QueryExecution"]
    assert ran["Query"] == "select * from shop_gold.revenue_by_month"
    assert ran["WorkGroup"] == "primary"
    assert ran["ResultConfiguration"]["OutputLocation"].startswith("s3://lake/a/")


def test_file_that_names_nothing_is_an_error(
    manifest: str, tmp_path: Path, cli: Cli
) -> None:
    for sql, expected in {
        "select * from {{ ref('nothing') }}": "no table is made by a model called 'noth",
        "select * from {{ source('bronze', 'no') }}": "there is no source 'bronze.no'",
        "select * from {{ ref('revenue_by_month' }}": "cannot read",
        "select {{ 1 / 0 }}": "division by zero",
        "select '\udcff'": "can't decode",
    }.items():
        said = cli("athena", query_file(tmp_path, sql), "--manifest", manifest)
        assert (said.code, expected in said.err) == (1, True)


@pytest.fixture
def group(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> athena.Athena:
    monkeypatch.setattr(athena, "SECONDS_BETWEEN_POLLS", 0)
    return athena.Athena("primary", None)


@pytest.mark.parametrize(("may_pass", "code"), [(False, 1), (True, 75)])
def test_reason_of_a_failure_is_given(
    may_pass: bool, code: int, group: athena.Athena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moto never fails, so the client's answer is told here."""
    states: list[dict[str, Any]] = [
        {"State": "QUEUED"},
        {
            "State": "FAILED",
            "StateChangeReason": "TABLE_NOT_FOUND: line 1:15",
            "AthenaError": {"Retryable": may_pass},
        },
    ]
    monkeypatch.setattr(
        group.client,
        "get_query_execution",
        lambda **_: {"QueryExecution": {"Status": states.pop(0)}},
    )
    with pytest.raises(UserError, match="query failed: TABLE_NOT_FOUND") as error:
        group.run("select 1")
    assert error.value.exit_code == code


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, NoCredentialsError])
def test_query_that_cannot_be_waited_for_is_stopped(
    trouble: type[BaseException], group: athena.Athena, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []

    def interrupted(**_: str) -> None:
        raise trouble

    monkeypatch.setattr(group.client, "get_query_execution", interrupted)
    monkeypatch.setattr(
        group.client, "stop_query_execution", lambda **asked: stopped.extend(asked.values())
    )
    with pytest.raises(trouble):
        group.run("select 1")
    assert len(stopped) == 1
