"""The templates of ``deploy/aws``, and their stacks on moto.

moto's CloudFormation creates the types that it supports and ignores the others, but it
resolves every reference in an output. So each stack gets one more output: the properties
that tests ask for.
"""

import json
from collections.abc import Mapping
from typing import Any

import boto3
from cfnlint.decode import decode  # type: ignore[import-untyped]  # it has no types

from tests.support.project import PROJECT

Properties = dict[str, Any]

# In the order in which they are created.
STACKS = ("storage", "streaming", "connectors", "jobs", "schedule")
# The resolved properties, by type; none is all of them.
RESOLVED: dict[str, tuple[str, ...]] = {
    "AWS::CloudWatch::Alarm": (),
    "AWS::IAM::ManagedPolicy": (),
    "AWS::IAM::Policy": (),
    "AWS::IAM::Role": (),
    "AWS::S3::Bucket": (),
    "AWS::S3::BucketPolicy": (),
    "AWS::KMS::Key": (),
    "AWS::KafkaConnect::Connector": ("ConnectorName", "ConnectorConfiguration"),
    "AWS::SNS::Topic": ("TopicName", "KmsMasterKeyId"),
    "AWS::StepFunctions::StateMachine": ("Definition",),
}


def template(stack: str) -> Properties:
    """A template, with CloudFormation's functions in their long form."""
    found, problems = decode(str(PROJECT / f"deploy/aws/{stack}.yml"))
    assert problems == []
    plain: Properties = json.loads(json.dumps(found))
    return plain


class Stacks:
    """The stacks of one lake.

    Args:
        lake: its name.
        parameters: of each stack, beside the lake's name.

    Attributes:
        outputs: of all stacks.
        resolved: the properties of ``RESOLVED``, by type and logical name.
    """

    def __init__(self, lake: str, parameters: Mapping[str, dict[str, str]]) -> None:
        self.lake = lake
        self.outputs: dict[str, str] = {}
        self.resolved: dict[str, dict[str, Properties]] = {kind: {} for kind in RESOLVED}
        client = boto3.client("cloudformation")
        for stack in STACKS:
            body, name = template(stack), f"{lake}-{stack}"
            outputs = body.setdefault("Outputs", {})
            outputs["Resolved"] = {"Value": {"Fn::ToJsonString": _asked(body["Resources"])}}
            if stack == "jobs":  # moto creates no application, and exports none
                outputs["ApplicationId"]["Value"] = "00abcdef"
            given = {"Lake": lake, **parameters[stack]}.items()
            client.create_stack(
                StackName=name,
                TemplateBody=json.dumps(body),
                Capabilities=["CAPABILITY_IAM"],
                Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in given],
            )
            (made,) = client.describe_stacks(StackName=name)["Stacks"]
            assert made["StackStatus"] == "CREATE_COMPLETE"
            found = {one["OutputKey"]: one["OutputValue"] for one in made["Outputs"]}
            for resource, properties in json.loads(found.pop("Resolved")).items():
                kind = body["Resources"][resource]["Type"]
                self.resolved[kind][resource] = properties
            self.outputs |= found


def _asked(resources: dict[str, Properties]) -> Properties:
    """The properties of ``RESOLVED``, of the resources that their conditions allow."""
    asked: Properties = {}
    for name, resource in resources.items():
        if resource["Type"] in RESOLVED:
            properties = resource["Properties"]
            keys = RESOLVED[resource["Type"]] or properties
            asked[name] = {key: properties[key] for key in keys}
            if "Condition" in resource:
                nothing = {"Ref": "AWS::NoValue"}
                asked[name] = {"Fn::If": [resource["Condition"], asked[name], nothing]}
    return asked
