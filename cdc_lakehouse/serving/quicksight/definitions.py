"""The JSON files of this folder as requests of one account.

Each file is the body of a ``create_…`` request with ``${placeholders}`` in its strings.
JSON is parsed first and filled in afterwards, so that no value can become JSON text.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.manifest import PREFIX

FOLDER = Path(__file__).parent

Request = dict[str, Any]

# Data sources and data sets go to users and groups only, not to a namespace
# (https://github.com/aws/aws-cli/issues/6067).
PRINCIPAL = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):quicksight:[a-z0-9-]+:(?P<account>[0-9]{12})"
    r":(user|group)/[^/]+/.+"
)


@dataclass(frozen=True)
class Target:
    """Where the resources go, and what they read.

    ``account`` is 12 digits. ``region`` is that of Athena's tables. ``principal`` is the
    ARN of the QuickSight user or group that owns the resources; it names the region in
    which the account keeps its users, which may be another one. ``prefix`` stands before
    ``_gold`` in the name of the Glue database. ``role`` is the ARN of the role that the
    queries have, in place of the account's role for QuickSight. With ``is_spice``
    QuickSight keeps a copy of the data; otherwise every look at the dashboard is a query.

    Raises:
        UserError: a value is malformed; the message says which, and how it should look.
    """

    account: str
    region: str
    principal: str
    prefix: str = "lake"
    work_group: str = "primary"
    role: str | None = None
    is_spice: bool = False

    def __post_init__(self) -> None:
        for option, value, pattern, wanted in [
            ("account", self.account, r"[0-9]{12}", "12 digits"),
            ("region", self.region, r"[a-z]{2,}(-[a-z]+)+-[0-9]+", "such as eu-west-1"),
            (
                "principal",
                self.principal,
                PRINCIPAL.pattern,
                "the ARN of a QuickSight user or group, arn:aws:quicksight:REGION:ACCOUNT"
                ":user/NAMESPACE/NAME: `aws quicksight list-users` shows it",
            ),
            (
                "prefix",
                self.prefix,
                PREFIX,
                "what stands before `_gold` in the name of the Glue database: lower case"
                " letters, digits, underscores",
            ),
            (
                "work-group",
                self.work_group,
                r"[a-zA-Z0-9._-]{1,128}",
                "the name of a work group of Athena",
            ),
            (
                "role",
                self.role or f"arn:aws:iam::{self.account}:role/of-the-account",
                rf"arn:aws[a-z-]*:iam::{self.account}:role/.+",
                "the ARN of a role of the account",
            ),
        ]:
            if not re.fullmatch(pattern, value):
                raise UserError(f"--{option} is '{value}', and should be {wanted}")
        owner = self._principal["account"]
        if owner != self.account:
            raise UserError(
                f"--principal is of the account {owner}, --account is {self.account}:"
                " both must name the account that has QuickSight"
            )

    @property
    def _principal(self) -> re.Match[str]:
        found = PRINCIPAL.fullmatch(self.principal)
        assert found
        return found

    @property
    def placeholders(self) -> dict[str, str]:
        """What the files' placeholders stand for."""
        return {
            "account": self.account,
            "import_mode": "SPICE" if self.is_spice else "DIRECT_QUERY",
            "partition": self._principal["partition"],
            "prefix": self.prefix,
            "principal": self.principal,
            "region": self.region,
            "work_group": self.work_group,
        }


@dataclass(frozen=True)
class Definitions:
    """The bodies of the requests that create everything, in the order of creation."""

    data_source: Request
    data_sets: list[Request]
    dashboard: Request


def definitions(target: Target) -> Definitions:
    """Read the files, for one target.

    Raises:
        UserError: a file is no JSON, or has a placeholder that there is not.
    """
    data_sets = [_read(file, target) for file in sorted(FOLDER.glob("data_set_*.json"))]
    if not target.is_spice:
        for data_set in data_sets:
            _drop_sub_types(data_set)
    data_source = _read(FOLDER / "data_source.json", target)
    if target.role is not None:
        athena = data_source["DataSourceParameters"]["AthenaParameters"]
        athena["RoleArn"] = target.role
    dashboard = _read(FOLDER / "dashboard.json", target)
    dashboard["VersionDescription"] = _digest(dashboard)
    return Definitions(
        data_source=data_source,
        data_sets=data_sets,
        dashboard=dashboard,
    )


def _read(file: Path, target: Target) -> Request:
    try:
        content: Request = _filled(json.loads(file.read_text()), target.placeholders)
    except KeyError as error:
        raise UserError(f"{file}: no placeholder is called {error}") from error
    except ValueError as error:
        raise UserError(f"{file}: {error}") from error
    return content


def _filled(value: Any, placeholders: dict[str, str]) -> Any:
    if isinstance(value, str):
        return Template(value).substitute(placeholders)
    if isinstance(value, list):
        return [_filled(item, placeholders) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, placeholders) for key, item in value.items()}
    return value


def _digest(dashboard: Request) -> str:
    """A version's description that tells one definition from any other.

    What QuickSight describes has its own defaults in it, so that a field taken out of the
    file would not be missed there.
    """
    shown = json.dumps([dashboard["Name"], dashboard["Definition"]], sort_keys=True)
    return f"serving/quicksight {hashlib.sha256(shown.encode()).hexdigest()[:16]}"


def _drop_sub_types(data_set: Request) -> None:
    """Leave out how decimals are kept, which only SPICE knows (the API's InputColumn)."""
    for table in data_set["PhysicalTableMap"].values():
        for column in table["RelationalTable"]["InputColumns"]:
            column.pop("SubType", None)
