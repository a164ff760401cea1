"""QuickSight's definitions against their schemas and gold, and the command's calls.

Nothing here reaches AWS: what QuickSight itself makes of the definitions, no test can say.
"""

import copy
import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from cfnlint.api import ManualArgs, lint  # type: ignore[import-untyped]  # it has no types
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.cli import main
from cdc_lakehouse.serving.quicksight import publish as publishing
from cdc_lakehouse.serving.quicksight.definitions import (
    Request,
    Target,
    definitions,
)
from tests.support.aws import documented_policy
from tests.unit.conftest import Cli

ACCOUNT = "123456789012"
REGION = "eu-west-1"
PRINCIPAL = f"arn:aws:quicksight:us-east-1:{ACCOUNT}:user/default/ann"
ARGUMENTS = ["--account", ACCOUNT, "--region", REGION, "--principal", PRINCIPAL]
TARGET = Target(ACCOUNT, REGION, PRINCIPAL)
SPICE = Target(ACCOUNT, REGION, PRINCIPAL, is_spice=True)
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
    kinds = ("DataSource", *["DataSet"] * 3, "Dashboard")
    resources = {
        f"{kind}{number}": {"Type": f"AWS::QuickSight::{kind}", "Properties": body}
        for number, (kind, body) in enumerate(zip(kinds, bodies(target), strict=True))
    }
    text = json.dumps({"Resources": resources})
    assert lint(text, config=ManualArgs(regions=[REGION])) == []


def values(content: Any, key: str) -> Iterator[Any]:
    """What stands under a key, at any depth."""
    if isinstance(content, dict):
        if key in content:
            yield content[key]
        content = list(content.values())
    if isinstance(content, list):
        for one in content:
            yield from values(one, key)


def test_dry_run_prints_the_requests_and_sends_none(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """No value becomes JSON; whatever changes in the dashboard is a new version."""
    monkeypatch.delattr(boto3, "client")
    name = '","Actions":["quicksight:*"],"x":"${account}'
    role = f"arn:aws:iam::{ACCOUNT}:role/readers"
    options = ["--prefix", "shop", "--work-group", "readers", "--role", role, "--spice"]
    options += ["--principal", PRINCIPAL.replace("ann", name), "--dry-run"]
    said = cli("quicksight", *ARGUMENTS, *options)
    assert said == snapshot
    assert definitions(TARGET).dashboard["VersionDescription"] not in said.out


# The definitions and gold


def quicksight_type(data_type: str, is_spice: bool) -> tuple[str, str | None]:
    if scale := re.fullmatch(r"decimal\(\d+,(\d+)\)", data_type):
        sub_type = "FIXED" if int(scale[1]) <= 4 else "FLOAT"
        return "DECIMAL", sub_type if is_spice else None
    return TYPES[data_type], None


def test_data_sets_have_the_columns_of_gold(manifest: dict[str, Any]) -> None:
    """And the dashboard shows no other. Only data sets of SPICE have sub types."""
    models = filter(lambda node: node["schema"] == "gold", manifest["nodes"].values())
    gold = {node["alias"]: node["columns"] for node in models}
    columns: dict[str, set[str]] = {}
    for target in (TARGET, SPICE):
        for table in values(definitions(target).data_sets, "RelationalTable"):
            columns[table["Name"]] = {column["Name"] for column in table["InputColumns"]}
            assert {
                column["Name"]: (column["Type"], column.get("SubType"))
                for column in table["InputColumns"]
            } == {
                name: quicksight_type(column["data_type"], target.is_spice)
                for name, column in gold[table["Name"]].items()
            }
    definition = definitions(TARGET).dashboard["Definition"]
    for calculated in definition["CalculatedFields"]:
        known = columns[calculated["DataSetIdentifier"]]
        assert set(re.findall(r"\{(\w+)\}", calculated["Expression"])) <= known
        known.add(calculated["Name"])
    read = [*values(definition, "Column")]
    assert len(read) > 8
    for column in read:
        assert column["ColumnName"] in columns[column["DataSetIdentifier"]]


# The command


def id_of(body: Request) -> str:
    keys = ("DataSourceId", "DataSetId", "DashboardId")
    (found,) = (str(body[key]) for key in keys if key in body)
    return found


class Account:
    """QuickSight in an account; botocore checks the requests, and what they put is kept."""

    def __init__(self) -> None:
        credentials = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "test")
        self.client = boto3.client("quicksight", region_name=REGION, **credentials)
        events = self.client.meta.events
        events.register("provide-client-params.quicksight", self._take)
        events.register("before-call.quicksight", self._respond)
        self.called: set[str] = set()
        self.calls: list[str] = []  # but those that describe
        self.kept: dict[str, Request] = {}  # of the dashboard the version that is shown
        self.versions: list[Request] = []
        self.statuses: dict[str, list[str]] = {}  # as it is described, the last for ever
        self.ending = "SUCCESSFUL"
        self.refusal: tuple[str, str] | None = None  # of a creation

    def _take(self, params: Request, **_: Any) -> None:
        self._body = copy.deepcopy(params)

    def _respond(self, model: Any, **_: Any) -> tuple[SimpleNamespace, Request]:
        self.called.add(model.name)
        verb, kind = re.findall("^([A-Z][a-z]+)(.*)", model.name)[0]
        key = id_of(self._body)
        refused = self.refusal if verb == "Create" else None
        if verb == "Describe" and key not in self.kept:
            refused = ("ResourceNotFoundException", "")
        if refused:
            error = dict(zip(("Code", "Message"), refused, strict=True))
            return SimpleNamespace(status_code=400), {"Error": error}
        if verb != "Describe":
            self.calls.append(f"{model.name} {key}")
        answer = self._described if verb == "Describe" else self._put
        return SimpleNamespace(status_code=200), answer(verb, kind, key, self._body)

    def _put(self, verb: str, kind: str, key: str, body: Request) -> Request:
        if kind.endswith("Permissions"):
            self.kept[key]["Permissions"] = body["GrantPermissions"]
        elif kind == "DashboardPublishedVersion":
            self.kept[key] |= self.versions[body["VersionNumber"] - 1]
        elif kind != "Ingestion":
            self.statuses[key] = ["IN_PROGRESS", self.ending]
            if kind == "Dashboard":
                self.versions.append(body)
            if (verb, kind) != ("Update", "Dashboard"):
                self.kept[key] = self.kept.get(key, {}) | body
        first = {"IngestionId": "first"} if body.get("ImportMode") == "SPICE" else {}
        return {"VersionArn": f"{key}/version/{len(self.versions)}", **first}

    def _described(self, verb: str, kind: str, key: str, body: Request) -> Request:
        """With defaults of AWS's in it."""
        known = copy.deepcopy(self.kept[key])
        for columns in values(known, "InputColumns"):
            for place, column in enumerate(columns):
                column["Id"] = f"column-{place}"
        status, *later = self.statuses[key]
        self.statuses[key] = later or [status]
        known["Status"] = f"CREATION_{status}"
        problem = {"Type": "DENIED", "Message": "no such thing"}
        problems = [{**problem, "ViolatedEntities": [{"Path": "sheet/revenue"}]}]
        if known["Status"].endswith("FAILED"):
            known |= {"ErrorInfo": problem, "Errors": problems}
        if kind == "Dashboard":
            number = body.get("VersionNumber")
            shown = self.versions[number - 1] if number else known
            known["Description"] = shown["VersionDescription"]
            return {kind: {"Version": known}}
        return {kind: known}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """The command's."""
    found = Account()
    monkeypatch.setattr(boto3, "client", lambda *_, **__: found.client)
    monkeypatch.setattr(publishing, "SECONDS_BETWEEN_POLLS", 0)
    return found


