"""QuickSight's definitions against botocore's model and gold, and the command's calls.

Nothing here reaches AWS: what QuickSight itself makes of the definitions, no test can say.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.model import OperationModel, Shape
from botocore.stub import Stubber
from botocore.validate import ParamValidator
from moto import mock_aws

from lake.errors import UserError
from serving.dashboard.content import NO_MONTH
from serving.quicksight import publish as publishing
from serving.quicksight.__main__ import main
from serving.quicksight.definitions import FOLDER, Request, Target, definitions
from tests.support.project import PROJECT

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


def new_client() -> Any:
    return boto3.client(
        "quicksight",
        region_name=REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


# --- the definitions ---


def problems(operation: OperationModel, parameters: Request) -> list[str]:
    """What the service model forbids in a request.

    botocore's own validation knows unknown and missing fields, types and minima. Enums,
    patterns and maxima are in the model too, and left to the service.
    """
    report = ParamValidator().validate(parameters, operation.input_shape)
    found = [report.generate_report()] if report.has_errors() else []
    return found or list(unlike(operation.input_shape, parameters, ""))


def unlike(shape: Shape, value: Any, path: str) -> Iterator[str]:
    limit = shape.metadata.get("max")
    if limit is not None:
        size = value if shape.type_name in ("integer", "long") else len(value)
        if size > limit:
            yield f"{path}: more than {limit}"
    if shape.type_name == "string":
        if shape.enum and value not in shape.enum:
            yield f"{path}: '{value}' is none of {shape.enum}"
        pattern = shape.metadata.get("pattern")
        if pattern and not re.fullmatch(pattern, value):
            yield f"{path}: '{value}' is not {pattern}"
    elif shape.type_name == "structure":
        for key, item in value.items():
            yield from unlike(shape.members[key], item, f"{path}.{key}")
    elif shape.type_name == "list":
        for number, item in enumerate(value):
            yield from unlike(shape.member, item, f"{path}[{number}]")
    elif shape.type_name == "map":
        for key, item in value.items():
            yield from unlike(shape.key, key, f"{path} (key)")
            yield from unlike(shape.value, item, f"{path}.{key}")


def creations(target: Target) -> list[tuple[OperationModel, Request]]:
    """Every request that creates something, with its operation."""
    model = new_client().meta.service_model
    wanted = definitions(target)
    return [
        (model.operation_model("CreateDataSource"), wanted.data_source),
        *((model.operation_model("CreateDataSet"), body) for body in wanted.data_sets),
        (model.operation_model("CreateDashboard"), wanted.dashboard),
    ]


@pytest.mark.parametrize("target", [TARGET, SPICE])
def test_definitions_are_what_the_service_model_allows(target: Target) -> None:
    for operation, body in creations(target):
        assert problems(operation, body) == []


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every key of every object, and every index of every list, with what holds it."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield value, key
            yield from places(value[key])


def test_a_misspelt_field_is_found_at_any_depth() -> None:
    count = 0
    for operation, body in creations(SPICE):
        tables = body.get("PhysicalTableMap", {})
        for holder, key in places(body):
            if isinstance(holder, dict) and holder is not tables:
                count += 1
                holder[f"{key}x"] = holder.pop(key)
                assert problems(operation, body), key
                holder[key] = holder.pop(f"{key}x")
    assert count > 200


def test_a_misspelt_choice_is_found() -> None:
    for operation, body in creations(SPICE):
        for holder, key in places(body):
            value = holder[key]
            if isinstance(value, str) and re.fullmatch("[A-Z_]{3,}", value):
                holder[key] = f"{value}X"
                assert problems(operation, body), (key, value)
                holder[key] = value


def test_values_never_become_json() -> None:
    name = '","Actions":["quicksight:*"],"x":"${account}'
    target = Target(ACCOUNT, REGION, PRINCIPAL.replace("ann", name))
    [permission] = definitions(target).dashboard["Permissions"]
    assert permission["Principal"] == target.principal
    assert len(permission["Actions"]) == 8


def test_permissions_are_those_of_an_owner() -> None:
    """QuickSight takes a known set of actions, and no part of one.

    https://github.com/hashicorp/terraform-provider-aws/issues/33907
    """
    wanted = definitions(TARGET)
    for kind, count, bodies in [
        ("DataSource", 6, [wanted.data_source]),
        ("DataSet", 18, wanted.data_sets),
        ("Dashboard", 8, [wanted.dashboard]),
    ]:
        for body in bodies:
            [permission] = body["Permissions"]
            actions = permission["Actions"]
            assert len(set(actions)) == count
            for verb in ("Describe", "Update", "Delete"):
                assert f"quicksight:{verb}{kind}" in actions


def test_prefix_work_group_and_account_are_where_they_belong() -> None:
    wanted = definitions(Target(ACCOUNT, REGION, PRINCIPAL, "shop", "readers"))
    parameters = wanted.data_source["DataSourceParameters"]
    assert parameters == {"AthenaParameters": {"WorkGroup": "readers"}}
    source = f"arn:aws:quicksight:{REGION}:{ACCOUNT}:datasource/"
    for data_set in wanted.data_sets:
        [table] = data_set["PhysicalTableMap"].values()
        relation = table["RelationalTable"]
        assert relation["DataSourceArn"] == source + wanted.data_source["DataSourceId"]
        assert (relation["Catalog"], relation["Schema"]) == ("AwsDataCatalog", "shop_gold")
        assert data_set["ImportMode"] == "DIRECT_QUERY"
    declared = wanted.dashboard["Definition"]["DataSetIdentifierDeclarations"]
    assert sorted(entry["DataSetArn"].rpartition("/")[2] for entry in declared) == sorted(
        data_set["DataSetId"] for data_set in wanted.data_sets
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "Expecting property name"), ('{"a": "${colour}"}', "no placeholder is called")],
)
def test_a_file_that_was_edited_badly_is_named(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data_set_x.json").write_text(text)
    monkeypatch.setattr("serving.quicksight.definitions.FOLDER", tmp_path)
    with pytest.raises(UserError, match=rf"data_set_x\.json: {said}"):
        definitions(TARGET)


# --- the definitions and gold ---


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


def test_direct_queries_name_no_sub_type() -> None:
    """Only data sets of SPICE have them, says the API of its InputColumn."""
    kinds = {kind for table in columns_of(TARGET).values() for _, kind in table.values()}
    assert kinds == {None}


def test_visuals_read_columns_that_there_are() -> None:
    definition = definitions(TARGET).dashboard["Definition"]
    columns = {table: set(known) for table, known in columns_of(TARGET).items()}
    declared = {
        entry["Identifier"]: entry["DataSetArn"].rpartition("lake-")[2].replace("-", "_")
        for entry in definition["DataSetIdentifierDeclarations"]
    }
    assert set(declared.values()) == columns.keys()
    for calculated in definition["CalculatedFields"]:
        known = columns[declared[calculated["DataSetIdentifier"]]]
        assert set(re.findall(r"\{(\w+)\}", calculated["Expression"])) <= known
        known.add(calculated["Name"])
    shown = [
        definition[part] for part in ("Sheets", "ColumnConfigurations", "FilterGroups")
    ]
    read = [holder[key] for holder, key in places(shown) if key == "Column"]
    assert len(read) > 8
    for column in read:
        table = declared[column["DataSetIdentifier"]]
        assert column["ColumnName"] in columns[table], column


def test_the_two_leading_charts_are_there() -> None:
    [sheet] = definitions(TARGET).dashboard["Definition"]["Sheets"]
    pie = sheet["Visuals"][0]["PieChartVisual"]["ChartConfiguration"]
    limit = pie["SortConfiguration"]["CategoryItemsLimit"]
    assert limit == {"ItemsLimit": 20, "OtherCategories": "INCLUDE"}
    assert pie["DataLabels"]["LabelContent"] == "PERCENT"
    wells = sheet["Visuals"][1]["ScatterPlotVisual"]["ChartConfiguration"]["FieldWells"]
    [(_, scatter)] = wells.items()
    read = {
        well: fields[0]["NumericalMeasureField"]["Column"]["ColumnName"]
        for well, fields in scatter.items()
        if well != "Category"
    }
    assert read == {
        "XAxis": "avg_order_quantity",
        "YAxis": "avg_order_revenue",
        "Size": "count_orders",
    }
    shown = [visual["VisualId"] for entry in sheet["Visuals"] for visual in entry.values()]
    [layout] = sheet["Layouts"]
    elements = layout["Configuration"]["GridLayout"]["Elements"]
    assert [element["ElementId"] for element in elements] == shown


def test_orders_without_a_date_are_no_month() -> None:
    definition = definitions(TARGET).dashboard["Definition"]
    [group] = definition["FilterGroups"]
    [sheet] = definition["Sheets"]
    [scope] = group["ScopeConfiguration"]["SelectedSheets"][
        "SheetVisualScopingConfigurations"
    ]
    shown = [visual["VisualId"] for entry in sheet["Visuals"] for visual in entry.values()]
    assert scope["SheetId"] == sheet["SheetId"]
    assert set(scope["VisualIds"]) == {"revenue-by-month"} <= set(shown)
    [entry] = group["Filters"]
    limit = entry["TimeRangeFilter"]
    assert limit["Column"] == {
        "DataSetIdentifier": "revenue_by_month",
        "ColumnName": "order_month",
    }
    # A month later, so that no time zone brings it back.
    first = datetime.fromisoformat(limit["RangeMinimumValue"]["StaticValue"])
    assert first.date() == date(1900, 2, 1) > NO_MONTH
    assert "RangeMaximumValue" not in limit
    assert group["Status"] == "ENABLED"


def test_the_exposure_names_the_tables_and_the_dashboard(manifest: dict[str, Any]) -> None:
    exposure = manifest["exposures"]["exposure.cdc_lakehouse.quicksight_dashboard"]
    assert set(exposure["depends_on"]["nodes"]) == {
        f"model.cdc_lakehouse.{table}" for table in columns_of(TARGET)
    }
    assert exposure["url"] == URL.replace(REGION, "REGION")
    assert exposure["owner"]["email"]


# --- the command ---


@dataclass
class QuickSight:
    """A client whose answers are given beforehand, and what was sent with it."""

    client: Any
    stubber: Stubber
    sent: list[tuple[str, Request]] = field(default_factory=list)

    def answer(self, operation: str, **response: Any) -> None:
        self.stubber.add_response(operation, response)

    def refuse(self, operation: str, code: str, message: str = "") -> None:
        self.stubber.add_client_error(operation, code, message)

    def operations(self) -> list[str]:
        return [operation for operation, _ in self.sent]


@pytest.fixture
def quicksight(monkeypatch: pytest.MonkeyPatch) -> Iterator[QuickSight]:
    """The command's client; at the end, every request is held against the model."""
    client = new_client()
    monkeypatch.setattr(boto3, "client", lambda *_, **__: client)
    monkeypatch.setattr(publishing, "SECONDS_BETWEEN_LOOKS", 0)
    found = []
    with Stubber(client) as stubber:
        service = QuickSight(client, stubber)

        def record(params: Request, model: OperationModel, **_: Any) -> None:
            service.sent.append((model.name, copy.deepcopy(params)))
            found.extend(problems(model, params))

        client.meta.events.register("before-parameter-build.quicksight", record)
        yield service
        stubber.assert_no_pending_responses()
    assert found == []


