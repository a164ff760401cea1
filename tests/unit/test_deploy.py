"""The stacks of ``deploy/aws`` on moto, their runs without AWS, and the jobs' entry point.

cfn-lint checks the templates in ``make lint``, so nothing here does.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import boto3
import pytest

from deploy.aws import entry
from deploy.package import ARCHIVE
from tests.support.aws import Aws, documented_policy
from tests.support.cloudformation import STACKS, Properties, Stacks, template
from tests.support.project import PROJECT
from tests.support.state_machine import Execution, StateError

ACCOUNT = "123456789012"
CLUSTER = f"arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/events/0a1b-1"
BUCKET = f"cdc-lakehouse-lake-{ACCOUNT}-us-east-1"
PREFIX = "cdc-lakehouse-lake-"
NETWORK = {"SubnetIds": "subnet-1,subnet-2,subnet-3", "SecurityGroupIds": "sg-1"}
# moto's CloudFormation warns of each type that it ignores.
pytestmark = pytest.mark.filterwarnings("ignore:Tried to parse")


def create(lake: str, **parameters: dict[str, str]) -> Stacks:
    """The stacks of a lake, some of them with other parameters than those of most."""
    vpc = boto3.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    of_most: dict[str, dict[str, str]] = {
        "storage": {},
        "streaming": {"VpcId": vpc, "SubnetIds": NETWORK["SubnetIds"]},
        "connectors": {"ClusterArn": CLUSTER, "BootstrapServers": "b-1:9098", **NETWORK},
        "jobs": {},
        "schedule": {"ClusterName": "events", "SourceInstance": "shop"},
    }
    return Stacks(lake, of_most | parameters)


@pytest.fixture(scope="module")
def stacks(aws: Aws) -> Stacks:
    return create("lake")


@pytest.fixture(scope="module")
def direct(aws: Aws) -> Stacks:
    """Of a lake that is ingested from Kafka, without a sink."""
    return create(
        "direct",
        jobs={"ClusterArn": CLUSTER, **NETWORK},
        schedule={"BootstrapServers": "b-1:9098", "AlarmEmail": "a@example.org"},
    )


def resources(stack: str, kind: str) -> list[Properties]:
    """The properties of a template's resources of a type, with references in them."""
    return [
        resource["Properties"]
        for resource in template(stack)["Resources"].values()
        if resource["Type"] == kind
    ]


# Creation and deletion


def contents() -> dict[str, set[str]]:
    """What the account has, by service."""
    return {
        service: {one[name] for one in getattr(boto3.client(service), operation)()[field]}
        for service, operation, field, name in (
            ("events", "list_rules", "Rules", "Name"),
            ("iam", "list_roles", "Roles", "RoleName"),
            ("logs", "describe_log_groups", "logGroups", "logGroupName"),
            ("s3", "list_buckets", "Buckets", "Name"),
            ("sns", "list_topics", "Topics", "TopicArn"),
            ("stepfunctions", "list_state_machines", "stateMachines", "name"),
        )
    }


