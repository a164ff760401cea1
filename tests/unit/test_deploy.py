"""The stacks of ``deploy/aws`` on moto, their runs without AWS, and the jobs' entry point.

What the stacks grant, run and watch is compared with a snapshot; here are the rules that
hold whatever it says. cfn-lint checks the templates in ``make lint``, so nothing here does.
"""

import difflib
import json
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from deploy.aws import entry
from deploy.package import ARCHIVE, FILES
from ingest.topics import read_topics
from tests.support.aws import Aws, documented_policy
from tests.support.cloudformation import STACKS, Properties, Stacks, template
from tests.support.project import PROJECT
from tests.support.state_machine import StateError, execute

ACCOUNT = "123456789012"
CLUSTER = f"arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/events/0a1b-1"
BUCKET = f"cdc-lakehouse-lake-{ACCOUNT}-us-east-1"
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


def test_deletion_leaves_the_bucket_and_nothing_else() -> None:
    retained = {
        (stack, name)
        for stack in STACKS
        for name, resource in template(stack)["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }
    assert retained == {("storage", "Bucket")}


def summary(stacks: Stacks) -> str:
    """Rights, roles, steps, alarms, the bucket; of connectors what their files lack."""
    subscribed = boto3.client("sns").list_subscriptions_by_topic(
        TopicArn=stacks.outputs["Alarms"]
    )
    rule = boto3.client("events").describe_rule(Name=f"cdc-lakehouse-{stacks.lake}")
    content = {
        "rights": [*statements(stacks)],
        "roles": {
            name: role["AssumeRolePolicyDocument"]["Statement"]
            for name, role in stacks.resolved["AWS::IAM::Role"].items()
        },
        "steps": steps(stacks),
        "alarms": stacks.resolved["AWS::CloudWatch::Alarm"],
        "bucket": stacks.resolved["AWS::S3::Bucket"],
        "bucket's policy": stacks.resolved["AWS::S3::BucketPolicy"],
        "connectors": {name: changed(name, one) for name, one in connectors(stacks)},
        "told": [one["Endpoint"] for one in subscribed["Subscriptions"]],
        "timer": [rule["ScheduleExpression"], rule["State"]],
    }
    text = yaml.safe_dump(json.loads(json.dumps(content)), width=1000)
    return re.sub(r"(JobRole-|key/)[\w-]+", r"\1ID", text).replace(stacks.lake, "lake")


def test_what_the_stacks_are(
    stacks: Stacks, direct: Stacks, snapshot: SnapshotAssertion
) -> None:
    """And what is different of a lake that is ingested from Kafka."""
    found, other = summary(stacks), summary(direct)
    assert found == snapshot
    lines = difflib.unified_diff(found.split("\n"), other.split("\n"), n=0, lineterm="")
    assert "\n".join(line for line in lines if line[0] != "@") == snapshot


def connectors(stacks: Stacks) -> list[tuple[str, dict[str, str]]]:
    """Each connector's name without the lake, and its configuration."""
    found = stacks.resolved["AWS::KafkaConnect::Connector"].values()
    prefix = f"cdc-lakehouse-{stacks.lake}-"
    return [
        (one["ConnectorName"].removeprefix(prefix), one["ConnectorConfiguration"])
        for one in found
    ]


def changed(name: str, config: dict[str, str]) -> dict[str, str | None]:
    """The settings that are not as in the connector's file."""
    file = PROJECT / f"connectors/{name.replace('sink-s3', 'sink-s3-lenses')}.json"
    own = json.loads(file.read_text(encoding="utf-8"))
    keys = sorted(own.keys() | config)
    return {key: config.get(key) for key in keys if config.get(key) != own.get(key)}


def test_parts_fit_each_other(stacks: Stacks, direct: Stacks) -> None:
    """The package's place, the largest message, offsets, schemas; Kafka admits by IAM."""
    (application,) = resources("jobs", "AWS::EMRServerless::Application")
    (defaults,) = application["RuntimeConfiguration"]
    place = defaults["Properties"]["spark.submit.pyFiles"]["Fn::Sub"][0]
    assert place == f"s3://${{Bucket}}/package/{ARCHIVE}"
    schema = defaults["Properties"]["spark.emr-serverless.driverEnv.LAKE_SCHEMA"]["Fn::Sub"]
    databases = {
        one["DatabaseInput"]["Name"]["Fn::Sub"]: one["DatabaseInput"].get("LocationUri")
        for one in resources("storage", "AWS::Glue::Database")
    }
    for layer in ("bronze", "staging", "silver", "gold"):
        place = {"Fn::Sub": f"s3://${{Bucket}}/lake/warehouse/{layer}.db"}
        assert databases[f"{schema}_{layer}"] == place
    (configuration,) = resources("streaming", "AWS::MSK::Configuration")
    settings = configuration["ServerProperties"]["Fn::Sub"].split()
    sizes = [
        config.get("producer.override.max.request.size") for _, config in connectors(stacks)
    ]
    assert {f"message.max.bytes={size}" for size in sizes if size} <= {*settings}
    (cluster,) = resources("streaming", "AWS::MSK::Cluster")
    assert cluster["ClientAuthentication"] == {
        "Sasl": {"Iam": {"Enabled": True}},
        "Unauthenticated": {"Enabled": False},
    }
    assert (PROJECT / steps(direct)["ingest"].rpartition(" ")[2]).is_file()
    workers = resources("connectors", "AWS::KafkaConnect::WorkerConfiguration")
    texts = [one["PropertiesFileContent"]["Fn::Base64"]["Fn::Sub"] for one in workers]
    assert len({*re.findall(r"^offset\.storage.*", "\n".join(texts), re.MULTILINE)}) == 2


def test_run_ingests_what_the_connectors_send(stacks: Stacks, direct: Stacks) -> None:
    """The sink takes each topic of the sources, and the packaged file lists it."""
    configs = [config for _, config in connectors(stacks)]
    sent = {
        f"{config['topic.prefix']}.{table}"
        for config in configs
        for table in config.get("table.include.list", "").split(",")
        if table
    }
    (pattern,) = (each["topics.regex"] for each in configs if "topics.regex" in each)
    assert [topic for topic in sent if not re.fullmatch(pattern, topic)] == []
    for commands in (steps(stacks), steps(direct)):
        assert "--topic" not in commands["ingest"]
        assert all(find_spec(command.split()[0]) for command in commands.values())
    assert "topics.toml" in FILES
    assert sent == read_topics(PROJECT / "topics.toml").tables.keys()


def test_source_replicates_and_is_closed(stacks: Stacks) -> None:
    """Its secret has what the connectors ask for; no template has a password."""
    (group,) = resources("source", "AWS::RDS::DBClusterParameterGroup")
    assert group["Parameters"]["rds.logical_replication"] == "1"
    (cluster,) = resources("source", "AWS::RDS::DBCluster")
    assert cluster.items() >= {
        *(("DeletionProtection", True), ("ManageMasterUserPassword", True)),
        ("StorageEncrypted", True),
    }
    (instance,) = resources("source", "AWS::RDS::DBInstance")
    assert instance["PubliclyAccessible"] is False
    (ingress,) = resources("source", "AWS::EC2::SecurityGroupIngress")
    (egress,) = resources("source", "AWS::EC2::SecurityGroupEgress")
    assert ingress["SourceSecurityGroupId"] == egress["GroupId"]
    assert ingress["GroupId"] == egress["DestinationSecurityGroupId"]
    (secret,) = resources("source", "AWS::SecretsManager::Secret")
    made = secret["GenerateSecretString"]
    keys = {*json.loads(made["SecretStringTemplate"]["Fn::Sub"])}
    asked = re.findall(r"source:(\w+)}", json.dumps(connectors(stacks)))
    assert {*keys, made["GenerateStringKey"]} == {*asked}


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


def statements(stacks: Stacks) -> Iterator[tuple[str, Properties]]:
    """Those of all policies, each with its owner."""
    for kind in ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"):
        for owner, properties in stacks.resolved[kind].items():
            for policy in properties.get("Policies", [properties]):
                for statement in policy["PolicyDocument"]["Statement"]:
                    yield owner, statement


def rights(stacks: Stacks) -> Iterator[Right]:
    for owner, statement in statements(stacks):
        assert statement["Effect"] == "Allow"
        for action in listed(statement["Action"]):
            for resource in listed(statement["Resource"]):
                yield Right(owner, action, resource, statement.get("Condition", {}))


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
        elif right.action in ("s3:PutObject", "s3:DeleteObject") and "/lake/" in right[2]:
            assert right.owner == "JobRole"
        elif right.action == "secretsmanager:GetSecretValue":
            assert right.owner == "SourceRole"
    assert wide == WIDE
    for role in stacks.resolved["AWS::IAM::Role"].values():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": ACCOUNT}


@pytest.mark.parametrize("layer", ["bronze", "silver", "gold"])
def test_analysts_read_gold_alone(layer: str, stacks: Stacks) -> None:
    """And QuickSight's role, which has the same policy."""
    glue, folder = f"arn:aws:glue:us-east-1:{ACCOUNT}", f"lake/warehouse/{layer}.db/orders/"
    asked = {
        "s3:GetObject": f"arn:aws:s3:::{BUCKET}/{folder}1.parquet",
        "s3:ListBucket": f"arn:aws:s3:::{BUCKET}",
        "glue:GetTable": f"{glue}:table/lake_{layer}/orders",
        "glue:GetDatabase": f"{glue}:database/lake_{layer}",
        "glue:GetTables": f"{glue}:table/lake_spark_{layer}/orders",
    }
    allowed = {
        right.action
        for right in rights(stacks)
        if right.owner in ("AnalystPolicy", "QuickSightRole")
        and fnmatchcase(asked.get(right.action, ""), right.resource)
        and any(
            fnmatchcase(folder, prefix)
            for prefix in right.condition.get("StringLike", {}).get("s3:prefix", "*")
        )
    }
    assert allowed == (asked.keys() - {"glue:GetTables"} if layer == "gold" else set())
    role = stacks.resolved["AWS::IAM::Role"]["QuickSightRole"]
    assert role["ManagedPolicyArns"] == [stacks.outputs["AnalystPolicy"]]


def test_job_may_do_what_serving_glue_needs(stacks: Stacks) -> None:
    statements = documented_policy("docs/serving.md")
    needed = {action for one in statements for action in listed(one["Action"])}
    assert needed <= {right.action for right in rights(stacks) if right.owner == "JobRole"}


# A run


def steps(stacks: Stacks) -> dict[str, str]:
    """The command of each step, in their order."""
    (machine,) = stacks.resolved["AWS::StepFunctions::StateMachine"].values()
    result = machine["Definition"]["States"]["ListSteps"]["Result"]
    return {step["step"]: step["command"] for step in result}


Run = Callable[..., list[str]]


@pytest.fixture
def run(stacks: Stacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Executes the lake's state machine: its jobs, waits, what is published, its failure.

    Of a step's next attempts the exit codes are given, then 0; None is a driver that was
    killed before it wrote one.
    """
    monkeypatch.chdir(tmp_path)
    s3 = boto3.client("s3")

    def call(given: dict[str, list[int | None]], *, running: int = 1) -> list[str]:
        codes = {step: [*of_step] for step, of_step in given.items()}
        log: list[str] = []

        def task(resource: str, asked: Any) -> Properties:
            match resource.removeprefix("arn:aws:states:::"):
                case "wait":
                    log.append(f"wait for {asked} s")
                case "aws-sdk:sfn:listExecutions":
                    own = {"StateMachineArn": "arn:of:machine", "StatusFilter": "RUNNING"}
                    assert asked.items() >= own.items()
                    return {"Executions": [{}] * running}
                case "emr-serverless:startJobRun.sync":
                    log.append(asked["Name"])
                    of_step = codes.get(asked["Name"].partition("-")[0])
                    run_job(asked, of_step.pop(0) if of_step else 0)
                case "aws-sdk:s3:getObject":
                    try:
                        return {"Body": s3.get_object(**asked)["Body"].read().decode()}
                    except s3.exceptions.NoSuchKey as error:
                        raise StateError("S3.NoSuchKeyException", str(error)) from error
                case "sns:publish":
                    assert asked["TopicArn"] == stacks.outputs["Alarms"]
                    log.append(f"publish {asked['Subject']}: {asked['Message']}")
                case _:
                    raise NotImplementedError(resource)  # no machine of ours asks for it
            return {}

        context = {
            "Execution": {"Name": "run-1", "Id": "arn:of:run-1"},
            "StateMachine": {"Id": "arn:of:machine"},
        }
        machine = stacks.resolved["AWS::StepFunctions::StateMachine"]["Run"]
        try:
            execute(machine["Definition"], {}, task, context)
        except StateError as error:
            log.append(": ".join(error.args))
        return log

    def run_job(asked: Properties, code: int | None) -> None:
        """Run the entry point, whose command ends as it is told."""
        driver = asked["JobDriver"]["SparkSubmit"]
        assert driver["EntryPoint"] == f"s3://{BUCKET}/package/spark_job.py"
        module, *arguments = driver["EntryPointArguments"]
        assert module == entry.__name__
        if code is not None:
            monkeypatch.setattr(entry, "run_module", lambda _: (code, ""))
            assert entry.main(arguments) == code
        if code != 0:
            raise StateError("EmrServerless.JobFailed", "see the log")

    yield call
    boto3.resource("s3").Bucket(BUCKET).objects.filter(Prefix="runs/").delete()


@pytest.mark.parametrize(
    "codes",
    [
        {},
        {"ingest": [75], "build": [75, None]},
        {"ingest": [3]},
        *({"build": codes} for codes in ([1], [143], [75, 1], [75] * 3, [None] * 3)),
    ],
    ids=str,
)
def test_run_takes_every_step(
    codes: dict[str, list[int | None]], run: Run, snapshot: SnapshotAssertion
) -> None:
    """Again after exit code 75 or none, and after waits that double; on after 3."""
    assert run(codes) == snapshot


def test_second_run_leaves_the_lake_to_the_first(run: Run) -> None:
    assert run({}, running=2) == []


# The jobs' entry point


@pytest.fixture
def start(
    stacks: Stacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """Runs the entry point in a project whose only module does what a test writes."""
    monkeypatch.setattr(sys, "argv", ["entry.py"])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(code: str, *, step: str = "ingest", attempt: int = 1, place: str = "") -> int:
        (tmp_path / "given.py").write_text(f"import sys\n{code}\n")
        words = ["--lake", "test", "--run", place or f"s3://{BUCKET}/runs/run"]
        words += ["--step", step, "--attempt", str(attempt), "given one 'two words'"]
        return entry.main(words)

    return run


def outcome(name: str) -> Properties:
    body = boto3.client("s3").get_object(Bucket=BUCKET, Key=f"runs/run/{name}.json")["Body"]
    found: Properties = json.loads(body.read())
    return found


def test_exit_code_is_kept_for_the_state_machine(start: Callable[..., int]) -> None:
    for attempt, (ending, code) in enumerate(
        {
            "": 0,
            "sys.exit()": 0,
            "sys.exit(75)": 75,
            "sys.exit('no lake')": 1,
            "raise ValueError": 1,
            "raise KeyboardInterrupt": 130,
        }.items()
    ):
        text = f"assert sys.argv[1:] == ['one', 'two words']\n{ending}"
        assert start(text, attempt=attempt) == code
        assert outcome(f"ingest-{attempt}")["exit_code"] == code


def test_counts_of_the_ingest_are_metrics(
    start: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    line = "read 1023 records, wrote 1020 events, rejected 2, skipped 1"
    assert start(f"print({line!r})", attempt=2) == 0
    assert line in capsys.readouterr().out
    found = outcome("ingest-2")["metrics"]
    counts = {"RecordsRead": 1023, "RecordsWritten": 1020, "RecordsRejected": 2}
    assert found == {"Succeeded": 1, **counts, "Seconds": found["Seconds"]}
    metrics = boto3.client("cloudwatch").list_metrics(Namespace=entry.NAMESPACE)["Metrics"]
    assert {one["MetricName"] for one in metrics if "test" in str(one)} == found.keys()


def test_manifest_goes_from_the_build_to_glue(
    start: Callable[..., int], tmp_path: Path
) -> None:
    file = "import pathlib; file = pathlib.Path('target/manifest.json')"
    write = f"{file}; file.parent.mkdir(); file.write_text('of the build')"
    assert start(write, step="build") == 0
    (tmp_path / "target/manifest.json").unlink()
    assert start(f"{file}; assert file.read_text() == 'of the build'", step="glue") == 0


def test_job_without_a_bucket_keeps_its_exit_code(
    start: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The state machine then finds no outcome, and tries again."""
    assert start("sys.exit(2)", place="s3://not-there/runs/x") == 2
    assert "entry: An error occurred (NoSuchBucket)" in capsys.readouterr().err