def state_of(status: str, **more: Any) -> dict[str, Any]:
    return {"DataSource": {"Status": status, **more}}


def version_of(status: str, number: int, **more: Any) -> dict[str, Any]:
    return {"Dashboard": {"Version": {"Status": status, "VersionNumber": number, **more}}}


def arn_of(version: int) -> str:
    return f"arn:aws:quicksight:{REGION}:{ACCOUNT}:dashboard/x/version/{version}"


def without(body: Request, *keys: str) -> Request:
    return {key: value for key, value in body.items() if key not in keys}


def describe_all(
    quicksight: QuickSight, change: Callable[[str, Request], None], target: Target
) -> None:
    """Answer that everything is there as defined, with defaults of AWS, then changed."""
    wanted = definitions(target)
    source = without(wanted.data_source, "AwsAccountId", "Permissions")
    source |= {"Status": "UPDATE_SUCCESSFUL", "Arn": "arn:x"}
    change("data source", source)
    quicksight.answer("describe_data_source", DataSource=source)
    quicksight.answer("update_data_source_permissions")
    if source["Name"] != wanted.data_source["Name"]:
        quicksight.answer("update_data_source")
        quicksight.answer("describe_data_source", **state_of("UPDATE_SUCCESSFUL"))
    for body in wanted.data_sets:
        data_set = without(copy.deepcopy(body), "AwsAccountId", "Permissions")
        data_set["ConsumedSpiceCapacityInBytes"] = 0
        [table] = data_set["PhysicalTableMap"].values()
        for number, column in enumerate(table["RelationalTable"]["InputColumns"]):
            column["Id"] = f"column-{number}"
        change("data set", data_set)
        quicksight.answer("describe_data_set", DataSet=data_set)
        quicksight.answer("update_data_set_permissions")
        if data_set["Name"] != body["Name"]:
            quicksight.answer("update_data_set")
        if target.is_spice:
            quicksight.answer("create_ingestion")
    version = {
        "Status": "CREATION_SUCCESSFUL",
        "Description": wanted.dashboard["VersionDescription"],
    }
    change("dashboard", version)
    quicksight.answer("describe_dashboard", Dashboard={"Version": version})
    quicksight.answer("update_dashboard_permissions")


