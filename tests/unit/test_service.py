"""The service's unit file."""

from __future__ import annotations

import shlex
import subprocess
from configparser import ConfigParser
from pathlib import Path

from ingest.cli import command
from tests.support.project import PROJECT
from tests.support.required import require_program

UNIT = PROJECT / "deploy/systemd/cdc-lakehouse.service"


def service() -> dict[str, str]:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's names
    parser.read_string(UNIT.read_text().replace("\\\n", " "))
    return dict(parser["Service"])


def test_service_runs_a_command_line_that_there_is() -> None:
    python, *words = shlex.split(service()["ExecStart"])
    assert python.endswith("/.venv/bin/python")
    assert words[:3] == ["-m", "ingest", "kafka"]
    context = command.commands["kafka"].make_context("kafka", words[3:])
    assert context.params["continuous"] is True
    assert context.params["then_build"] == "build"


def test_service_ends_python_before_its_java() -> None:
    assert service()["KillMode"] == "mixed"
    assert service()["RestartPreventExitStatus"] == "2"


def test_systemd_knows_all_that_the_unit_says(tmp_path: Path) -> None:
    """But for the paths, which are the user's."""
    unit = tmp_path / UNIT.name
    unit.write_text(
        UNIT.read_text().replace("/opt/cdc-lakehouse/.venv/bin/python", "/bin/true")
    )
    done = subprocess.run(
        [require_program("systemd-analyze", "systemd"), "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert said == [], done.stderr