@pytest.mark.parametrize("options", [[], ["--spice"]], ids=["direct", "spice"])
def test_everything_is_created_then_kept_then_mended(
    options: list[str], account: Account, cli: Cli, snapshot: SnapshotAssertion
) -> None:
    wanted = {id_of(body): body for body in bodies(SPICE if options else TARGET)}

    def run() -> str:
        account.calls.clear()
        said = cli("quicksight", *ARGUMENTS, *options)
        assert (said.code, account.kept) == (0, wanted)
        text = "\n".join([said.out, *account.calls])
        return re.sub("[0-9a-f]{8}-[0-9a-f-]{27}", "UUID", text)

    said = [run(), run()]
    for body in account.kept.values():
        body |= {"Name": "old", "Permissions": []}
    account.kept[[*wanted][-1]]["VersionDescription"] = "old"
    said.append(run())
    account.statuses = {name: ["FAILED"] for name in wanted}
    assert [*said, run()] == snapshot


def test_what_failed_is_named(
    account: Account,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """Nothing follows a data source; a version of the dashboard is not shown."""
    account.ending = "FAILED"
    said = [cli("quicksight", *ARGUMENTS)]
    source, *_, dashboard = map(id_of, bodies(TARGET))
    assert [*account.kept] == [source]
    account.kept, account.ending = {}, "SUCCESSFUL"
    assert main(["quicksight", *ARGUMENTS]) == 0
    account.kept[dashboard]["VersionDescription"] = "old"
    account.ending = "FAILED"
    said.append(cli("quicksight", *ARGUMENTS))
    assert account.kept[dashboard]["VersionDescription"] == "old"
    account.kept, account.ending = {}, "SUCCESSFUL"
    monkeypatch.setattr(publishing, "SECONDS_TO_WAIT", 0)
    assert [*said, cli("quicksight", *ARGUMENTS)] == snapshot


def test_a_refusal_says_what_to_do(
    account: Account, cli: Cli, snapshot: SnapshotAssertion
) -> None:
    said = []
    for account.refusal in [
        ("AccessDeniedException", "not authorized"),
        ("AccessDeniedException", "your identity region is x"),
        ("ConflictException", "busy"),
        ("ExpiredTokenException", "expired"),
        ("InternalFailureException", "sorry"),
        ("InvalidParameterValueException", "The principals are wrong"),
        ("ThrottlingException", "slow down"),
        ("UnsupportedUserEditionException", "no"),
    ]:
        said.append(cli("quicksight", *ARGUMENTS))
    assert said == snapshot


def test_the_policy_allows_what_the_command_calls_and_no_more(account: Account) -> None:
    for spice in ([], ["--spice"], ["--spice"]):
        assert main(["quicksight", *ARGUMENTS, *spice]) == 0
        for body in account.kept.values():
            body |= {} if spice else {"Name": "old", "VersionDescription": "old"}
    # What reads another resource must be allowed to pass it on.
    called = account.called | {"PassDataSource", "PassDataSet"}
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
