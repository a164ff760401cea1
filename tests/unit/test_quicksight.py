"""QuickSight's definitions against their schemas and gold, and the command's calls.

Nothing here reaches AWS: what QuickSight itself makes of the definitions, no test can say.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from cfnlint.api import ManualArgs, lint  # type: ignore[import-untyped]  # it has no types
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension
from syrupy.filters import props

from cdc_lakehouse.cli import main
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.dashboard.content import NO_MONTH
from cdc_lakehouse.serving.quicksight import publish as publishing
from cdc_lakehouse.serving.quicksight.definitions import (
    FOLDER,
    Request,
    Target,
    definitions,
)
from tests.support.aws import documented_policy

ACCOUNT = "123456789012"
REGION = "eu-west-1"
PRINCIPAL = f"arn:aws:quicksight:us-east-1:{ACCOUNT}:user/default/ann"
ARGUMENTS = ["--account", ACCOUNT, "--region", REGION, "--principal", PRINCIPAL]
TARGET = Target(ACCOUNT, REGION, PRINCIPAL)
SPICE = Target(ACCOUNT, REGION, PRINCIPAL, is_spice=True)
URL = f"https://{REGION}.quicksight.aws.amazon.com/sn/dashboards/cdc-lakehouse-lake-revenue"
# What Athena's types become in QuickSight ("Supported data types and values" in its user
# guide). A fixed decimal of SPICE has four digits after the point.
TYPES = {"string": "STRING", "bigint": "INTEGER", "int": "INTEGER", "date": "DATETIME"}


# The definitions


def bodies(target: Target) -> list[Request]:
    """The requests that create everything, in their order."""
    wanted = definitions(target)
    return [wanted.data_source, *wanted.data_sets, wanted.dashboard]


@pytest.mark.parametrize("target", [TARGET, SPICE])
def test_definitions_are_valid(target: Target) -> None:
    """By the schemas of CloudFormation, whose properties are the requests' own fields.

    cfn-lint knows enums, patterns and maxima, which botocore leaves to the service.
    """
    kinds = ("DataSource", "DataSet", "DataSet", "Dashboard")
    resources = {
        f"{kind}{number}": {"Type": f"AWS::QuickSight::{kind}", "Properties": body}
        for number, (kind, body) in enumerate(zip(kinds, bodies(target), strict=True))
    }
    text = json.dumps({"Resources": resources})
    assert lint(text, config=ManualArgs(regions=[REGION])) == []
    wrong = text.replace('"PERCENT"', '"PERCENTAGE"')
    (problem,) = lint(wrong, config=ManualArgs(regions=[REGION]))
    assert "'PERCENTAGE' is not one of" in problem.message


def test_dry_run_prints_the_requests_and_sends_none(
    snapshot: SnapshotAssertion,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of them but the contents of the dashboard, which are its file's."""
    monkeypatch.delattr(boto3, "client")
    options = ["--prefix", "shop", "--work-group", "readers", "--spice", "--dry-run"]
    assert main(["quicksight", *ARGUMENTS, *options]) == 0
    requests = json.loads(capsys.readouterr().out)
    contents = ("CalculatedFields", "ColumnConfigurations", "FilterGroups", "Sheets")
    assert requests == snapshot(
        extension_class=JSONSnapshotExtension,
        exclude=props(*contents, "VersionDescription"),
    )


