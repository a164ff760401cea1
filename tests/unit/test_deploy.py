"""The stacks of ``deploy/aws`` on moto, and the entry point of their jobs.

What the stacks grant, run and watch is compared with a snapshot; the tests by hand are of
what must fit something else. cfn-lint checks the templates in ``make lint``, the state
machine's language too, so nothing here does.
"""

import difflib
import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def summary(stacks: Stacks) -> str:
    """Rights, the run, alarms, the bucket; of connectors what their files lack."""
    subscribed = boto3.client("sns").list_subscriptions_by_topic(
        TopicArn=stacks.outputs["Alarms"]
    )
    rule = boto3.client("events").describe_rule(Name=f"cdc-lakehouse-{stacks.lake}")
    content = {
        **stacks.resolved,
        "AWS::KafkaConnect::Connector": {
            name: changed(name, one) for name, one in connectors(stacks)
        },
        "told": [one["Endpoint"] for one in subscribed["Subscriptions"]],
        "timer": [rule["ScheduleExpression"], rule["State"]],
    }
    text = yaml.safe_dump(json.loads(json.dumps(content)), width=1000)
    named = text.replace(stacks.lake, "lake")
    return re.sub(r"((JobRole|AnalystPolicy)-|key/)[\w-]+", r"\1ID", named)


def test_what_the_stacks_are(
    stacks: Stacks, direct: Stacks, snapshot: SnapshotAssertion
) -> None:
    """And what is different of a lake that is ingested from Kafka, and what they leave."""
    retained = [
        name
        for stack in STACKS
        for name, resource in template(stack)["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    ]
    assert retained == ["Bucket"]
    found, other = summary(stacks), summary(direct)
    assert found == snapshot
    lines = difflib.unified_diff(found.split("\n"), other.split("\n"), n=0, lineterm="")
    assert "\n".join(line for line in lines if line[0] != "@") == snapshot


def steps(stacks: Stacks) -> dict[str, str]:
    """The command of each step of a run, in their order."""
    (machine,) = stacks.resolved["AWS::StepFunctions::StateMachine"].values()
    result = machine["Definition"]["States"]["ListSteps"]["Result"]
    return {step["step"]: step["command"] for step in result}


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
    """The package's place, the largest message, offsets, schemas; Kafka admits by IAM, and
    no broker is so small that it admits one connection a second.
    """
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
    brokers = template("streaming")["Parameters"]["BrokerType"]["AllowedPattern"]
    types = ("kafka.t3.small", "kafka.m7g.large", "kafka.m5.large")
    assert [bool(re.fullmatch(brokers, each)) for each in types] == [False, True, True]
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


def actions(content: object) -> set[str]:
    """What policies allow."""
    return {*re.findall(r'"(\w+:[A-Z]\w+)"', json.dumps(content))}


def test_job_may_do_what_serving_glue_needs(stacks: Stacks) -> None:
    needed = actions(documented_policy("docs/serving.md"))
    assert "glue:CreateTable" in needed
    assert needed <= actions(stacks.resolved["AWS::IAM::Role"]["JobRole"])


# The jobs' entry point


def evaluated(text: str, **data: object) -> Any:
    """A function of the state machine's language, whose grammar Python has, too."""
    functions = SimpleNamespace(Array=lambda *values: [*values], Format=str.format)
    names = {"States": functions, "data": SimpleNamespace(**data)}
    return eval(text.replace("$", "data"), names)


def test_outcome_of_a_job(
    stacks: Stacks,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its exit code is where the state machine looks for it, its counts are metrics, its
    manifest is for later jobs. Without a bucket it keeps its exit code.
    """
    monkeypatch.setattr(sys, "argv", ["entry.py"])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    run = stacks.resolved["AWS::StepFunctions::StateMachine"]["Run"]["Definition"]
    states = run["States"]["RunSteps"]["ItemProcessor"]["States"]
    driver = states["RunJob"]["Parameters"]["JobDriver"]["SparkSubmit"]
    reads = states["ReadOutcome"]["Parameters"]
    data = {"run": "run", "step": "ingest", "command": "given one 'two words'"}

    def start(code: str, attempt: int = 1, bucket: str = BUCKET) -> int:
        """As the state machine does, in a project whose only module does what is given."""
        text = f"import sys\nassert sys.argv[1:] == ['one', 'two words']\n{code}\n"
        (tmp_path / "given.py").write_text(text)
        text = driver["EntryPointArguments.$"].replace(BUCKET, bucket)
        module, *words = evaluated(text, attempt=attempt, **data)
        assert module == entry.__name__
        return entry.main(words)

    def outcome(attempt: int) -> Properties:
        key = evaluated(reads["Key.$"], attempt=attempt, **data)
        body = boto3.client("s3").get_object(Bucket=reads["Bucket"], Key=key)["Body"]
        found: Properties = json.loads(body.read())
        return found

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
        assert start(ending, attempt) == outcome(attempt)["exit_code"] == code

    manifest = tmp_path / "target/manifest.json"
    manifest.parent.mkdir()
    manifest.write_text("of the build")
    line = "read 1023 records, wrote 1020 events, rejected 2, skipped 1"
    assert start(f"print({line!r})") == 0
    assert line in capsys.readouterr().out
    found = outcome(1)["metrics"]
    counts = {"RecordsRead": 1023, "RecordsWritten": 1020, "RecordsRejected": 2}
    assert found == {"Succeeded": 1, **counts, "Seconds": found["Seconds"]}
    metrics = boto3.client("cloudwatch").list_metrics(Namespace=entry.NAMESPACE)["Metrics"]
    assert {one["MetricName"] for one in metrics if "ingest" in str(one)} == found.keys()
    manifest.unlink()
    assert start(f"assert open({str(manifest)!r}).read() == 'of the build'") == 0

    assert start("sys.exit(2)", bucket="not-there") == 2
    assert "entry: An error occurred (NoSuchBucket)" in capsys.readouterr().err
