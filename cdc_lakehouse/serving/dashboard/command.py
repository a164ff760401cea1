"""The command ``dashboard``."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import click

from cdc_lakehouse.command import STYLE, version
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.aws import aws_errors
from cdc_lakehouse.serving.dashboard.content import read_content
from cdc_lakehouse.serving.dashboard.page import page_of
from cdc_lakehouse.storage.folders import note_own
from cdc_lakehouse.storage.place import readable_lake
from cdc_lakehouse.storage.tables import write_object


@click.command("dashboard", context_settings=STYLE)
@version
def command() -> None:
    """Write gold as one HTML page, $LAKE_ROOT/dashboard.html."""
    start = time.monotonic()
    with aws_errors():
        lake = readable_lake("the dashboard")
        page = page_of(read_content(lake), datetime.now(UTC))
        file = f"{lake}/dashboard.html"
        if isinstance(lake, str):
            write_object(file, page.encode(), "text/html; charset=utf-8")
        else:
            note_own(str(lake), "dashboard.html")
            _write(Path(file), page)
    click.echo(f"wrote {file} ({time.monotonic() - start:.1f} s)")


def _write(file: Path, page: str) -> None:
    """Put a whole page in its place: a browser may reload, and another run may write."""
    part = file.with_name(f"{file.name}.{uuid4().hex}.part")
    try:
        part.write_text(page, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error
    finally:
        with suppress(OSError):  # where the page is in its place, this is gone
            part.unlink()