def test_deletion_leaves_the_bucket_and_nothing_else(stacks: Stacks) -> None:
    before = contents()
    other = create("other")
    during = contents()
    assert all(during[service] > before[service] for service in before)
    other.delete()
    bucket = {f"cdc-lakehouse-other-{ACCOUNT}-us-east-1"}
    assert contents() == before | {"s3": before["s3"] | bucket}
    retained = {
        (stack, name)
        for stack in STACKS
        for name, resource in template(stack)["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }
    assert retained == {("storage", "Bucket")}


def test_lake_that_is_ingested_from_kafka(direct: Stacks) -> None:
    assert set(direct.resolved["AWS::IAM::Policy"]) == {"KafkaPolicy"}
    options = "deploy/aws/kafka-iam.properties"
    command, _, words = steps(direct)["ingest"].partition(" --topic ")
    assert command == f"ingest kafka --bootstrap-servers b-1:9098 --options {options}"
    assert (PROJECT / options).is_file()
    assert set(words.split()) == topics()
    subscriptions = boto3.client("sns").list_subscriptions_by_topic(
        TopicArn=direct.outputs["Alarms"]
    )["Subscriptions"]
    assert [one["Endpoint"] for one in subscriptions] == ["a@example.org"]
    # Without connectors to watch, there are no alarms on them.
    assert set(direct.resolved["AWS::CloudWatch::Alarm"]) == {
        *("RunFailed", "BuildLate", "Rejected")
    }


def topics() -> set[str]:
    return set(tomllib.loads((PROJECT / "topics.toml").read_text())["topics"])


# What the templates and the project have in common


def test_bucket_is_private_and_never_loses_the_lake() -> None:
    (bucket,) = resources("storage", "AWS::S3::Bucket")
    assert list(bucket["PublicAccessBlockConfiguration"].values()) == [True] * 4
    expiring = {
        rule["Prefix"]
        for rule in bucket["LifecycleConfiguration"]["Rules"]
        if "ExpirationInDays" in rule
    }
    assert expiring == {"landing/", "athena/", "runs/", ".temp-upload/"}
    (policy,) = resources("storage", "AWS::S3::BucketPolicy")
    statements = policy["PolicyDocument"]["Statement"]
    assert {statement["Effect"] for statement in statements} == {"Deny"}
    assert {"Bool": {"aws:SecureTransport": "false"}} in [
        statement["Condition"] for statement in statements
    ]


def test_package_is_where_the_jobs_look_for_it() -> None:
    (application,) = resources("jobs", "AWS::EMRServerless::Application")
    (defaults,) = application["RuntimeConfiguration"]
    place = defaults["Properties"]["spark.submit.pyFiles"]["Fn::Sub"][0]
    assert place == f"s3://${{Bucket}}/package/{ARCHIVE}"


def connectors(stacks: Stacks) -> dict[str, dict[str, str]]:
    """The configuration of each connector, by its name without the lake."""
    found = stacks.resolved["AWS::KafkaConnect::Connector"].values()
    return {
        one["ConnectorName"].removeprefix(PREFIX): one["ConnectorConfiguration"]
        for one in found
    }


def test_connectors_differ_from_the_files_in_what_aws_needs(stacks: Stacks) -> None:
    found = connectors(stacks)
    secrets = {
        f"database.{setting}": f"${{secretsmanager:cdc-lakehouse/source:{key}}}"
        for setting, key in (
            *(("hostname", "host"), ("port", "port"), ("dbname", "database")),
            *(("user", "user"), ("password", "password")),
        )
    }
    source = {**secrets, "config.action.reload": "none", "database.sslmode": "require"}
    for name, file, needed in (
        ("source-outbox", "source-outbox", source),
        ("source-tables", "source-tables", source),
        ("sink-s3", "sink-s3-lenses", {"connect.s3.aws.region": "us-east-1"}),
    ):
        text = (PROJECT / f"connectors/{file}.json").read_text(encoding="utf-8")
        text = text.replace("lakehouse-landing:topics", f"{BUCKET}:landing/topics")
        assert found.pop(name) == json.loads(text) | needed | {"tasks.max": "1"}
    assert found == {}


def test_cluster_takes_what_the_sources_send_and_admits_by_iam_only(
    stacks: Stacks,
) -> None:
    (configuration,) = resources("streaming", "AWS::MSK::Configuration")
    settings = configuration["ServerProperties"]["Fn::Sub"].split()
    for source in ("source-outbox", "source-tables"):
        size = connectors(stacks)[source]["producer.override.max.request.size"]
        assert f"message.max.bytes={size}" in settings
    (cluster,) = resources("streaming", "AWS::MSK::Cluster")
    assert cluster["ClientAuthentication"] == {
        "Sasl": {"Iam": {"Enabled": True}},
        "Unauthenticated": {"Enabled": False},
    }


def test_each_source_keeps_its_offsets_in_a_topic_of_its_own() -> None:
    workers = resources("connectors", "AWS::KafkaConnect::WorkerConfiguration")
    lines = [
        one["PropertiesFileContent"]["Fn::Base64"]["Fn::Sub"].split() for one in workers
    ]
    names = {line for one in lines for line in one if line.startswith("offset.storage")}
    assert len(names) == len(workers) == 2


# Rights

# AWS permits nothing narrower: metrics have no ARN (the namespace is a condition), and log
# groups are described all at once.
WIDE = {
    ("cloudwatch:PutMetricData", "*"),
    ("logs:DescribeLogGroups", f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:*"),
}


class Right(NamedTuple):
    """What a role or a policy allows."""

    owner: str
    action: str
    resource: str
    condition: Properties


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def rights(stacks: Stacks) -> Iterator[Right]:
    for kind in ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"):
        for owner, properties in stacks.resolved[kind].items():
            for policy in properties.get("Policies", [properties]):
                for statement in policy["PolicyDocument"]["Statement"]:
                    assert statement["Effect"] == "Allow"
                    condition = statement.get("Condition", {})
                    for action in listed(statement["Action"]):
                        for resource in listed(statement["Resource"]):
                            yield Right(owner, action, resource, condition)


def test_no_right_is_wider_than_it_must_be(stacks: Stacks, direct: Stacks) -> None:
    wide = set()
    for right in (*rights(stacks), *rights(direct)):
        assert "*" not in right.action, right
        # Service, region, account; then what may only end with a pattern.
        parts = right.resource.split(":", 5)
        if len(parts) < 6 or re.fullmatch(r"[\w-]*[:/]?\*", parts[5]):
            wide.add((right.action, right.resource))
        else:
            assert "*" not in "".join(parts[:5]), right
            assert not re.fullmatch(r"cdc-lakehouse-[\w-]+/\*", parts[5]), right
        if right.action == "cloudwatch:PutMetricData":
            namespace = {"cloudwatch:namespace": entry.NAMESPACE}
            assert right.condition == {"StringEquals": namespace}
    assert wide == WIDE


def test_only_its_service_takes_a_role(stacks: Stacks) -> None:
    services = {}
    for name, role in stacks.resolved["AWS::IAM::Role"].items():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": ACCOUNT}
        services[name] = statement["Principal"]["Service"]
    assert services == {
        "JobRole": "emr-serverless.amazonaws.com",
        "RunRole": "states.amazonaws.com",
        "SinkRole": "kafkaconnect.amazonaws.com",
        "SourceRole": "kafkaconnect.amazonaws.com",
        "TimerRole": "events.amazonaws.com",
    }


def test_job_may_do_what_serving_glue_needs(stacks: Stacks) -> None:
    needed = {
        action
        for statement in documented_policy("docs/serving.md")
        for action in listed(statement["Action"])
    }
    has = [right for right in rights(stacks) if right.owner == "JobRole"]
    assert needed <= {right.action for right in has}
    arn = f"arn:aws:glue:us-east-1:{ACCOUNT}"
    places = {f"{arn}:{name}" for name in ("catalog", "database/lake_*", "table/lake_*/*")}
    assert places <= {one.resource for one in has if one.action == "glue:CreateTable"}


def test_only_the_job_writes_the_lake(stacks: Stacks) -> None:
    writers = {
        (right.owner, right.resource.removeprefix(f"arn:aws:s3:::{BUCKET}/"))
        for right in rights(stacks)
        if right.action in ("s3:PutObject", "s3:DeleteObject")
    }
    assert writers == {
        ("AnalystPolicy", "athena/*"),
        *(("JobRole", place) for place in ("lake/*", "runs/*")),
        *(("SinkRole", place) for place in ("landing/*", ".indexes/*", ".temp-upload/*")),
    }
    readers = {
        right.owner
        for right in rights(stacks)
        if right.action == "secretsmanager:GetSecretValue"
    }
    assert readers == {"SourceRole"}


# A run


def steps(stacks: Stacks) -> dict[str, str]:
    """The command of each step, in their order."""
    (machine,) = stacks.resolved["AWS::StepFunctions::StateMachine"].values()
    result = machine["Definition"]["States"]["ListSteps"]["Result"]
    return {step["step"]: step["command"] for step in result}


def test_steps_are_commands_of_the_project(stacks: Stacks) -> None:
    assert steps(stacks) == {
        "ingest": f"ingest files s3://{BUCKET}/landing/topics/",
        "build": "dbt.cli.main build --profiles-dir profiles",
        "glue": "cdc_lakehouse glue --prefix lake",
        "dashboard": "cdc_lakehouse dashboard",
    }
    for step in ("ingest", "glue", "dashboard"):
        assert find_spec(steps(stacks)[step].split()[0])


def test_timer_starts_a_run(stacks: Stacks) -> None:
    events = boto3.client("events")
    rule = events.describe_rule(Name="cdc-lakehouse-lake")
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(15 minutes)", "ENABLED")
    (target,) = events.list_targets_by_rule(Rule="cdc-lakehouse-lake")["Targets"]
    assert target["Arn"] == stacks.outputs["StateMachine"]
    assert [one[1:] for one in rights(stacks) if one.owner == "TimerRole"] == [
        ("states:StartExecution", target["Arn"], {})
    ]


class Run:
    """An execution of the lake's state machine.

    Attributes:
        codes: the exit codes of a step's next attempts, then 0. None is a driver that was
            killed before it wrote one.
        jobs: the names of the jobs, in their order.
        messages: what was published, as subject and text.
        running: how many executions there are.
        waits: the seconds of each wait.
    """

    def __init__(self, stacks: Stacks, monkeypatch: pytest.MonkeyPatch) -> None:
        self.machine = stacks.resolved["AWS::StepFunctions::StateMachine"]["Run"]
        self.topic = stacks.outputs["Alarms"]
        self.monkeypatch = monkeypatch
        self.codes: dict[str, list[int | None]] = {}
        self.jobs: list[str] = []
        self.messages: list[tuple[str, str]] = []
        self.running = 1
        self.waits: list[int] = []

    def __call__(self) -> None:
        run, machine = {"Name": "run-1", "Id": "arn:of:run-1"}, {"Id": "arn:of:machine"}
        execution = Execution(self.task, {"Execution": run, "StateMachine": machine})
        self.waits = execution.waits
        execution.run(self.machine["Definition"], {})

    def task(self, resource: str, asked: Properties) -> Properties:
        match resource.removeprefix("arn:aws:states:::"):
            case "aws-sdk:sfn:listExecutions":
                assert asked["StateMachineArn"] == "arn:of:machine"
                assert asked["StatusFilter"] == "RUNNING"
                return {"Executions": [{}] * self.running}
            case "emr-serverless:startJobRun.sync":
                self.run_job(asked)
            case "aws-sdk:s3:getObject":
                s3 = boto3.client("s3")
                try:
                    return {"Body": s3.get_object(**asked)["Body"].read().decode()}
                except s3.exceptions.NoSuchKey as error:
                    raise StateError("S3.NoSuchKeyException", str(error)) from error
            case "sns:publish":
                assert asked["TopicArn"] == self.topic
                self.messages.append((asked["Subject"], asked["Message"]))
            case _:
                raise NotImplementedError(resource)  # no machine of ours asks for it
        return {}

    def run_job(self, asked: Properties) -> None:
        """Run the entry point, whose command ends as it is told."""
        driver = asked["JobDriver"]["SparkSubmit"]
        assert driver["EntryPoint"] == f"s3://{BUCKET}/package/spark_job.py"
        module, *arguments = driver["EntryPointArguments"]
        assert module == entry.__name__
        self.jobs.append(asked["Name"])
        codes = self.codes.get(asked["Name"].partition("-")[0])
        code = codes.pop(0) if codes else 0
        if code is not None:
            self.monkeypatch.setattr(entry, "run_module", lambda _: (code, ""))
            assert entry.main(arguments) == code
        if code != 0:
            raise StateError("EmrServerless.JobFailed", "see the log")


@pytest.fixture
def run(stacks: Stacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.chdir(tmp_path)
    yield Run(stacks, monkeypatch)
    bucket = boto3.resource("s3").Bucket(BUCKET)
    bucket.objects.filter(Prefix="runs/").delete()


def jobs(**attempts: int) -> list[str]:
    """Every step's job; of some steps so many."""
    return [
        f"{step}-{number + 1}"
        for step in ("ingest", "build", "glue", "dashboard")
        for number in range(attempts.get(step, 1))
    ]


@pytest.mark.parametrize(
    ("codes", "attempts", "waits", "subjects"),
    [
        ({}, {}, [], []),
        (
            {"ingest": [75], "build": [75, None]},
            {"ingest": 2, "build": 3},
            [60, 60, 120],
            [],
        ),
        # Everything readable is committed.
        ({"ingest": [3]}, {}, [], ["cdc-lakehouse lake: too many records rejected"]),
    ],
)
def test_run_takes_every_step(
    codes: dict[str, list[int | None]],
    attempts: dict[str, int],
    waits: list[int],
    subjects: list[str],
    run: Run,
) -> None:
    """Again after exit code 75 only, and after waits that double; on after 3."""
    run.codes = codes
    run()
    assert (run.jobs, run.waits) == (jobs(**attempts), waits)
    assert [subject for subject, _ in run.messages] == subjects


@pytest.mark.parametrize(
    ("codes", "attempts", "code"),
    [
        ([1], 1, 1),
        ([143], 1, 143),
        ([75, 1], 2, 1),
        ([75, 75, 75, 0], 3, 75),
        ([None, None, None, 0], 3, 75),
    ],
)
def test_failure_ends_the_run_and_is_reported(
    codes: list[int | None], attempts: int, code: int, run: Run
) -> None:
    run.codes = {"build": codes}
    with pytest.raises(StateError) as failed:
        run()
    assert failed.value.name == "RunFailed"
    said = f"step build failed in attempt {attempts} with exit code {code}"
    assert failed.value.cause == f"{said} (EmrServerless.JobFailed)"
    assert run.jobs == jobs(build=attempts, glue=0, dashboard=0)
    text = f"{failed.value.cause}; execution arn:of:run-1"
    assert run.messages == [("cdc-lakehouse lake: a run failed", text)]


def test_second_run_leaves_the_lake_to_the_first(run: Run) -> None:
    run.running = 2
    run()
    assert run.jobs == []


# Alarms


def alarms(stacks: Stacks) -> dict[str, Properties]:
    return {
        alarm["AlarmName"].removeprefix(PREFIX): alarm
        for alarm in stacks.resolved["AWS::CloudWatch::Alarm"].values()
    }


def dimensions(metric: Properties) -> dict[str, str]:
    return {one["Name"]: one["Value"] for one in metric["Dimensions"]}


def test_every_alarm_is_sent_and_is_on_a_metric_that_there_is(stacks: Stacks) -> None:
    found = alarms(stacks)
    for alarm in found.values():
        assert alarm["AlarmActions"] == [stacks.outputs["Alarms"]]
    # Silence of a build or of a connector is one, too.
    breaching = {
        name: dimensions(alarm)
        for name, alarm in found.items()
        if alarm["TreatMissingData"] == "breaching"
    }
    build = {"Lake": "lake", "Step": "build"}
    assert breaching == {"build-late": build} | {
        f"{name}-stopped": {"ConnectorName": f"{PREFIX}{name}"}
        for name in connectors(stacks)
    }
    watched = {
        alarm["MetricName"]: dimensions(alarm)
        for alarm in found.values()
        if alarm.get("Namespace") == entry.NAMESPACE
    }
    assert watched == {
        "Succeeded": build,
        "RecordsRejected": {"Lake": "lake", "Step": "ingest"},
    }
    sent = entry.metrics(0, 1.0, "read 3 records, wrote 1 events, rejected 2, skipped 0\n")
    assert watched.keys() <= sent.keys()


def test_lag_is_that_of_every_topic(stacks: Stacks) -> None:
    lag, *queries = alarms(stacks)["sink-lag"]["Metrics"]
    assert lag["Expression"] == f"MAX([{', '.join(query['Id'] for query in queries)}])"
    watched = [dimensions(query["MetricStat"]["Metric"]) for query in queries]
    assert {one["Topic"] for one in watched} == topics()
    # Connect calls a sink's group so, and the sink's role may use it.
    (group,) = {one["Consumer Group"] for one in watched}
    assert group == f"connect-{PREFIX}sink-s3"
    assert any(
        right.action == "kafka-cluster:DescribeGroup"
        and right.resource.endswith(f"/{group}")
        for right in rights(stacks)
    )


# The jobs' entry point

Start = Callable[..., int]


@pytest.fixture
def start(stacks: Stacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Runs the entry point in a project whose only module does what a test writes."""
    monkeypatch.setattr(sys, "argv", ["entry.py"])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(code: str, *, step: str = "ingest", attempt: int = 1, place: str = "") -> int:
        (tmp_path / "given.py").write_text(f"import sys\n{code}\n")
        return entry.main(
            [
                *("--lake", "test", "--run", place or f"s3://{BUCKET}/runs/run"),
                *("--step", step, "--attempt", str(attempt), "given one 'two words'"),
            ]
        )

    return run


def outcome(name: str) -> Properties:
    body = boto3.client("s3").get_object(Bucket=BUCKET, Key=f"runs/run/{name}.json")["Body"]
    found: Properties = json.loads(body.read())
    return found


def test_exit_code_is_kept_for_the_state_machine(start: Start) -> None:
    endings = {
        "": 0,
        "sys.exit()": 0,
        "sys.exit(75)": 75,
        "sys.exit('no lake')": 1,
        "raise ValueError": 1,
        "raise KeyboardInterrupt": 130,
    }
    for attempt, (ending, code) in enumerate(endings.items()):
        text = f"assert sys.argv[1:] == ['one', 'two words']\n{ending}"
        assert start(text, attempt=attempt) == code
        assert outcome(f"ingest-{attempt}")["exit_code"] == code


def test_counts_of_the_ingest_are_metrics(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "read 1023 records, wrote 1020 events, rejected 2, skipped 1"
    assert start(f"print({line!r})", attempt=2) == 0
    assert line in capsys.readouterr().out
    found = outcome("ingest-2")["metrics"]
    counts = {"RecordsRead": 1023, "RecordsWritten": 1020, "RecordsRejected": 2}
    assert found.pop("Seconds") >= 0
    assert found == {"Succeeded": 1, **counts}
    metrics = boto3.client("cloudwatch").list_metrics(Namespace=entry.NAMESPACE)["Metrics"]
    sent = {metric["MetricName"] for metric in metrics if "test" in str(metric)}
    assert sent == {*found, "Seconds"}


def test_manifest_goes_from_the_build_to_glue(start: Start, tmp_path: Path) -> None:
    file = "import pathlib; file = pathlib.Path('target/manifest.json')"
    write = f"{file}; file.parent.mkdir(); file.write_text('of the build')"
    assert start(write, step="build") == 0
    (tmp_path / "target/manifest.json").unlink()
    assert start(f"{file}; assert file.read_text() == 'of the build'", step="glue") == 0


def test_job_without_a_bucket_keeps_its_exit_code(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state machine then finds no outcome, and tries again."""
    assert start("sys.exit(2)", place="s3://not-there/runs/x") == 2
    assert "entry: An error occurred (NoSuchBucket)" in capsys.readouterr().err
