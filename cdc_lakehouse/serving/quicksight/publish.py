"""Create or update the resources: the calls of QuickSight's API, in their order.

Nothing is removed: what others were granted stays, and so does a data set whose file is
gone.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
)

from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.serving.aws import user_error
from cdc_lakehouse.serving.quicksight.definitions import Definitions, Request

SECONDS_TO_WAIT = 180
SECONDS_BETWEEN_POLLS = 2

CREATED, UPDATED, UNCHANGED = "created", "updated", "unchanged"

# The status of something, and what QuickSight says is wrong with it.
Poll = Callable[[], tuple[str, list[str]]]

LOG_IN = "log in anew, or choose a profile (AWS_PROFILE)"
WHAT_TO_DO = {
    "AccessDeniedException": "the caller needs the policy in docs/quicksight.md, and the"
    " account a QuickSight subscription",
    "ConflictException": "something else is changing it: run the command again",
    "ExpiredTokenException": LOG_IN,
    "InvalidSignatureException": LOG_IN,
    "LimitExceededException": "the account's quota is used up (of SPICE, or of imports a"
    " day): raise it, or wait",
    "ThrottlingException": "run the command again in a minute",
    "UnrecognizedClientException": LOG_IN,
    "UnsupportedUserEditionException": "dashboards as code need QuickSight's Enterprise"
    " edition",
}


def publish(client: Any, wanted: Definitions) -> Iterator[str]:
    """Create or update everything.

    Args:
        client: boto3's client of QuickSight, in the region of the resources.
        wanted: what there should be.

    Yields:
        One line per resource, when it is done.

    Raises:
        UserError: AWS refused a call, or could not make a resource; the message says
            which, why, and what to do. What was done before stays; the command may be
            run again.
    """
    for kind, key, put, bodies in [
        ("data source", "DataSourceId", put_data_source, [wanted.data_source]),
        ("data set", "DataSetId", put_data_set, wanted.data_sets),
        ("dashboard", "DashboardId", put_dashboard, [wanted.dashboard]),
    ]:
        for body in bodies:
            what = f"{kind} {body[key]}"
            with explained(what):
                outcome = put(client, body)
            yield f"{what}: {outcome}"


def put_data_source(client: Any, body: Request) -> str:
    """Create the data source, or make it what ``body`` says; wait until it is usable."""
    identity = _identity(body)

    def poll() -> tuple[str, list[str]]:
        found = client.describe_data_source(**identity)["DataSource"]
        problem = found.get("ErrorInfo")
        said = [f"{problem['Type']}: {problem['Message']}"] if problem else []
        return found["Status"], said

    answer = _described(client, client.describe_data_source, identity)
    if answer is None:
        client.create_data_source(**body)
        _wait("its creation", poll)
        return CREATED
    known = answer["DataSource"]
    client.update_data_source_permissions(**identity, GrantPermissions=body["Permissions"])
    if _is_ready(known["Status"]) and _holds(known, _content(body)):
        return UNCHANGED
    client.update_data_source(**_without(body, "Permissions", "Type"))
    _wait("its update", poll)
    return UPDATED


def put_data_set(client: Any, body: Request) -> str:
    """Create the data set, or make it what ``body`` says; with SPICE, import its data."""
    identity = _identity(body)
    answer = _described(client, client.describe_data_set, identity)
    if answer is None:
        outcome, changed = CREATED, client.create_data_set(**body)
    else:
        client.update_data_set_permissions(**identity, GrantPermissions=body["Permissions"])
        if _holds(answer["DataSet"], _content(body)):
            outcome, changed = UNCHANGED, {}
        else:
            outcome = UPDATED
            changed = client.update_data_set(**_without(body, "Permissions"))
    if body["ImportMode"] != "SPICE":
        return outcome
    # What creates or changes a data set of SPICE starts an import by itself, and says so.
    ingestion = changed.get("IngestionId")
    if ingestion is None:
        ingestion = str(uuid.uuid4())
        client.create_ingestion(
            **identity, IngestionId=ingestion, IngestionType="FULL_REFRESH"
        )
    return f"{outcome}, import {ingestion} started"


def put_dashboard(client: Any, body: Request) -> str:
    """Create the dashboard, or publish a version of it that is what ``body`` says."""
    identity = _identity(body)
    answer = _described(client, client.describe_dashboard, identity)
    if answer is None:
        # The first version is published by its creation.
        _wait_for_version(client, identity, client.create_dashboard(**body))
        return CREATED
    client.update_dashboard_permissions(**identity, GrantPermissions=body["Permissions"])
    published = answer["Dashboard"]["Version"]
    if _is_ready(published["Status"]) and (
        published.get("Description") == body["VersionDescription"]
    ):
        return UNCHANGED
    begun = client.update_dashboard(**_without(body, "Permissions"))
    version = _wait_for_version(client, identity, begun)
    client.update_dashboard_published_version(**identity, VersionNumber=version)
    return f"{UPDATED}, version {version} published"


def _described(
    client: Any, describe: Callable[..., dict[str, Any]], identity: Request
) -> dict[str, Any] | None:
    try:
        return describe(**identity)
    except client.exceptions.ResourceNotFoundException:
        return None


def _wait_for_version(client: Any, identity: Request, answer: dict[str, Any]) -> int:
    """Wait for the version that a request began; its number is the end of its ARN."""
    number = int(answer["VersionArn"].rpartition("/")[2])

    def poll() -> tuple[str, list[str]]:
        found = client.describe_dashboard(**identity, VersionNumber=number)
        version = found["Dashboard"]["Version"]
        return version["Status"], [
            " ".join(
                [
                    f"{error['Type']}: {error['Message']}",
                    *(entity["Path"] for entity in error.get("ViolatedEntities", [])),
                ]
            )
            for error in version.get("Errors", [])
        ]

    _wait(f"version {number}", poll)
    return number


def _wait(what: str, poll: Poll) -> None:
    """Poll until it is ready, with a dot for each poll.

    Raises:
        UserError: it failed, or takes too long.
    """
    deadline = time.monotonic() + SECONDS_TO_WAIT
    status, errors = poll()
    if status.endswith("_IN_PROGRESS"):
        print(f"waiting for {what} ", end="", file=sys.stderr, flush=True)
        while status.endswith("_IN_PROGRESS") and time.monotonic() < deadline:
            time.sleep(SECONDS_BETWEEN_POLLS)
            status, errors = poll()
            print(".", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    if status.endswith("_IN_PROGRESS"):
        raise TransientError(
            f"{what} is not done after {SECONDS_TO_WAIT} s: run the command again later"
        )
    if not _is_ready(status):
        raise UserError(
            f"{what} ended as {status}: {'; '.join(errors) or 'no reason given'}"
        )


def _is_ready(status: str) -> bool:
    return status.endswith("_SUCCESSFUL")


def _identity(body: Request) -> Request:
    return {key: value for key, value in body.items() if key.endswith("Id")}


def _content(body: Request) -> Request:
    return _without(body, "AwsAccountId", "Permissions")


def _without(body: Request, *keys: str) -> Request:
    return {key: value for key, value in body.items() if key not in keys}


def _holds(known: Any, wanted: Any) -> bool:
    """Whether a description says all that is wanted.

    AWS adds its defaults to it, so what is taken out of a file is seen in lists only.
    """
    if isinstance(wanted, dict):
        return isinstance(known, dict) and all(
            key in known and _holds(known[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(known, list)
            and len(known) == len(wanted)
            and all(map(_holds, known, wanted))
        )
    return bool(known == wanted)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn what AWS and boto3 raise into an error that says what to do.

    Raises:
        UserError: in their place; ``what`` was being made.
    """
    try:
        yield
    except UserError as error:
        raise type(error)(f"{what}: {error}") from error
    except ClientError as error:
        said = error.response["Error"]
        message = said.get("Message", "")
        hint = WHAT_TO_DO.get(said["Code"], "")
        if "identity region" in message:
            hint = "run the command with the --region that the message names"
        elif "principal" in message.lower() and said["Code"].startswith("InvalidParam"):
            hint = (
                "`aws quicksight list-users`, in the region where the account keeps its"
                " users, shows which ARNs there are"
            )
        refused = f"{what}: AWS refuses {error.operation_name} ({said['Code']}): {message}"
        message = f"{refused} - {hint}" if hint else refused
        raise user_error(error, message) from error
    except NoCredentialsError as error:
        raise UserError(f"{what}: no AWS credentials found: {LOG_IN}") from error
    except EndpointConnectionError as error:
        hint = "is there QuickSight in this --region, and is it reachable?"
        raise user_error(error, f"{what}: {error} - {hint}") from error
    except BotoCoreError as error:
        raise user_error(error, f"{what}: {error}") from error
