"""AWS Glue, which is told after each build what is new."""

from __future__ import annotations

import logging
from pathlib import Path

from cdc_lakehouse import log
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.aws import aws_errors
from cdc_lakehouse.serving.glue import Catalogue, Lake, exit_code, register
from cdc_lakehouse.serving.manifest import Manifest
from cdc_lakehouse.storage.place import lake_root

LOGGER = logging.getLogger("ingest")


class Glue:
    """The databases of a lake in Glue.

    Args:
        prefix: what their names begin with.

    Raises:
        UserError: the lake is not on S3, or AWS has no region.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lake = Lake(lake_root())
        with aws_errors():
            self._catalogue = Catalogue(self._lake.location, is_dry=False)

    def register(self, manifest: Path) -> int:
        """Bring the tables into Glue; log what differed and what failed.

        Args:
            manifest: what dbt wrote.

        Returns:
            An exit code: 75 where another try may mend every table that failed.
        """
        errors: list[UserError] = []
        try:
            with aws_errors():
                tables = Manifest.read(manifest)
                for found in register(tables, self._lake, self._catalogue, self._prefix):
                    if isinstance(found, UserError):
                        errors.append(found)
                    elif found.is_news:
                        LOGGER.info("glue: %s", log.quoted(str(found)))
        except UserError as error:
            errors.append(error)
        for failed in errors:
            LOGGER.error("glue: %s", log.quoted(str(failed)))
        return exit_code(errors)