def unchanged(kind: str, described: Request) -> None:
    """Leave it as it is."""


def renamed(kind: str, described: Request) -> None:
    """Everything is as another version of the files had it."""
    described["Description" if kind == "dashboard" else "Name"] = "old"


def answer_creations(quicksight: QuickSight, **of_data_set: Any) -> None:
    quicksight.refuse("describe_data_source", "ResourceNotFoundException")
    quicksight.answer("create_data_source", CreationStatus="CREATION_IN_PROGRESS")
    quicksight.answer("describe_data_source", **state_of("CREATION_IN_PROGRESS"))
    quicksight.answer("describe_data_source", **state_of("CREATION_SUCCESSFUL"))
    for _ in definitions(TARGET).data_sets:
        quicksight.refuse("describe_data_set", "ResourceNotFoundException")
        quicksight.answer("create_data_set", **of_data_set)
    quicksight.refuse("describe_dashboard", "ResourceNotFoundException")
    quicksight.answer("create_dashboard", VersionArn=arn_of(1))


def test_what_is_not_there_is_created(
    quicksight: QuickSight, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_creations(quicksight)
    quicksight.answer("describe_dashboard", **version_of("CREATION_IN_PROGRESS", 1))
    quicksight.answer("describe_dashboard", **version_of("CREATION_SUCCESSFUL", 1))
    assert main(ARGUMENTS) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "data source cdc-lakehouse-lake: created",
        "data set cdc-lakehouse-lake-revenue-by-customer: created",
        "data set cdc-lakehouse-lake-revenue-by-month: created",
        "dashboard cdc-lakehouse-lake-revenue: created",
        URL,
    ]
    assert said.err == "waiting for its creation .\nwaiting for version 1 .\n"
    created = [body for name, body in quicksight.sent if name.startswith("Create")]
    assert created == [body for _, body in creations(TARGET)]


