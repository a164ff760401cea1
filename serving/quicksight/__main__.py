"""The command line: ``python -m serving.quicksight``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import boto3
from botocore.config import Config

from lake.errors import UserError
from serving.quicksight.definitions import Target, definitions
from serving.quicksight.publish import explained, publish


def main(arguments: list[str] | None = None) -> int:
    """Create or update the dashboard and what it reads.

    Returns:
        0 where everything is as the files say, 1 where something stopped it.
    """
    options = _parser().parse_args(arguments)
    try:
        target = Target(
            account=options.account,
            region=options.region,
            principal=options.principal,
            prefix=options.prefix,
            work_group=options.work_group,
            is_spice=options.spice,
        )
        wanted = definitions(target)
        if options.dry_run:
            _print_requests(
                ("create_data_source", wanted.data_source),
                *(("create_data_set", data_set) for data_set in wanted.data_sets),
                ("create_dashboard", wanted.dashboard),
            )
            return 0
        for line in publish(_client(target.region), wanted):
            print(line, flush=True)
    except UserError as error:
        print(f"quicksight: {error}", file=sys.stderr)
        return 1
    dashboard = wanted.dashboard["DashboardId"]
    print(f"https://{target.region}.quicksight.aws.amazon.com/sn/dashboards/{dashboard}")
    return 0


def _client(region: str) -> Any:
    # QuickSight throttles a few calls a second; this retries with growing pauses.
    retries = {"mode": "standard", "total_max_attempts": 6}
    with explained("QuickSight"):
        return boto3.client(
            "quicksight", region_name=region, config=Config(retries=retries)
        )


def _print_requests(*requests: tuple[str, Any]) -> None:
    print(json.dumps([{operation: body} for operation, body in requests], indent=2))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m serving.quicksight",
        description="Create or update the QuickSight dashboard and what it reads: a data"
        " source of Athena, a data set per gold table.",
        epilog="Credentials are found as by every AWS tool. docs/quicksight.md has the"
        " policy that they need.",
    )
    parser.add_argument("--account", required=True, help="the AWS account, 12 digits")
    parser.add_argument("--region", required=True, help="where Athena's tables are")
    parser.add_argument(
        "--principal",
        required=True,
        metavar="ARN",
        help="the QuickSight user or group that will own the resources",
    )
    parser.add_argument(
        "--prefix",
        default="lake",
        help="what stands before `_gold` in the name of the Glue database (default lake)",
    )
    parser.add_argument(
        "--work-group",
        default="primary",
        metavar="NAME",
        help="Athena's work group (default primary)",
    )
    parser.add_argument(
        "--spice",
        action="store_true",
        help="have QuickSight keep a copy, which each run imports anew",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the requests as JSON, and send none",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
