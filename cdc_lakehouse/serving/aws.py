"""The errors of AWS as errors of ours: what may pass, and what may not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
)

from cdc_lakehouse.errors import TransientError, UserError

# Beside every answer with a status of 500 or more.
TRANSIENT_CODES = {
    "ConcurrentModificationException",
    "ConflictException",
    "OperationTimeoutException",
    "RequestLimitExceeded",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}


@contextmanager
def aws_errors() -> Iterator[None]:
    """Turn what AWS and boto3 raise into errors of ours.

    Raises:
        UserError: in their place.
    """
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise user_error(error, str(error)) from error


def user_error(error: BotoCoreError | ClientError, message: str) -> UserError:
    """An error with this message: transient where AWS was busy or not reached."""
    return TransientError(message) if _is_transient(error) else UserError(message)


def _is_transient(error: BotoCoreError | ClientError) -> bool:
    if not isinstance(error, ClientError):
        return isinstance(error, (ConnectionError, HTTPClientError))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or error.response["Error"]["Code"] in TRANSIENT_CODES