def test_what_is_there_as_defined_is_left_alone(
    quicksight: QuickSight, capsys: pytest.CaptureFixture[str]
) -> None:
    describe_all(quicksight, unchanged, TARGET)
    assert main(ARGUMENTS) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[2] for line in lines[:-1]] == ["unchanged"] * 4
    changing = {name for name in quicksight.operations() if not name.startswith("Describe")}
    assert changing == {
        "UpdateDataSourcePermissions",
        "UpdateDataSetPermissions",
        "UpdateDashboardPermissions",
    }
    granted = [
        body["GrantPermissions"]
        for name, body in quicksight.sent
        if name.endswith("Permissions")
    ]
    assert granted == [body["Permissions"] for _, body in creations(TARGET)]


def test_what_differs_is_updated_and_then_published(
    quicksight: QuickSight, capsys: pytest.CaptureFixture[str]
) -> None:
    describe_all(quicksight, renamed, TARGET)
    quicksight.answer("update_dashboard", VersionArn=arn_of(7))
    quicksight.answer("describe_dashboard", **version_of("CREATION_IN_PROGRESS", 7))
    quicksight.answer("describe_dashboard", **version_of("CREATION_SUCCESSFUL", 7))
    quicksight.answer("update_dashboard_published_version")
    assert main(ARGUMENTS) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[2] for line in lines[:-1]] == [
        *["updated"] * 3,
        "updated, version 7 published",
    ]
    identity = {"AwsAccountId": ACCOUNT, "DashboardId": "cdc-lakehouse-lake-revenue"}
    assert quicksight.sent[-4:] == [
        ("UpdateDashboard", without(definitions(TARGET).dashboard, "Permissions")),
        *[("DescribeDashboard", identity | {"VersionNumber": 7})] * 2,
        ("UpdateDashboardPublishedVersion", identity | {"VersionNumber": 7}),
    ]


