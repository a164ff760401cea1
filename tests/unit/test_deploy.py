"""The stacks of ``deploy/aws``, on moto as far as moto knows their resources.

cfn-lint checks the templates in ``make lint``, so nothing here does. What stands in for the
types that moto's CloudFormation lacks: ``tests/support/cloudformation.py``.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError
from moto.core.config import default_user_config
from moto.sns.models import sns_backends
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_aws_sdk as aws_sdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_unsupported as unsupported,
)
from moto.stepfunctions.parser.asl.eval.callback.callback import (
    CallbackOutcomeFailure,
    CallbackOutcomeFailureError,
)

from deploy.package import ARCHIVE
from serving import glue
from serving.manifest import LAYERS
from tests.support.aws import Aws
from tests.support.cloudformation import Properties, teach
from tests.support.old_lakes import unpack
from tests.support.project import PROJECT

TEMPLATES = PROJECT / "deploy/aws"
# In the order in which they are created.
STACKS = ("storage", "streaming", "connectors", "jobs", "schedule")
ACCOUNT = "123456789012"
CLUSTER = f"arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/events/0a1b-1"
BUCKET = f"cdc-lakehouse-lake-{ACCOUNT}-us-east-1"
PARAMETERS: dict[str, dict[str, str]] = {
    "storage": {},
    "streaming": {"VpcId": "vpc-1", "SubnetIds": "subnet-1,subnet-2,subnet-3"},
    "connectors": {
        "ClusterArn": CLUSTER,
        "BootstrapServers": "b-1.example:9098",
        "SubnetIds": "subnet-1,subnet-2,subnet-3",
        "SecurityGroupIds": "sg-1",
    },
    "jobs": {},
    "schedule": {"ClusterName": "events", "SourceInstance": "shop"},
}


class Stacks:
    """The stacks of one lake.

    Args:
        lake: its name.
        parameters: of each stack, in place of those above.

    Attributes:
        made: type and properties of each resource that moto's CloudFormation lacks.
        policy: the bucket's.
    """

    def __init__(self, lake: str, **parameters: dict[str, str]) -> None:
        self.lake = lake
        self.parameters = PARAMETERS | parameters
        self.client = boto3.client("cloudformation")
        self.outputs: dict[str, str] = {}
        self.made: list[tuple[str, Properties]] = []
        self.policy: Properties = {}

    def create(self, made: list[tuple[str, Properties]]) -> None:
        before = len(made)
        vpc = boto3.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        for stack in STACKS:
            asked = {**self.parameters[stack], "Lake": self.lake}
            if "VpcId" in asked:
                asked["VpcId"] = vpc
            self.client.create_stack(
                StackName=self.name(stack),
                TemplateBody=(TEMPLATES / f"{stack}.yml").read_text(encoding="utf-8"),
                Capabilities=["CAPABILITY_IAM"],
                Parameters=[
                    {"ParameterKey": key, "ParameterValue": value}
                    for key, value in asked.items()
                ],
            )
            found = self.client.describe_stacks(StackName=self.name(stack))["Stacks"][0]
            assert found["StackStatus"] == "CREATE_COMPLETE"
            self.outputs |= {
                output["OutputKey"]: output["OutputValue"]
                for output in found.get("Outputs", ())
            }
        self.made = made[before:]

    def delete(self) -> None:
        for stack in reversed(STACKS):
            self.client.delete_stack(StackName=self.name(stack))

    def name(self, stack: str) -> str:
        return f"{self.lake}-{stack}"

    def resources(self) -> set[str]:
        """The resources that were made, by stack and logical name."""
        return {
            f"{stack}.{resource['LogicalResourceId']}"
            for stack in STACKS
            for resource in self.client.describe_stack_resources(
                StackName=self.name(stack)
            )["StackResources"]
            if "LogicalResourceId" in resource  # moto lists lists that parameters are, too
        }

    def properties(self, kind: str) -> list[Properties]:
        """The properties of the resources of a type, with their references resolved."""
        return [properties for name, properties in self.made if name == kind]

    def connectors(self) -> dict[str, dict[str, str]]:
        """The configuration of each connector, by its name without the lake."""
        return {
            one["ConnectorName"].removeprefix(f"cdc-lakehouse-{self.lake}-"): one[
                "ConnectorConfiguration"
            ]
            for one in self.properties("AWS::KafkaConnect::Connector")
        }

    def definition(self) -> Properties:
        """The state machine, as Step Functions has it."""
        text = boto3.client("stepfunctions").describe_state_machine(
            stateMachineArn=self.outputs["StateMachine"]
        )["definition"]
        found: Properties = json.loads(text)
        return found


@pytest.fixture(scope="module")
def made(aws: Aws) -> Iterator[list[tuple[str, Properties]]]:
    with pytest.MonkeyPatch.context() as patch:
        # Where moto's Step Functions send their requests.
        patch.setenv("MOTO_PORT", aws.endpoint.rpartition(":")[2])
        patch.setitem(default_user_config["stepfunctions"], "execute_state_machine", True)
        yield teach(patch)


@pytest.fixture(scope="module")
def stacks(made: list[tuple[str, Properties]]) -> Stacks:
    found = Stacks("lake")
    found.create(made)
    s3 = boto3.client("s3")
    found.policy = json.loads(s3.get_bucket_policy(Bucket=BUCKET)["Policy"])
    # moto obeys the policy, and its server has no TLS.
    with pytest.raises(ClientError, match="403"):
        s3.put_object(Bucket=BUCKET, Key="runs/x", Body=b"")
    s3.delete_bucket_policy(Bucket=BUCKET)
    return found


def template(stack: str) -> str:
    return (TEMPLATES / f"{stack}.yml").read_text(encoding="utf-8")


def logical_names(stack: str, section: str) -> list[str]:
    """The names in a section of a template; its functions' tags are no plain YAML."""
    text = template(stack).partition(f"\n{section}:\n")[2]
    text = re.split(r"^\w", text, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^  (\w+):$", text, re.MULTILINE)


# Creation and deletion


def test_every_resource_is_made(stacks: Stacks) -> None:
    conditional = {"jobs.KafkaPolicy"}
    assert (
        stacks.resources()
        == {
            f"{stack}.{name}"
            for stack in STACKS
            for name in logical_names(stack, "Resources")
        }
        - conditional
    )


def contents() -> dict[str, list[str]]:
    """The names of what the account has, by service."""

    def names(service: str, operation: str, field: str, key: str) -> list[str]:
        found = getattr(boto3.client(service), operation)()[field]
        return sorted(one[key] for one in found)

    return {
        "alarms": names("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
        "applications": [
            one["name"]
            for one in boto3.client("emr-serverless").list_applications()["applications"]
            if one["state"] != "TERMINATED"
        ],
        "buckets": names("s3", "list_buckets", "Buckets", "Name"),
        "clusters": names("kafka", "list_clusters", "ClusterInfoList", "ClusterName"),
        "databases": names("glue", "get_databases", "DatabaseList", "Name"),
        "groups": names("ec2", "describe_security_groups", "SecurityGroups", "GroupName"),
        "logs": names("logs", "describe_log_groups", "logGroups", "logGroupName"),
        "machines": names("stepfunctions", "list_state_machines", "stateMachines", "name"),
        "policies": [
            one["PolicyName"]
            for one in boto3.client("iam").list_policies(Scope="Local")["Policies"]
        ],
        "roles": names("iam", "list_roles", "Roles", "RoleName"),
        "rules": names("events", "list_rules", "Rules", "Name"),
        "topics": names("sns", "list_topics", "Topics", "TopicArn"),
        "workgroups": names("athena", "list_work_groups", "WorkGroups", "Name"),
    }


def test_deletion_leaves_the_bucket_and_nothing_else(
    stacks: Stacks, made: list[tuple[str, Properties]]
) -> None:
    before = contents()
    other = Stacks("other")
    other.create(made)
    during = contents()
    assert all(len(during[kind]) > len(before[kind]) for kind in before), during
    other.delete()
    after = contents()
    bucket = f"cdc-lakehouse-other-{ACCOUNT}-us-east-1"
    # A VPC comes with a security group of its own; the test made it.
    assert after["groups"] == sorted([*before["groups"], "default"])
    assert after["buckets"] == sorted([*before["buckets"], bucket])
    for kind in before.keys() - {"groups", "buckets"}:
        assert after[kind] == before[kind], kind


# Storage


def test_bucket_keeps_the_lake_and_forgets_the_rest(stacks: Stacks) -> None:
    s3 = boto3.client("s3")
    assert stacks.outputs["Bucket"] == BUCKET
    rules = s3.get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"]
    assert all(rule["Status"] == "Enabled" for rule in rules)
    expiring = {
        rule["Filter"]["Prefix"]: rule["Expiration"]["Days"]
        for rule in rules
        if "Days" in rule.get("Expiration", {})
    }
    assert expiring == {"landing/": 30, "athena/": 7, "runs/": 90, ".temp-upload/": 7}
    everywhere = next(rule for rule in rules if rule["Filter"]["Prefix"] == "")
    assert everywhere["NoncurrentVersionExpiration"]["NoncurrentDays"] == 7
    assert everywhere["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"] == 7
    assert everywhere["Expiration"] == {"ExpiredObjectDeleteMarker": True}
    assert s3.get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"


def test_bucket_is_private(stacks: Stacks) -> None:
    s3 = boto3.client("s3")
    blocked = s3.get_public_access_block(Bucket=BUCKET)["PublicAccessBlockConfiguration"]
    assert blocked == {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    }
    encryption = s3.get_bucket_encryption(Bucket=BUCKET)[
        "ServerSideEncryptionConfiguration"
    ]
    (rule,) = encryption["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    conditions = []
    for statement in stacks.policy["Statement"]:
        assert (statement["Effect"], statement["Principal"]) == ("Deny", "*")
        assert statement["Action"] == "s3:*"
        assert statement["Resource"] == [
            f"arn:aws:s3:::{BUCKET}",
            f"arn:aws:s3:::{BUCKET}/*",
        ]
        conditions.append(statement["Condition"])
    assert conditions == [
        {"Bool": {"aws:SecureTransport": "false"}},
        {"NumericLessThan": {"s3:TlsVersion": "1.2"}},
    ]


def test_workgroup(stacks: Stacks) -> None:
    found = boto3.client("athena").get_work_group(WorkGroup=stacks.outputs["WorkGroup"])
    settings = found["WorkGroup"]["Configuration"]
    assert settings["EnforceWorkGroupConfiguration"]
    assert settings["ResultConfiguration"] == {
        "OutputLocation": f"s3://{BUCKET}/athena/",
        "EncryptionConfiguration": {"EncryptionOption": "SSE_S3"},
    }
    assert settings["BytesScannedCutoffPerQuery"] == 100 * 1024**3


def manifest(folder: Path) -> str:
    """A manifest with a table of each layer."""
    table = {"description": "", "columns": {}}
    models = {
        f"model.x.{name}": {
            **table,
            "resource_type": "model",
            "config": {"materialized": "incremental"},
            "fqn": ["x", layer, name],
            "schema": layer,
            "name": name,
            "alias": name,
        }
        for layer, name in (("silver", "orders"), ("gold", "revenue_by_customer"))
    }
    source = {
        **table,
        "resource_type": "source",
        "source_name": "bronze",
        "schema": "bronze",
        "name": "cdc_events",
        "identifier": "cdc_events",
    }
    file = folder / "manifest.json"
    file.write_text(json.dumps({"nodes": models, "sources": {"source.x.bronze.y": source}}))
    return str(file)


@pytest.fixture(scope="module")
def uploaded(aws: Aws, stacks: Stacks, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake of version 1.2.0 below ``lake/`` of the bucket; its ``LAKE_ROOT``."""
    folder = tmp_path_factory.mktemp("uploaded")
    unpack(folder, "1.2.0")
    aws.upload(folder / "warehouse", BUCKET, "lake/warehouse")
    return f"s3://{BUCKET}/lake"


def test_databases_are_those_of_serving_glue(
    stacks: Stacks,
    uploaded: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = boto3.client("glue")
    expected = {f"lake_{layer}" for layer in LAYERS}
    assert {one["Name"] for one in client.get_databases()["DatabaseList"]} == expected
    monkeypatch.setenv("LAKE_ROOT", uploaded)
    assert glue.main(["--manifest", manifest(tmp_path), "--prefix", "lake"]) == 0
    assert "new database" not in capsys.readouterr().out
    for name in expected:
        tables = client.get_tables(DatabaseName=name)["TableList"]
        assert [table["StorageDescriptor"]["Location"] for table in tables] == [
            f"{uploaded}/warehouse/{name.removeprefix('lake_')}.db/{table['Name']}"
            for table in tables
        ]
        assert len(tables) == 1


# Streaming and connectors


def test_cluster_takes_what_the_sources_send(stacks: Stacks) -> None:
    (configuration,) = stacks.properties("AWS::MSK::Configuration")
    lines = configuration["ServerProperties"].split()
    server = dict(line.split("=") for line in lines)
    for source in ("source-outbox", "source-tables"):
        connector = stacks.connectors()[source]
        assert (
            server["message.max.bytes"] == connector["producer.override.max.request.size"]
        )
    assert server["auto.create.topics.enable"] == "false"
    (cluster,) = stacks.properties("AWS::MSK::Cluster")
    assert cluster["ClientAuthentication"]["Sasl"] == {"Iam": {"Enabled": True}}
    assert cluster["ClientAuthentication"]["Unauthenticated"] == {"Enabled": False}
    assert cluster["EncryptionInfo"]["EncryptionInTransit"]["ClientBroker"] == "TLS"
    assert cluster["NumberOfBrokerNodes"] == 3


def test_brokers_admit_clients_by_iam_only(stacks: Stacks) -> None:
    groups = {
        group["GroupId"]: group
        for group in boto3.client("ec2").describe_security_groups()["SecurityGroups"]
    }
    (cluster,) = stacks.properties("AWS::MSK::Cluster")
    (broker,) = cluster["BrokerNodeGroupInfo"]["SecurityGroups"]
    (ingress,) = groups[broker]["IpPermissions"]
    assert (ingress["FromPort"], ingress["ToPort"]) == (9098, 9098)
    assert ingress["IpRanges"] == []
    (client,) = ingress["UserIdGroupPairs"]
    assert client["GroupId"] == stacks.outputs["ClientSecurityGroup"]


ON_AWS = {
    "config.action.reload": "none",
    "database.sslmode": "require",
    "tasks.max": "1",
    **{
        f"database.{setting}": f"${{secretsmanager:cdc-lakehouse/source:{key}}}"
        for setting, key in (
            ("dbname", "database"),
            ("hostname", "host"),
            ("password", "password"),
            ("port", "port"),
            ("user", "user"),
        )
    },
}


@pytest.mark.parametrize("name", ["source-outbox", "source-tables"])
def test_sources_are_those_of_connectors(name: str, stacks: Stacks) -> None:
    file = PROJECT / "connectors" / f"{name}.json"
    assert stacks.connectors()[name] == json.loads(file.read_text()) | ON_AWS


def test_sink_is_that_of_connectors(stacks: Stacks) -> None:
    file = PROJECT / "connectors/sink-s3-lenses.json"
    expected = json.loads(file.read_text())
    place = "lakehouse-landing:topics"
    assert place in expected["connect.s3.kcql"]
    assert stacks.connectors()["sink-s3"] == expected | {
        "connect.s3.aws.region": "us-east-1",
        "connect.s3.kcql": expected["connect.s3.kcql"].replace(
            place, f"{BUCKET}:landing/topics"
        ),
        "tasks.max": "1",
    }


def test_workers_read_secrets_and_keep_offsets(stacks: Stacks) -> None:
    topics = set()
    for one in stacks.properties("AWS::KafkaConnect::WorkerConfiguration"):
        text = base64.b64decode(one["PropertiesFileContent"]).decode()
        worker = dict(line.split("=", 1) for line in text.split())
        provider = worker["config.providers"]
        assert f"${{{provider}:" in ON_AWS["database.password"]
        assert f"config.providers.{provider}.class" in worker
        assert worker[f"config.providers.{provider}.param.region"] == "us-east-1"
        topics.add(worker["offset.storage.topic"])
    # One for each source, and covered by the roles' rights.
    assert len(topics) == 2
    assert all(topic.startswith("__amazon_msk_connect_") for topic in topics)


def test_no_template_has_a_secret() -> None:
    for stack in STACKS:
        text = template(stack)
        assert "NoEcho" not in text and "{{resolve:" not in text
        for line in re.findall(r"^.*password.*$", text, re.MULTILINE | re.IGNORECASE):
            assert "secretsmanager" in line or "Description: Name of the secret" in line, (
                line
            )


# Jobs


def test_application(stacks: Stacks) -> None:
    found = boto3.client("emr-serverless").get_application(
        applicationId=stacks.outputs["ApplicationId"]
    )["application"]
    assert (found["type"], found["releaseLabel"]) == ("Spark", "emr-7.12.0")
    assert found["autoStopConfiguration"] == {"enabled": True, "idleTimeoutMinutes": 5}
    assert found["maximumCapacity"] == {"cpu": "32 vCPU", "memory": "320 GB"}
    (asked,) = stacks.properties("AWS::EMRServerless::Application")
    assert "NetworkConfiguration" not in asked
    (defaults,) = asked["RuntimeConfiguration"]
    settings = defaults["Properties"]
    assert settings["spark.submit.pyFiles"] == f"s3://{BUCKET}/package/{ARCHIVE}"
    assert settings["spark.jars"] == f"s3://{BUCKET}/package/jars/*.jar"
    driver = "spark.emr-serverless.driverEnv."
    assert settings[f"{driver}LAKE_ROOT"] == f"s3://{BUCKET}/lake"
    assert settings[f"{driver}LAKE_TARGET"] == "emr"
    pythons = {value for name, value in settings.items() if "PYSPARK" in name}
    assert pythons == {"/usr/bin/python3.11"}


def test_lake_that_is_ingested_from_kafka(made: list[tuple[str, Properties]]) -> None:
    network = {"SubnetIds": "subnet-1,subnet-2", "SecurityGroupIds": "sg-1"}
    stacks = Stacks(
        "direct",
        jobs={"ClusterArn": CLUSTER, **network},
        schedule={"BootstrapServers": "b-1.example:9098", "AlarmEmail": "a@example.org"},
    )
    stacks.create(made)
    (application,) = stacks.properties("AWS::EMRServerless::Application")
    assert application["NetworkConfiguration"] == {
        "SubnetIds": ["subnet-1", "subnet-2"],
        "SecurityGroupIds": ["sg-1"],
    }
    assert "jobs.KafkaPolicy" in stacks.resources()
    command = steps(stacks)[0]["command"]
    assert command.startswith(
        "ingest kafka --bootstrap-servers b-1.example:9098 --options "
    )
    words = command.split()
    assert (PROJECT / words[words.index("--options") + 1]).is_file()
    assert set(words[words.index("--topic") + 1 :]) == set(topics_of_the_project())
    subscriptions = boto3.client("sns").list_subscriptions_by_topic(
        TopicArn=stacks.outputs["Alarms"]
    )["Subscriptions"]
    assert [(one["Protocol"], one["Endpoint"]) for one in subscriptions] == [
        ("email", "a@example.org")
    ]
    # Without connectors to watch, there are no alarms on them.
    names = {one["AlarmName"] for one in stacks.properties("AWS::CloudWatch::Alarm")}
    assert names == {
        f"cdc-lakehouse-direct-{name}" for name in ("run-failed", "build-late", "rejected")
    }
    stacks.delete()


# Rights

# AWS permits nothing narrower: metrics have no ARN (the namespace is a condition), and log
# groups are described all at once.
WIDE = {
    ("cloudwatch:PutMetricData", "*"),
    ("logs:DescribeLogGroups", f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:*"),
}


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def document(policy: Properties | str) -> Properties:
    """A policy; of some moto gives the text of a Python dictionary, which YAML can read."""
    found: Properties = yaml.safe_load(policy) if isinstance(policy, str) else policy
    return found


def statements() -> Iterator[tuple[str, Properties]]:
    """The statements of the lake's roles and policies, with the name of their owner."""
    iam = boto3.client("iam")
    for role in iam.list_roles()["Roles"]:
        name = role["RoleName"]
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
            found = iam.get_role_policy(RoleName=name, PolicyName=policy)
            for statement in document(found["PolicyDocument"])["Statement"]:
                yield name, statement
    for policy in iam.list_policies(Scope="Local")["Policies"]:
        version = iam.get_policy_version(
            PolicyArn=policy["Arn"], VersionId=policy["DefaultVersionId"]
        )
        for statement in document(version["PolicyVersion"]["Document"])["Statement"]:
            yield policy["PolicyName"], statement


def test_no_right_is_wider_than_it_must_be(stacks: Stacks) -> None:
    wide = set()
    for name, statement in statements():
        assert statement["Effect"] == "Allow"
        for action in listed(statement["Action"]):
            assert "*" not in action, name
            for resource in listed(statement["Resource"]):
                # Service, region, account; then what may only end with a pattern.
                parts = resource.split(":", 5)
                if len(parts) < 6 or re.fullmatch(r"[\w-]*[:/]?\*", parts[5]):
                    wide.add((action, resource))
                else:
                    assert "*" not in "".join(parts[:5]), name
                    assert parts[5] != f"{BUCKET}/*", name
    assert wide == WIDE
    metrics = [s for _, s in statements() if s["Action"] == "cloudwatch:PutMetricData"]
    for statement in metrics:
        assert statement["Condition"] == {
            "StringEquals": {"cloudwatch:namespace": "cdc-lakehouse"}
        }


def test_only_its_service_takes_a_role(stacks: Stacks) -> None:
    services = []
    for role in boto3.client("iam").list_roles()["Roles"]:
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": ACCOUNT}
        services.append(statement["Principal"]["Service"])
    assert sorted(services) == [
        "emr-serverless.amazonaws.com",
        "events.amazonaws.com",
        "kafkaconnect.amazonaws.com",
        "kafkaconnect.amazonaws.com",
        "states.amazonaws.com",
    ]


def rights(role: str) -> dict[str, set[str]]:
    """The resources of each action of the roles and policies with this in their name."""
    found: dict[str, set[str]] = {}
    for name, statement in statements():
        if role in name:
            for action in listed(statement["Action"]):
                found.setdefault(action, set()).update(listed(statement["Resource"]))
    return found


def test_job_may_do_what_serving_glue_needs(stacks: Stacks) -> None:
    text = (PROJECT / "docs/serving.md").read_text(encoding="utf-8")
    policy = json.loads(text.partition("```json\n")[2].partition("```")[0])
    has = rights("JobRole")
    for statement in policy["Statement"]:
        for action in listed(statement["Action"]):
            assert action in has
    arn = f"arn:aws:glue:us-east-1:{ACCOUNT}"
    for resource in ("catalog", "database/lake_*", "table/lake_*/*"):
        assert f"{arn}:{resource}" in has["glue:CreateTable"]


def test_only_the_job_writes_the_lake(stacks: Stacks) -> None:
    lake = f"arn:aws:s3:::{BUCKET}/lake/*"
    writers = {
        name.split("-")[1]
        for name, statement in statements()
        if lake in listed(statement["Resource"])
        and {"s3:PutObject", "s3:DeleteObject"} & set(listed(statement["Action"]))
    }
    assert writers == {"jobs"}
    assert rights("SinkRole")["s3:PutObject"] == {
        f"arn:aws:s3:::{BUCKET}/{folder}/*"
        for folder in ("landing", ".indexes", ".temp-upload")
    }
    assert rights("SourceRole")["secretsmanager:GetSecretValue"] == {
        f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:cdc-lakehouse/source-??????"
    }
    assert "secretsmanager:GetSecretValue" not in rights("SinkRole")
    assert rights("Query-the-lake-lake")["s3:PutObject"] == {
        f"arn:aws:s3:::{BUCKET}/athena/*"
    }


# The state machine


def steps(stacks: Stacks) -> list[dict[str, str]]:
    found: list[dict[str, str]] = stacks.definition()["States"]["ListSteps"]["Result"]
    return found


def topics_of_the_project() -> list[str]:
    with (PROJECT / "ingest/topics.toml").open("rb") as file:
        return list(tomllib.load(file)["topics"])


def is_command(module: str) -> bool:
    """Whether ``python -m MODULE`` finds it; nothing is imported."""
    package, *parts = module.split(".")
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    path = Path(*spec.submodule_search_locations).joinpath(*parts)
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def test_steps_in_their_order(stacks: Stacks) -> None:
    assert steps(stacks) == [
        {"step": "ingest", "command": f"ingest files s3://{BUCKET}/landing/topics/"},
        {
            "step": "build",
            "command": "dbt.cli.main build --profiles-dir profiles",
        },
        {"step": "glue", "command": "serving.glue --prefix lake"},
        {"step": "dashboard", "command": "serving.dashboard"},
    ]
    states = stacks.definition()["States"]
    assert states["RunSteps"]["MaxConcurrency"] == 1
    assert states["RunSteps"]["ItemsPath"] == "$.steps"
    for step in steps(stacks):
        assert is_command(step["command"].split()[0])


def test_timer_starts_it(stacks: Stacks) -> None:
    events = boto3.client("events")
    rule = events.describe_rule(Name="cdc-lakehouse-lake")
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(15 minutes)", "ENABLED")
    (target,) = events.list_targets_by_rule(Rule="cdc-lakehouse-lake")["Targets"]
    assert target["Arn"] == stacks.outputs["StateMachine"]
    assert rights("TimerRole") == {"states:StartExecution": {target["Arn"]}}


class Emr:
    """EMR Serverless under the state machine: jobs that end as they are told.

    Attributes:
        codes: the exit codes of a step's next attempts, then 0. None is a driver that was
            killed before it wrote one.
        jobs: the names of the jobs, in their order.
        arguments: of each job's entry point.
        is_free: jobs wait until it is set.
    """

    def __init__(self) -> None:
        self.codes: dict[str, list[int | None]] = {}
        self.jobs: list[str] = []
        self.arguments: list[list[str]] = []
        self.is_free = threading.Event()
        self.is_free.set()

    def run(self, asked: Properties) -> None:
        """Stand in for ``startJobRun.sync``; ends with the job."""
        driver = asked["JobDriver"]["SparkSubmit"]
        assert driver["EntryPoint"] == f"s3://{BUCKET}/package/spark_job.py"
        module, *arguments = driver["EntryPointArguments"]
        assert module == "deploy.aws.entry"
        self.jobs.append(asked["Name"])
        self.arguments.append(arguments)
        assert self.is_free.wait(30)
        options = dict(zip(arguments[:-1:2], arguments[1:-1:2], strict=True))
        step, attempt = options["--step"], options["--attempt"]
        codes = self.codes.get(step)
        code = codes.pop(0) if codes else 0
        if code is not None:
            key = (
                f"{options['--run'].removeprefix(f's3://{BUCKET}/')}/{step}-{attempt}.json"
            )
            body = json.dumps({"exit_code": code})
            boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
        if code != 0:
            failure = CallbackOutcomeFailure("", "EmrServerless.JobFailed", "see the log")
            raise CallbackOutcomeFailureError(failure)


class Sdk:
    """boto3's client as an AWS SDK integration of Step Functions has it: names LikeThis."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __getattr__(self, operation: str) -> Callable[..., Properties]:
        def call(**asked: Any) -> Properties:
            name = self.client.meta.method_to_api_mapping[operation]
            model = self.client.meta.service_model.operation_model(name)
            members = {
                member[:1].upper() + member[1:]: member
                for member in model.input_shape.members
            }
            answer = getattr(self.client, operation)(
                **{members[name]: value for name, value in asked.items()}
            )
            return {
                name[:1].upper() + name[1:]: (
                    value.read().decode() if hasattr(value, "read") else value
                )
                for name, value in answer.items()
            }

        return call


class Machine:
    """A copy of the state machine, with waits of no time."""

    def __init__(self, stacks: Stacks) -> None:
        self.client = boto3.client("stepfunctions")
        self.topic = stacks.outputs["Alarms"]
        text = json.dumps(stacks.definition())
        # moto knows no `.sync` here; the stand-in for EMR answers when the job has ended.
        for before, after in (('"wait": 60', '"wait": 0'), ("JobRun.sync", "JobRun")):
            assert text.count(before) == 1
            text = text.replace(before, after)
        self.arn = self.client.create_state_machine(
            name="copy", definition=text, roleArn=f"arn:aws:iam::{ACCOUNT}:role/run"
        )["stateMachineArn"]

    def start(self) -> str:
        found: str = self.client.start_execution(
            stateMachineArn=self.arn, name=f"run-{uuid4()}"
        )["executionArn"]
        return found

    def end(self, execution: str) -> dict[str, Any]:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found: dict[str, Any] = self.client.describe_execution(executionArn=execution)
            if found["status"] != "RUNNING":
                return found
            time.sleep(0.02)
        raise AssertionError(f"{execution} is still running")

    def run(self) -> dict[str, Any]:
        return self.end(self.start())

    def messages(self) -> list[tuple[str, str]]:
        """What it has published, as subject and text."""
        topic = sns_backends[ACCOUNT]["us-east-1"].topics[self.topic]
        return [(subject or "", text) for _, text, subject, *_ in topic.sent_notifications]


@pytest.fixture(scope="module")
def machine(stacks: Stacks) -> Machine:
    return Machine(stacks)


@pytest.fixture
def emr(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Emr:
    """What the machine starts its jobs on."""
    found = Emr()

    def evaluate(
        service: Any, env: Any, normalised_parameters: Properties, **_: Any
    ) -> None:
        found.run(normalised_parameters)
        env.stack.append({"State": "SUCCESS"})

    monkeypatch.setattr(
        unsupported.StateTaskServiceUnsupported, "_eval_service_task", evaluate
    )
    monkeypatch.setattr(
        aws_sdk, "boto_client_for", lambda *_, service, **__: Sdk(boto3.client(service))
    )
    return found


def test_run_takes_every_step(machine: Machine, emr: Emr) -> None:
    execution = machine.run()
    assert execution["status"] == "SUCCEEDED"
    assert emr.jobs == ["ingest-1", "build-1", "glue-1", "dashboard-1"]
    run = f"s3://{BUCKET}/runs/{execution['name']}"
    assert emr.arguments[0] == [
        *("--lake", "lake", "--run", run, "--step", "ingest", "--attempt", "1"),
        f"ingest files s3://{BUCKET}/landing/topics/",
    ]


def test_exit_code_75_is_tried_again(machine: Machine, emr: Emr) -> None:
    emr.codes = {"ingest": [75], "build": [75, 75]}
    said = len(machine.messages())
    assert machine.run()["status"] == "SUCCEEDED"
    assert emr.jobs == [
        *("ingest-1", "ingest-2", "build-1", "build-2", "build-3"),
        *("glue-1", "dashboard-1"),
    ]
    assert machine.messages()[said:] == []


def test_waits_double(stacks: Stacks) -> None:
    states = stacks.definition()["States"]["RunSteps"]
    assert states["ItemSelector"]["wait"] == 60
    states = states["ItemProcessor"]["States"]
    assert states["Wait"] == {
        "Type": "Wait",
        "SecondsPath": "$.wait",
        "Next": "NextAttempt",
    }
    assert states["NextAttempt"]["Parameters"]["wait.$"] == "States.MathAdd($.wait, $.wait)"


@pytest.mark.parametrize(
    ("codes", "jobs", "cause"),
    [
        ([1], ["build-1"], "step build failed in attempt 1 with exit code 1"),
        ([2], ["build-1"], "step build failed in attempt 1 with exit code 2"),
        ([143], ["build-1"], "step build failed in attempt 1 with exit code 143"),
        (
            [75, 75, 75, 0],
            ["build-1", "build-2", "build-3"],
            "step build failed in attempt 3 with exit code 75",
        ),
        (
            [75, 1],
            ["build-1", "build-2"],
            "step build failed in attempt 2 with exit code 1",
        ),
        # Drivers that were killed.
        (
            [None, None, None, 0],
            ["build-1", "build-2", "build-3"],
            "step build failed in attempt 3 with exit code 75",
        ),
    ],
)
def test_failure_ends_the_run_and_is_told(
    codes: list[int | None], jobs: list[str], cause: str, machine: Machine, emr: Emr
) -> None:
    emr.codes = {"build": codes}
    said = len(machine.messages())
    execution = machine.run()
    assert (execution["status"], execution["error"]) == ("FAILED", "RunFailed")
    cause += " (EmrServerless.JobFailed)"
    assert execution["cause"] == cause
    assert emr.jobs == ["ingest-1", *jobs]
    assert machine.messages()[said:] == [
        (
            "cdc-lakehouse lake: a run failed",
            f"{cause}; execution {execution['executionArn']}",
        )
    ]


def test_exit_code_3_is_told_and_the_run_goes_on(machine: Machine, emr: Emr) -> None:
    emr.codes = {"ingest": [3]}
    said = len(machine.messages())
    assert machine.run()["status"] == "SUCCEEDED"
    assert emr.jobs == ["ingest-1", "build-1", "glue-1", "dashboard-1"]
    ((subject, text),) = machine.messages()[said:]
    assert subject == "cdc-lakehouse lake: too many records rejected"
    assert text.startswith("Step ingest of arn:aws:states:")


def test_second_run_leaves_the_lake_to_the_first(machine: Machine, emr: Emr) -> None:
    emr.is_free.clear()
    first = machine.start()
    deadline = time.monotonic() + 30
    while not emr.jobs and time.monotonic() < deadline:
        time.sleep(0.02)
    assert machine.run()["status"] == "SUCCEEDED"
    assert emr.jobs == ["ingest-1"]
    emr.is_free.set()
    assert machine.end(first)["status"] == "SUCCEEDED"
    assert emr.jobs == ["ingest-1", "build-1", "glue-1", "dashboard-1"]


# Alarms


def alarms() -> dict[str, Properties]:
    """The lake's alarms, as CloudWatch has them."""
    found = boto3.client("cloudwatch").describe_alarms()["MetricAlarms"]
    prefix = "cdc-lakehouse-lake-"
    return {
        alarm["AlarmName"].removeprefix(prefix): alarm
        for alarm in found
        if alarm["AlarmName"].startswith(prefix)
    }


def test_every_alarm_is_told(stacks: Stacks) -> None:
    found = alarms()
    assert set(found) == {
        *("run-failed", "build-late", "rejected", "sink-lag", "slot-lag"),
        *("source-outbox-stopped", "source-tables-stopped", "sink-s3-stopped"),
    }
    for alarm in found.values():
        assert alarm["AlarmActions"] == [stacks.outputs["Alarms"]]


def test_missing_data_are_what_they_mean(stacks: Stacks) -> None:
    """A build or a connector that says nothing is an alarm, a quiet topic is none."""
    missing = {name: alarm["TreatMissingData"] for name, alarm in alarms().items()}
    assert missing == {
        "build-late": "breaching",
        "source-outbox-stopped": "breaching",
        "source-tables-stopped": "breaching",
        "sink-s3-stopped": "breaching",
        "run-failed": "notBreaching",
        "rejected": "notBreaching",
        "sink-lag": "missing",
        "slot-lag": "missing",
    }


def test_alarms_are_on_metrics_that_a_job_sends(stacks: Stacks, entry: ModuleType) -> None:
    sent = entry.metrics(0, 1.0, "read 3 records, wrote 1 events, rejected 2, skipped 0\n")
    watched = {
        alarm["MetricName"]: {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
        for alarm in alarms().values()
        if alarm.get("Namespace") == entry.NAMESPACE
    }
    assert watched == {
        "Succeeded": {"Lake": "lake", "Step": "build"},
        "RecordsRejected": {"Lake": "lake", "Step": "ingest"},
    }
    assert watched.keys() <= sent.keys()
    assert {step["step"] for step in steps(stacks)} >= {"build", "ingest"}


def test_lag_is_that_of_every_topic(stacks: Stacks) -> None:
    queries = alarms()["sink-lag"]["Metrics"]
    (lag,) = (query for query in queries if "Expression" in query)
    topics = []
    for query in queries:
        if "MetricStat" in query:
            assert query["Id"] in lag["Expression"]
            metric = query["MetricStat"]["Metric"]
            where = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
            # Connect calls a sink's group so, and the sink's role may use it.
            group = "connect-cdc-lakehouse-lake-sink-s3"
            assert where["Consumer Group"] == group
            groups = rights("SinkRole")["kafka-cluster:DescribeGroup"]
            assert any(resource.endswith(f"/{group}") for resource in groups)
            topics.append(where["Topic"])
    assert sorted(topics) == sorted(topics_of_the_project())


def test_stopped_connectors_are_named_as_they_are(stacks: Stacks) -> None:
    names = {
        one["ConnectorName"] for one in stacks.properties("AWS::KafkaConnect::Connector")
    }
    watched = {
        one["Value"]
        for alarm in alarms().values()
        if alarm.get("Namespace") == "AWS/KafkaConnect"
        for one in alarm["Dimensions"]
    }
    assert watched == names


# The jobs' entry point


@pytest.fixture(scope="module")
def entry() -> ModuleType:
    spec = spec_from_file_location("entry", TEMPLATES / "entry.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Start = Callable[..., int]


@pytest.fixture
def start(
    entry: ModuleType, stacks: Stacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Start:
    """Runs the entry point in a project whose only module does what a test writes."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setattr(sys, "argv", ["entry.py"])
    monkeypatch.setattr(sys, "path", [str(project), *sys.path])

    def run(code: str, *, step: str = "ingest", attempt: int = 1, name: str = "run") -> int:
        monkeypatch.chdir(project)
        (project / "given.py").write_text(f"import sys\n{code}\n")
        found: int = entry.main(
            [
                *("--lake", "test", "--run", f"s3://{BUCKET}/runs/{name}"),
                *("--step", step, "--attempt", str(attempt), "given one 'two words'"),
            ]
        )
        return found

    return run


def outcome(key: str) -> Properties:
    body = boto3.client("s3").get_object(Bucket=BUCKET, Key=f"runs/{key}.json")["Body"]
    found: Properties = json.loads(body.read())
    return found


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("", 0),
        ("sys.exit()", 0),
        ("sys.exit(75)", 75),
        ("sys.exit(3)", 3),
        ("sys.exit('no lake')", 1),
        ("raise ValueError", 1),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_exit_code_is_kept_for_the_state_machine(
    ending: str, code: int, start: Start, request: pytest.FixtureRequest
) -> None:
    assert start(f"assert sys.argv[1:] == ['one', 'two words']\n{ending}") == code
    assert outcome("run/ingest-1")["exit_code"] == code


def test_counts_of_the_ingest_are_metrics(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    # The line as the README shows it.
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^read \d+ records, .*$", text, re.MULTILINE)
    assert start(f"print({line!r})", attempt=2) == 0
    assert line in capsys.readouterr().out
    found = outcome("run/ingest-2")["metrics"]
    assert found.pop("Seconds") >= 0
    assert found == {
        "Succeeded": 1,
        "RecordsRead": 1023,
        "RecordsWritten": 1023,
        "RecordsRejected": 0,
    }
    metrics = boto3.client("cloudwatch").list_metrics(Namespace="cdc-lakehouse")["Metrics"]
    sent = {
        metric["MetricName"]: {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        for metric in metrics
    }
    for name in (*found, "Seconds"):
        assert sent[name] == {"Lake": "test", "Step": "ingest"}


def test_manifest_goes_from_the_build_to_glue(start: Start, tmp_path: Path) -> None:
    save = "import pathlib; file = pathlib.Path('target/manifest.json')"
    write = f"{save}; file.parent.mkdir(); file.write_text('of the build')"
    assert start(write, step="build", name="whole") == 0
    kept = tmp_path / "project/target/manifest.json"
    kept.unlink()
    kept.parent.rmdir()
    assert start(f"{save}; assert file.read_text() == 'of the build'", name="whole") == 0


def test_command_of_the_project(
    entry: ModuleType,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(PROJECT)
    run = ["--lake", "test", "--run", f"s3://{BUCKET}/runs/real", "--step", "glue"]
    assert entry.main([*run, "serving.glue --help"]) == 0
    assert "--prefix" in capsys.readouterr().out
    assert entry.main([*run, "serving.glue --prefix UPPER"]) == 2
    assert outcome("real/glue-1")["exit_code"] == 2


def test_job_without_a_bucket_keeps_its_exit_code(
    entry: ModuleType, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state machine then finds no outcome, and tries again."""
    assert start("sys.exit(2)") == 2
    run = ["--lake", "test", "--run", "s3://not-there/runs/x", "--step", "ingest"]
    assert entry.main([*run, "given one 'two words'"]) == 2
    assert "entry: An error occurred (NoSuchBucket)" in capsys.readouterr().err


# The documentation


def test_every_parameter_is_documented() -> None:
    text = (PROJECT / "docs/aws.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\.yml` \| `(\w+)` \| (.*?) \|", text, re.MULTILINE)
    documented = {(stack, name): default for stack, name, default in rows}
    found = {}
    for stack in STACKS:
        parameters = template(stack).partition("\nParameters:\n")[2]
        for name in logical_names(stack, "Parameters"):
            section = parameters.partition(f"  {name}:\n")[2]
            section = re.split(r"^  ?\w", section, maxsplit=1, flags=re.MULTILINE)[0]
            default = re.search(r"^    Default: (.*)$", section, re.MULTILINE)
            value = default[1].strip('"') if default else "required"
            if name != "Lake":  # of every stack, in the text above the table
                found[stack, name] = f"`{value}`" if default and value else value or "empty"
    assert documented == found
