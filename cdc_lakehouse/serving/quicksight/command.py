"""The command ``quicksight``."""

from __future__ import annotations

import json
from typing import Any

import boto3
import click
from botocore.config import Config

from cdc_lakehouse.command import STYLE, version
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.quicksight.definitions import Target, definitions
from cdc_lakehouse.serving.quicksight.publish import explained, publish


@click.command(
    "quicksight",
    context_settings=STYLE,
    epilog="Credentials are found as by every AWS tool. docs/quicksight.md has the policy"
    " that they need.",
)
@version
@click.option("--account", required=True, help="The AWS account, 12 digits.")
@click.option("--region", required=True, help="Where Athena's tables are.")
@click.option(
    "--principal",
    required=True,
    metavar="ARN",
    help="The QuickSight user or group that will own the resources.",
)
@click.option(
    "--prefix",
    default="lake",
    help="What comes before `_gold` in the name of the Glue database.",
)
@click.option(
    "--work-group", metavar="NAME", default="primary", help="Athena's work group."
)
@click.option(
    "--role",
    metavar="ARN",
    help="The role that QuickSight takes for the queries, in place of the account's.",
)
@click.option(
    "--spice",
    "is_spice",
    is_flag=True,
    help="Have QuickSight keep a copy, which each run imports again.",
)
@click.option("--dry-run", is_flag=True, help="Print the requests as JSON, and send none.")
def command(dry_run: bool, **options: Any) -> None:
    """Create or update the QuickSight dashboard and what it reads.

    That is a data source of Athena, and a data set per gold table.
    """
    try:
        target = Target(**options)
    except UserError as error:
        raise click.UsageError(str(error)) from error
    wanted = definitions(target)
    if dry_run:
        _print_requests(
            ("create_data_source", wanted.data_source),
            *(("create_data_set", data_set) for data_set in wanted.data_sets),
            ("create_dashboard", wanted.dashboard),
        )
        return
    for line in publish(_client(target.region), wanted):
        click.echo(line)
    dashboard = wanted.dashboard["DashboardId"]
    click.echo(
        f"https://{target.region}.quicksight.aws.amazon.com/sn/dashboards/{dashboard}"
    )


def _client(region: str) -> Any:
    # QuickSight throttles a few calls a second; this retries with growing pauses.
    retries = {"mode": "standard", "total_max_attempts": 6}
    with explained("QuickSight"):
        return boto3.client(
            "quicksight", region_name=region, config=Config(retries=retries)
        )


def _print_requests(*requests: tuple[str, Any]) -> None:
    click.echo(json.dumps([{operation: body} for operation, body in requests], indent=2))