def test_whatever_changes_in_the_dashboard_is_a_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def description() -> str:
        return str(definitions(TARGET).dashboard["VersionDescription"])

    before = description()
    assert before == description()
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr("serving.quicksight.definitions.FOLDER", tmp_path)
    file = tmp_path / "dashboard.json"
    body = json.loads(file.read_text())
    [sheet] = body["Definition"]["Sheets"]
    del sheet["Visuals"][0]["PieChartVisual"]["Subtitle"]
    file.write_text(json.dumps(body))
    assert description() != before


def test_a_dashboard_whose_last_version_failed_gets_another(quicksight: QuickSight) -> None:
    def change(kind: str, described: Request) -> None:
        if kind == "dashboard":
            described["Status"] = "CREATION_FAILED"

    describe_all(quicksight, change, TARGET)
    quicksight.answer("update_dashboard", VersionArn=arn_of(2))
    quicksight.answer("describe_dashboard", **version_of("CREATION_SUCCESSFUL", 2))
    quicksight.answer("update_dashboard_published_version")
    assert main(ARGUMENTS) == 0


def test_spice_imports_once_a_run(
    quicksight: QuickSight, capsys: pytest.CaptureFixture[str]
) -> None:
    """A creation imports by itself; where nothing changed, the command asks for it."""
    answer_creations(quicksight, IngestionId="first")
    quicksight.answer("describe_dashboard", **version_of("CREATION_SUCCESSFUL", 1))
    assert main([*ARGUMENTS, "--spice"]) == 0
    assert capsys.readouterr().out.count("created, import first started") == 2
    assert "CreateIngestion" not in quicksight.operations()

    describe_all(quicksight, unchanged, SPICE)
    assert main([*ARGUMENTS, "--spice"]) == 0
    imports = [body for name, body in quicksight.sent if name == "CreateIngestion"]
    said = capsys.readouterr().out
    assert len({body["IngestionId"] for body in imports}) == 2
    for body in imports:
        assert f"unchanged, import {body['IngestionId']} started" in said