def test_values_never_become_json() -> None:
    name = '","Actions":["quicksight:*"],"x":"${account}'
    target = Target(ACCOUNT, REGION, PRINCIPAL.replace("ann", name))
    [permission] = definitions(target).dashboard["Permissions"]
    assert permission["Principal"] == target.principal
    assert "quicksight:*" not in permission["Actions"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "Expecting property name"), ('{"a": "${colour}"}', "no placeholder is called")],
)
def test_a_file_that_was_edited_badly_is_named(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data_set_x.json").write_text(text)
    monkeypatch.setattr("cdc_lakehouse.serving.quicksight.definitions.FOLDER", tmp_path)
    with pytest.raises(UserError, match=rf"data_set_x\.json: {said}"):
        definitions(TARGET)


def test_whatever_changes_in_the_dashboard_is_a_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = definitions(TARGET).dashboard["VersionDescription"]
    assert before == definitions(TARGET).dashboard["VersionDescription"]
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr("cdc_lakehouse.serving.quicksight.definitions.FOLDER", tmp_path)
    file = tmp_path / "dashboard.json"
    body = json.loads(file.read_text())
    del body["Definition"]["Sheets"][0]["Visuals"][0]["PieChartVisual"]["Subtitle"]
    file.write_text(json.dumps(body))
    assert definitions(TARGET).dashboard["VersionDescription"] != before


# The definitions and gold


def columns_of(target: Target) -> dict[str, dict[str, tuple[str, str | None]]]:
    """Type and sub type of each column, by gold table."""
    found = {}
    for data_set in definitions(target).data_sets:
        [table] = data_set["PhysicalTableMap"].values()
        found[table["RelationalTable"]["Name"]] = {
            column["Name"]: (column["Type"], column.get("SubType"))
            for column in table["RelationalTable"]["InputColumns"]
        }
    return found


def quicksight_type(data_type: str) -> tuple[str, str | None]:
    if scale := re.fullmatch(r"decimal\(\d+,(\d+)\)", data_type):
        return "DECIMAL", "FIXED" if int(scale[1]) <= 4 else "FLOAT"
    return TYPES[data_type], None


def test_data_sets_have_the_columns_of_gold(manifest: dict[str, Any]) -> None:
    for table, columns in columns_of(SPICE).items():
        node = manifest["nodes"][f"model.cdc_lakehouse.{table}"]
        assert node["schema"] == "gold"
        gold = {
            name: quicksight_type(column["data_type"])
            for name, column in node["columns"].items()
        }
        assert columns == gold, table
    # Only data sets of SPICE have sub types, says the API of its InputColumn.
    direct = columns_of(TARGET).values()
    assert {kind for columns in direct for _, kind in columns.values()} == {None}


def values(content: Any, key: str) -> Iterator[Any]:
    """What stands under a key, at any depth."""
    if isinstance(content, dict):
        if key in content:
            yield content[key]
        content = list(content.values())
    if isinstance(content, list):
        for one in content:
            yield from values(one, key)


def test_visuals_read_columns_that_there_are() -> None:
    definition = definitions(TARGET).dashboard["Definition"]
    columns = {table: set(known) for table, known in columns_of(TARGET).items()}
    declared = set(values(definition["DataSetIdentifierDeclarations"], "Identifier"))
    assert declared == columns.keys()
    for calculated in definition["CalculatedFields"]:
        known = columns[calculated["DataSetIdentifier"]]
        assert set(re.findall(r"\{(\w+)\}", calculated["Expression"])) <= known
        known.add(calculated["Name"])
    read = list(values(definition, "Column"))
    assert len(read) > 8
    for column in read:
        assert column["ColumnName"] in columns[column["DataSetIdentifier"]]


def test_orders_without_a_date_are_no_month() -> None:
    [group] = definitions(TARGET).dashboard["Definition"]["FilterGroups"]
    [limit] = values(group, "TimeRangeFilter")
    first = datetime.fromisoformat(limit["RangeMinimumValue"]["StaticValue"])
    # A month later, so that no time zone brings it back.
    assert (first.year, first.month) == (NO_MONTH.year, NO_MONTH.month + 1)
    assert (limit["Column"]["ColumnName"], group["Status"]) == ("order_month", "ENABLED")


def test_the_exposure_names_the_tables_and_the_dashboard(manifest: dict[str, Any]) -> None:
    exposure = manifest["exposures"]["exposure.cdc_lakehouse.quicksight_dashboard"]
    assert set(exposure["depends_on"]["nodes"]) == {
        f"model.cdc_lakehouse.{table}" for table in columns_of(TARGET)
    }
    assert exposure["url"] == URL.replace(REGION, "REGION")


# The command

# An operation with its answer, or with the code and the message of its refusal.
Answer = tuple[str, Request | tuple[str, str]]
NOT_FOUND = ("ResourceNotFoundException", "")
NO_SOURCE: Answer = ("describe_data_source", NOT_FOUND)
PUBLISHED: Answer = ("update_dashboard_published_version", {})


class QuickSight(Stubber):  # type: ignore[misc]  # it has no types
    """A client whose answers are given beforehand, and what was sent with it."""

    def __init__(self) -> None:
        credentials = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "test")
        super().__init__(boto3.client("quicksight", region_name=REGION, **credentials))
        self.sent: list[tuple[str, Request]] = []
        self.client.meta.events.register("provide-client-params.quicksight", self.record)

    def record(self, params: Request, model: Any, **_: Any) -> None:
        self.sent.append((model.name, copy.deepcopy(params)))

    def give(self, answers: Iterable[Answer]) -> None:
        for operation, answer in answers:
            if isinstance(answer, tuple):
                self.add_client_error(operation, *answer)
            else:
                self.add_response(operation, answer)


