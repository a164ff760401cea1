"""CloudFormation on moto's server, with the resource types that moto itself lacks.

moto keeps most of these resources when their own service's API makes them, but its
CloudFormation ignores them. Here boto3 makes and deletes each on the same server, so that
botocore checks names and types of the properties. moto has nothing of MSK Connect and of
MSK's configurations: botocore checks these requests, and they are not sent.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from moto.cloudformation import parsing

Properties = dict[str, Any]


class Resource:
    """A resource of a stack.

    Args:
        reference: what ``Ref`` gives.
        delete: deletes it; None where moto keeps nothing.
        attributes: what ``Fn::GetAtt`` gives.
    """

    def __init__(
        self,
        reference: str,
        delete: Callable[[], object] | None = None,
        **attributes: Any,
    ) -> None:
        self.reference = reference
        self.attributes = attributes
        self._delete = delete

    @property
    def physical_resource_id(self) -> str:
        return self.reference

    def is_created(self) -> bool:
        return True

    def get_cfn_attribute(self, attribute_name: str) -> Any:
        return self.attributes[attribute_name]

    def delete(self, account_id: str, region_name: str) -> None:
        if self._delete is not None:
            self._delete()


def lower(value: Any) -> Any:
    """Properties in the spelling of newer APIs: ``LikeThis`` becomes ``likeThis``."""
    if isinstance(value, dict):
        return {name[:1].lower() + name[1:]: lower(inner) for name, inner in value.items()}
    return [lower(inner) for inner in value] if isinstance(value, list) else value


def lifecycle_rules(rules: list[Properties]) -> list[Properties]:
    """CloudFormation's rules as S3's API has them."""
    found = []
    for rule in rules:
        api = {"ID": rule["Id"], "Status": rule["Status"]}
        api["Filter"] = {"Prefix": rule.get("Prefix", "")}
        if "ExpirationInDays" in rule:
            api["Expiration"] = {"Days": int(rule["ExpirationInDays"])}
        if "ExpiredObjectDeleteMarker" in rule:
            api["Expiration"] = {"ExpiredObjectDeleteMarker": True}
        for name in ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"):
            if name in rule:
                api[name] = {key: int(value) for key, value in rule[name].items()}
        found.append(api)
    return found


def make_bucket(properties: Properties) -> Resource:
    s3, name = boto3.client("s3"), properties["BucketName"]
    s3.create_bucket(Bucket=name)
    encryption = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    s3.put_bucket_encryption(
        Bucket=name,
        ServerSideEncryptionConfiguration={
            "Rules": [
                {
                    "ApplyServerSideEncryptionByDefault": rule[
                        "ServerSideEncryptionByDefault"
                    ]
                }
                for rule in encryption
            ]
        },
    )
    s3.put_public_access_block(
        Bucket=name,
        PublicAccessBlockConfiguration=properties["PublicAccessBlockConfiguration"],
    )
    s3.put_bucket_ownership_controls(
        Bucket=name, OwnershipControls=properties["OwnershipControls"]
    )
    s3.put_bucket_versioning(
        Bucket=name, VersioningConfiguration=properties["VersioningConfiguration"]
    )
    rules = lifecycle_rules(properties["LifecycleConfiguration"]["Rules"])
    s3.put_bucket_lifecycle_configuration(
        Bucket=name, LifecycleConfiguration={"Rules": rules}
    )
    return Resource(name, lambda: s3.delete_bucket(Bucket=name), Arn=f"arn:aws:s3:::{name}")


def make_bucket_policy(properties: Properties) -> Resource:
    s3, bucket = boto3.client("s3"), properties["Bucket"]
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(properties["PolicyDocument"]))
    return Resource(bucket, lambda: s3.delete_bucket_policy(Bucket=bucket))


def make_database(properties: Properties) -> Resource:
    glue, name = boto3.client("glue"), properties["DatabaseInput"]["Name"]
    glue.create_database(DatabaseInput=properties["DatabaseInput"])
    return Resource(name, lambda: glue.delete_database(Name=name))


def make_work_group(properties: Properties) -> Resource:
    athena, name = boto3.client("athena"), properties["Name"]
    limit = int(properties["WorkGroupConfiguration"]["BytesScannedCutoffPerQuery"])
    athena.create_work_group(
        Name=name,
        Description=properties["Description"],
        Configuration={
            **properties["WorkGroupConfiguration"],
            "BytesScannedCutoffPerQuery": limit,
        },
    )
    return Resource(name, lambda: athena.delete_work_group(WorkGroup=name))


def make_alarm(properties: Properties) -> Resource:
    cloudwatch, name = boto3.client("cloudwatch"), properties["AlarmName"]
    numbers = {
        key: int(properties[key])
        for key in ("Threshold", "EvaluationPeriods", "Period")
        if key in properties
    }
    cloudwatch.put_metric_alarm(**properties | numbers)
    return Resource(name, lambda: cloudwatch.delete_alarms(AlarmNames=[name]))


def make_state_machine(properties: Properties) -> Resource:
    states = boto3.client("stepfunctions")
    arn = states.create_state_machine(
        name=properties["StateMachineName"],
        roleArn=properties["RoleArn"],
        definition=json.dumps(properties["Definition"]),
    )["stateMachineArn"]
    return Resource(arn, lambda: states.delete_state_machine(stateMachineArn=arn))


def make_application(properties: Properties) -> Resource:
    emr, asked = boto3.client("emr-serverless"), lower(properties)
    # Spark's settings keep their names.
    asked["runtimeConfiguration"] = [
        {"classification": one["Classification"], "properties": one["Properties"]}
        for one in properties["RuntimeConfiguration"]
    ]
    made = emr.create_application(clientToken="0", **asked)["applicationId"]

    def delete() -> None:
        # moto starts each application, and deletes only those that are stopped.
        emr.stop_application(applicationId=made)
        emr.delete_application(applicationId=made)

    return Resource(made, delete)


def make_policy(properties: Properties) -> Resource:
    iam = boto3.client("iam")
    arn = iam.create_policy(
        PolicyName=properties["Description"].replace(" ", "-"),
        Description=properties["Description"],
        PolicyDocument=json.dumps(properties["PolicyDocument"]),
    )["Policy"]["Arn"]
    return Resource(arn, lambda: iam.delete_policy(PolicyArn=arn))


def make_cluster(properties: Properties) -> Resource:
    kafka, asked = boto3.client("kafka"), copy.deepcopy(properties)
    asked["ConfigurationInfo"]["Revision"] = int(asked["ConfigurationInfo"]["Revision"])
    group = asked["BrokerNodeGroupInfo"]
    size = group["StorageInfo"]["EBSStorageInfo"]["VolumeSize"]
    group["StorageInfo"] = {"EbsStorageInfo": {"VolumeSize": int(size)}}
    arn = kafka.create_cluster(**asked)["ClusterArn"]
    return Resource(arn, lambda: kafka.delete_cluster(ClusterArn=arn), Arn=arn)


def make_configuration(properties: Properties) -> Resource:
    _check(
        "kafka",
        "create_configuration",
        {
            "Name": properties["Name"],
            "KafkaVersions": properties["KafkaVersionsList"],
            "ServerProperties": properties["ServerProperties"].encode(),
        },
    )
    arn = f"arn:aws:kafka:us-east-1:123456789012:configuration/{properties['Name']}/0-1"
    # moto cuts the attribute LatestRevision.Revision off at the second point.
    return Resource(arn, Arn=arn, LatestRevision=1)


def make_plugin(properties: Properties) -> Resource:
    _check("kafkaconnect", "create_custom_plugin", lower(properties))
    arn = _connect_arn("custom-plugin", properties["Name"])
    return Resource(arn, CustomPluginArn=arn)


def make_worker_configuration(properties: Properties) -> Resource:
    _check("kafkaconnect", "create_worker_configuration", lower(properties))
    arn = _connect_arn("worker-configuration", properties["Name"])
    return Resource(arn, WorkerConfigurationArn=arn)


def make_connector(properties: Properties) -> Resource:
    asked = lower(properties)
    asked["connectorConfiguration"] = properties["ConnectorConfiguration"]
    _check("kafkaconnect", "create_connector", asked)
    return Resource(_connect_arn("connector", properties["ConnectorName"]))


def _connect_arn(kind: str, name: str) -> str:
    return f"arn:aws:kafkaconnect:us-east-1:123456789012:{kind}/{name}/0-1"


def _check(service: str, operation: str, asked: Properties) -> None:
    """Have botocore check a request that nobody answers."""
    client = boto3.client(service)
    with Stubber(client) as stubber:
        stubber.add_response(operation, {}, dict.fromkeys(asked, ANY))
        getattr(client, operation)(**asked)


TYPES: dict[str, Callable[[Properties], Resource]] = {
    "AWS::Athena::WorkGroup": make_work_group,
    "AWS::CloudWatch::Alarm": make_alarm,
    "AWS::EMRServerless::Application": make_application,
    "AWS::Glue::Database": make_database,
    "AWS::IAM::ManagedPolicy": make_policy,
    "AWS::KafkaConnect::Connector": make_connector,
    "AWS::KafkaConnect::CustomPlugin": make_plugin,
    "AWS::KafkaConnect::WorkerConfiguration": make_worker_configuration,
    "AWS::MSK::Cluster": make_cluster,
    "AWS::MSK::Configuration": make_configuration,
    "AWS::S3::Bucket": make_bucket,
    "AWS::S3::BucketPolicy": make_bucket_policy,
    "AWS::StepFunctions::StateMachine": make_state_machine,
}


def teach(patch: pytest.MonkeyPatch) -> list[tuple[str, Properties]]:
    """Have moto's CloudFormation know ``TYPES`` until the patch is undone.

    Returns:
        A list that gets the type and properties of each resource that is made.
    """
    made: list[tuple[str, Properties]] = []
    for name in TYPES:
        patch.setitem(parsing.get_model_map(), name, _Model(name, made))
    return made


class _Model:
    """What moto's CloudFormation calls to make a resource of a type."""

    def __init__(self, name: str, made: list[tuple[str, Properties]]) -> None:
        self.name = name
        self.made = made

    def create_from_cloudformation_json(
        self, resource_name: str, cloudformation_json: Any, *_: Any, **__: Any
    ) -> Resource:
        properties = cloudformation_json["Properties"]
        self.made.append((self.name, copy.deepcopy(properties)))
        return TYPES[self.name](properties)