def test_a_version_that_fails_is_not_published(
    quicksight: QuickSight, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(kind: str, described: Request) -> None:
        if kind == "dashboard":
            renamed(kind, described)

    describe_all(quicksight, change, TARGET)
    quicksight.answer("update_dashboard", VersionArn=arn_of(3))
    error = {
        "Type": "COLUMN_TYPE_MISMATCH",
        "Message": "revenue is no number",
        "ViolatedEntities": [{"Path": "sheet/revenue/visual/average-order"}],
    }
    quicksight.answer(
        "describe_dashboard", **version_of("CREATION_FAILED", 3, Errors=[error])
    )
    assert main(ARGUMENTS) == 1
    said = capsys.readouterr()
    assert URL not in said.out
    assert said.err == (
        "serving.quicksight: dashboard cdc-lakehouse-lake-revenue: version 3 ended as"
        " CREATION_FAILED: COLUMN_TYPE_MISMATCH: revenue is no number"
        " sheet/revenue/visual/average-order\n"
    )


def test_a_data_source_that_cannot_connect_stops_the_command(
    quicksight: QuickSight, capsys: pytest.CaptureFixture[str]
) -> None:
    quicksight.refuse("describe_data_source", "ResourceNotFoundException")
    quicksight.answer("create_data_source")
    error = {"Type": "ACCESS_DENIED", "Message": "no such work group"}
    quicksight.answer(
        "describe_data_source", **state_of("CREATION_FAILED", ErrorInfo=error)
    )
    assert main(ARGUMENTS) == 1
    assert capsys.readouterr().err == (
        "serving.quicksight: data source cdc-lakehouse-lake: its creation ended as"
        " CREATION_FAILED: ACCESS_DENIED: no such work group\n"
    )


def test_a_data_source_that_failed_before_is_made_anew(quicksight: QuickSight) -> None:
    known = without(definitions(TARGET).data_source, "AwsAccountId", "Permissions")
    known["Status"] = "CREATION_FAILED"
    quicksight.answer("describe_data_source", DataSource=known)
    quicksight.answer("update_data_source_permissions")
    quicksight.answer("update_data_source")
    quicksight.answer("describe_data_source", **state_of("UPDATE_SUCCESSFUL"))
    body = definitions(TARGET).data_source
    assert publishing.put_data_source(quicksight.client, body) == "updated"


def test_waiting_has_an_end(
    quicksight: QuickSight,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publishing, "SECONDS_TO_WAIT", 0)
    quicksight.refuse("describe_data_source", "ResourceNotFoundException")
    quicksight.answer("create_data_source")
    quicksight.answer("describe_data_source", **state_of("CREATION_IN_PROGRESS"))
    assert main(ARGUMENTS) == 75
    assert "its creation is not done after 0 s: run the command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        (
            "AccessDeniedException",
            "not authorized",
            "needs the policy in docs/quicksight.md",
        ),
        (
            "AccessDeniedException",
            "Operation is being called from endpoint eu-west-1, but your identity region is"
            " us-east-1. Please use the us-east-1 endpoint.",
            "run the command with the --region that the message names",
        ),
        (
            "InvalidParameterValueException",
            "The following principals are not valid",
            "`aws quicksight list-users`",
        ),
        ("UnsupportedUserEditionException", "no", "need QuickSight's Enterprise edition"),
        ("ConflictException", "busy", "run the command again"),
        ("ThrottlingException", "slow down", "run the command again in a minute"),
        ("LimitExceededException", "SPICE", "quota is used up"),
        ("ExpiredTokenException", "expired", "log in anew"),
        ("InternalFailureException", "sorry", "(InternalFailureException): sorry\n"),
    ],
)
def test_a_refusal_says_what_to_do(
    code: str,
    message: str,
    hint: str,
    quicksight: QuickSight,
    capsys: pytest.CaptureFixture[str],
) -> None:
    quicksight.refuse("describe_data_source", "ResourceNotFoundException")
    quicksight.refuse("create_data_source", code, message)
    assert main(ARGUMENTS) == (75 if hint.startswith("run the command again") else 1)
    said = capsys.readouterr().err
    start = f"data source cdc-lakehouse-lake: AWS refuses CreateDataSource ({code})"
    assert said.startswith(f"serving.quicksight: {start}: {message}")
    assert hint in said


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--account", "12345678901", "--account is '12345678901', and should be 12 digits"),
        ("--region", "Ireland", "--region is 'Ireland', and should be such as eu-west-1"),
        (
            "--principal",
            "ann",
            "--principal is 'ann', and should be the ARN of a QuickSight",
        ),
        ("--principal", f"arn:aws:iam::{ACCOUNT}:user/ann", "list-users` shows it"),
        (
            "--principal",
            f"arn:aws:quicksight:{REGION}:{ACCOUNT}:namespace/default",
            "user or group",
        ),
        (
            "--principal",
            f"arn:aws:quicksight:{REGION}:210987654321:user/default/ann",
            "--principal is of the account 210987654321, --account is 123456789012",
        ),
        ("--prefix", "lake'; drop", "--prefix is 'lake'; drop', and should be what stands"),
        ("--work-group", "a b", "--work-group is 'a b', and should be the name"),
    ],
)
def test_a_malformed_option_is_named(
    option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ARGUMENTS, option, value]) == 2
    assert said in capsys.readouterr().err