@pytest.fixture
def quicksight(monkeypatch: pytest.MonkeyPatch) -> Iterator[QuickSight]:
    """The command's client; botocore checks its requests, and every answer is asked for."""
    with QuickSight() as found:
        monkeypatch.setattr(boto3, "client", lambda *_, **__: found.client)
        monkeypatch.setattr(publishing, "SECONDS_BETWEEN_POLLS", 0)
        yield found
        found.assert_no_pending_responses()


def source_is(status: str, **more: Any) -> Answer:
    return "describe_data_source", {"DataSource": {"Status": status, **more}}


def version_is(status: str, number: int, **more: Any) -> Answer:
    version = {"Status": status, "VersionNumber": number, **more}
    return "describe_dashboard", {"Dashboard": {"Version": version}}


def begun(operation: str, version: int) -> Answer:
    arn = f"arn:aws:quicksight:{REGION}:{ACCOUNT}:dashboard/x/version/{version}"
    return operation, {"VersionArn": arn}


def creation(**of_data_set: Any) -> list[Answer]:
    """The answers where nothing is there."""
    data_set: list[Answer] = [
        ("describe_data_set", NOT_FOUND),
        ("create_data_set", of_data_set),
    ]
    return [
        NO_SOURCE,
        ("create_data_source", {"CreationStatus": "CREATION_IN_PROGRESS"}),
        source_is("CREATION_IN_PROGRESS"),
        source_is("CREATION_SUCCESSFUL"),
        *data_set * 2,
        ("describe_dashboard", NOT_FOUND),
        begun("create_dashboard", 1),
        version_is("CREATION_IN_PROGRESS", 1),
        version_is("CREATION_SUCCESSFUL", 1),
    ]


def existing(target: Target, name: str = "", status: str = "") -> Iterator[Answer]:
    """The answers where everything is as defined, with AWS's defaults.

    Except for their name, or their description, and the status, where they are given.
    """
    wanted = copy.deepcopy(definitions(target))

    def described(body: Request, **defaults: Any) -> Request:
        known = {k: v for k, v in body.items() if k not in ("AwsAccountId", "Permissions")}
        return known | defaults | ({"Name": name} if name else {})

    ready = status or "UPDATE_SUCCESSFUL"
    source = described(wanted.data_source, Arn="arn:x", Status=ready)
    yield "describe_data_source", {"DataSource": source}
    yield "update_data_source_permissions", {}
    if name or status:
        yield "update_data_source", {}
        yield source_is("UPDATE_SUCCESSFUL")
    for data_set in wanted.data_sets:
        [table] = data_set["PhysicalTableMap"].values()
        for number, column in enumerate(table["RelationalTable"]["InputColumns"]):
            column["Id"] = f"column-{number}"
        known = described(data_set, ConsumedSpiceCapacityInBytes=0)
        yield "describe_data_set", {"DataSet": known}
        yield "update_data_set_permissions", {}
        if name:
            yield "update_data_set", {}
        if target.is_spice:
            yield "create_ingestion", {}
    description = name or wanted.dashboard["VersionDescription"]
    yield version_is(status or "CREATION_SUCCESSFUL", 1, Description=description)
    yield "update_dashboard_permissions", {}


SCENARIOS: dict[str, Iterable[Answer]] = {
    "nothing is there": creation(),
    "all is as defined": [*existing(TARGET)],
    "all differs": [
        *existing(TARGET, name="old"),
        begun("update_dashboard", 7),
        version_is("CREATION_IN_PROGRESS", 7),
        version_is("CREATION_SUCCESSFUL", 7),
        PUBLISHED,
    ],
    "the last update failed": [
        *existing(TARGET, status="UPDATE_FAILED"),
        begun("update_dashboard", 2),
        version_is("CREATION_SUCCESSFUL", 2),
        PUBLISHED,
    ],
    "the version fails": [
        *existing(TARGET, name="old"),
        begun("update_dashboard", 3),
        version_is(
            "CREATION_FAILED",
            3,
            Errors=[
                {
                    "Type": "COLUMN_TYPE_MISMATCH",
                    "Message": "revenue is no number",
                    "ViolatedEntities": [{"Path": "sheet/revenue"}],
                }
            ],
        ),
    ],
    "the data source fails": [
        NO_SOURCE,
        ("create_data_source", {}),
        source_is(
            "CREATION_FAILED",
            ErrorInfo={"Type": "ACCESS_DENIED", "Message": "no such work group"},
        ),
    ],
    "spice, nothing is there": creation(IngestionId="first"),
    "spice, all is as defined": [*existing(SPICE)],
}