def test_dry_run_prints_the_requests_and_sends_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [body for _, body in creations(TARGET)]
    monkeypatch.delattr(boto3, "client")
    assert main([*ARGUMENTS, "--dry-run"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [body for request in printed for body in request.values()] == wanted
    assert [name for request in printed for name in request] == [
        "create_data_source",
        "create_data_set",
        "create_data_set",
        "create_dashboard",
    ]


def test_missing_credentials_are_said(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert main(ARGUMENTS) == 1
    assert "no AWS credentials found: log in anew" in capsys.readouterr().err


def test_moto_takes_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A creation, and then an update, as far as moto goes.

    moto 5.2 knows of a data source all that the command asks but the permissions; of data
    sets the creation and the import; of dashboards the creation and the description. It
    stops at the description and the update of a data set, the update of a dashboard and
    its publication.
    """
    wanted = definitions(SPICE)
    with mock_aws():
        client = new_client()
        for kind in ("data_source", "dashboard"):
            monkeypatch.setattr(client, f"update_{kind}_permissions", lambda **_: None)
        assert publishing.put_data_source(client, wanted.data_source) == "created"
        assert publishing.put_data_source(client, wanted.data_source) == "unchanged"
        other = definitions(Target(ACCOUNT, REGION, PRINCIPAL, work_group="readers"))
        assert publishing.put_data_source(client, other.data_source) == "updated"
        assert publishing.put_data_source(client, other.data_source) == "unchanged"
        for body in wanted.data_sets:
            assert client.create_data_set(**body)["DataSetId"] == body["DataSetId"]
            client.create_ingestion(
                AwsAccountId=ACCOUNT, DataSetId=body["DataSetId"], IngestionId="first"
            )
        assert publishing.put_dashboard(client, wanted.dashboard) == "created"
        assert publishing.put_dashboard(client, wanted.dashboard) == "unchanged"


def test_the_policy_allows_what_the_command_calls_and_no_more() -> None:
    text = (PROJECT / "docs" / "quicksight.md").read_text()
    [block] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    [statement] = json.loads(block)["Statement"]
    source = Path(publishing.__file__).read_text()
    names = new_client().meta.method_to_api_mapping
    methods = set(re.findall(r"\bclient\.(\w+)", source)) - {"exceptions"}
    # What reads another resource must be allowed to pass it on.
    called = {names[method] for method in methods} | {"PassDataSource", "PassDataSet"}
    assert statement["Action"] == sorted(f"quicksight:{name}" for name in called)

    wanted = definitions(TARGET)
    data_sets = [data_set["DataSetId"] for data_set in wanted.data_sets]
    needed = [
        f"datasource/{wanted.data_source['DataSourceId']}",
        *(f"dataset/{data_set}" for data_set in data_sets),
        *(f"dataset/{data_set}/ingestion/first" for data_set in data_sets),
        f"dashboard/{wanted.dashboard['DashboardId']}",
    ]
    for place in needed:
        arn = f"arn:aws:quicksight:REGION:ACCOUNT:{place}"
        assert any(fnmatchcase(arn, pattern) for pattern in statement["Resource"]), arn
    assert all("/cdc-lakehouse-lake" in pattern for pattern in statement["Resource"])