def id_of(body: Request) -> str:
    keys = ("DataSourceId", "DataSetId", "DashboardId")
    (found,) = (str(body[key]) for key in keys if key in body)
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_run(
    name: str,
    quicksight: QuickSight,
    snapshot: SnapshotAssertion,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What it prints, and what it sends: of each definition the fields that are named."""
    quicksight.give(SCENARIOS[name])
    is_spice = name.startswith("spice")
    code = main(["quicksight", *ARGUMENTS, *(["--spice"] if is_spice else [])])
    out, err = (text.splitlines() for text in capsys.readouterr())
    wanted = {id_of(body): body for body in bodies(SPICE if is_spice else TARGET)}
    calls = []
    for operation, body in quicksight.sent:
        definition = wanted[id_of(body)]
        definition |= {"GrantPermissions": definition["Permissions"]}
        same = {key for key in body if body[key] == definition.get(key)}
        others = {key: body[key] for key in body.keys() - same - {"IngestionId"}}
        calls.append(f"{operation} {', '.join(sorted(same))} {others or ''}".strip())
    found = {"calls": calls, "err": err, "exit code": code, "out": out}
    # An import's number is random.
    assert json.loads(re.sub("[0-9a-f-]{36}", "UUID", json.dumps(found))) == snapshot


def test_waiting_has_an_end(
    quicksight: QuickSight,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publishing, "SECONDS_TO_WAIT", 0)
    quicksight.give(creation()[:3])
    assert main(["quicksight", *ARGUMENTS]) == 75
    assert "its creation is not done after 0 s: run the command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("AccessDeniedException", "not authorized"),
        ("AccessDeniedException", "your identity region is us-east-1"),
        ("ConflictException", "busy"),
        ("ExpiredTokenException", "expired"),
        ("InternalFailureException", "sorry"),
        ("InvalidParameterValueException", "The following principals are not valid"),
        ("ThrottlingException", "slow down"),
        ("UnsupportedUserEditionException", "no"),
    ],
)
def test_a_refusal_says_what_to_do(
    code: str,
    message: str,
    quicksight: QuickSight,
    snapshot: SnapshotAssertion,
    capsys: pytest.CaptureFixture[str],
) -> None:
    quicksight.give([NO_SOURCE, ("create_data_source", (code, message))])
    ended = main(["quicksight", *ARGUMENTS])
    assert [ended, *capsys.readouterr().err.splitlines()] == snapshot


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--account", "12345678901"),
        ("--region", "Ireland"),
        ("--principal", "ann"),
        ("--principal", f"arn:aws:iam::{ACCOUNT}:user/ann"),
        ("--principal", PRINCIPAL.replace("user/default/ann", "namespace/default")),
        ("--principal", PRINCIPAL.replace(ACCOUNT, "210987654321")),
        ("--prefix", "lake'; drop"),
        ("--work-group", "a b"),
    ],
)
def test_a_malformed_option_is_named(
    option: str,
    value: str,
    snapshot: SnapshotAssertion,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["quicksight", *ARGUMENTS, option, value]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == snapshot


def test_missing_credentials_are_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert main(["quicksight", *ARGUMENTS]) == 1
    assert "no AWS credentials found: log in anew" in capsys.readouterr().err


def test_the_policy_allows_what_the_command_calls_and_no_more(
    quicksight: QuickSight,
) -> None:
    quicksight.give([*creation(IngestionId="first"), *SCENARIOS["all differs"]])
    quicksight.give(existing(SPICE))
    for options in ([], [], ["--spice"]):
        assert main(["quicksight", *ARGUMENTS, *options]) == 0
    # What reads another resource must be allowed to pass it on.
    called = {name for name, _ in quicksight.sent} | {"PassDataSource", "PassDataSet"}
    [statement] = documented_policy("docs/quicksight.md")
    assert statement["Action"] == sorted(f"quicksight:{name}" for name in called)

    source, *data_sets, dashboard = map(id_of, bodies(TARGET))
    places = [f"datasource/{source}", f"dashboard/{dashboard}"]
    for data_set in data_sets:
        places += [f"dataset/{data_set}", f"dataset/{data_set}/ingestion/first"]
    for place in places:
        arn = f"arn:aws:quicksight:REGION:ACCOUNT:{place}"
        assert any(fnmatchcase(arn, pattern) for pattern in statement["Resource"]), arn
    assert all("/cdc-lakehouse-lake" in pattern for pattern in statement["Resource"])
