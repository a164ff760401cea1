"""What all entry points have in common, the variables they read, and the service."""

import os
import re
import resource
import shlex
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from ingest.cli import command
from tests.support.project import PROJECT
from tests.support.required import require_program

COMMANDS = PROJECT / "docs/commands.md"
EXCLUDED = {
    "deploy.spark_job": "what spark-submit runs, with nothing of the project imported",
    "deploy.aws.entry": "what a job on EMR starts, with nothing of the project imported",
}
# Ends a process that does more than to print.
GUARD = """
import os, runpy, sys

def watch(event, arguments):
    is_written = event == "open" and arguments[1] and set(arguments[1]) & set("wax+")
    if is_written and arguments[0] != os.devnull or event in (
        "os.mkdir", "subprocess.Popen", "os.posix_spawn", "os.fork", "os.system",
        "socket.connect",
    ):
        print("does", event, arguments, file=sys.stderr)
        os._exit(70)

module = sys.argv.pop(1)
sys.dont_write_bytecode = True
sys.addaudithook(watch)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def entry_points() -> list[str]:
    """The modules that can be run."""
    files = [
        file.relative_to(PROJECT)
        for folder in sorted(PROJECT.iterdir())
        if folder.name != "tests" and not folder.name.startswith(".")
        for file in sorted(folder.rglob("*.py"))
        if file.name == "__main__.py"
        or '\nif __name__ == "__main__":' in file.read_text(encoding="utf-8")
    ]
    return [
        ".".join(file.with_suffix("").parts).removesuffix(".__main__") for file in files
    ]


MODULES = [name for name in entry_points() if name not in EXCLUDED]


@pytest.mark.parametrize("module", MODULES)
def test_help_does_nothing_else(module: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GUARD, module, "--help"],
        cwd=PROJECT,
        env={**os.environ, "LAKE_ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        # Seconds of a processor, which other work on the machine does not change.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20)),
    )
    assert (done.returncode, done.stderr) == (0, "")
    program = "cdc-lakehouse" if module == "cdc_lakehouse" else f"python -m {module}"
    assert done.stdout.startswith(f"Usage: {program} ")
    assert not list(tmp_path.iterdir())


def test_every_module_is_documented() -> None:
    """``python -m MODULE``; of the benchmarks, which share a line, the names."""
    assert EXCLUDED.keys() <= set(entry_points())
    assert len(MODULES) > 10
    page = COMMANDS.read_text(encoding="utf-8")
    wanted = [
        f"`{name.removeprefix('lab.benchmarks.')}`"
        if name.startswith("lab.benchmarks.")
        else f"`python -m {name}"
        for name in MODULES
    ]
    assert [name for name in wanted if name not in page] == []


def test_environment_variables_are_documented() -> None:
    """Each that the project reads, and no other; AWS's own are boto3's matter.

    So is what EMR's jobs are given by their template.
    """
    files = [PROJECT / "Makefile", *PROJECT.glob("profiles/*.yml")]
    for folder in PROJECT.iterdir():
        if folder.name != "deploy" and not folder.name.startswith("."):
            files += [*folder.rglob("*.py"), *folder.rglob("*.sh")]
    reads = re.compile(
        r"""env_var\('(\w+)'|environ(?:\.\w+\(|\[)"(\w+)"|envvar="(\w+)"|"""
        r"""\$\$?{?(JAVA_HOME|LAKE_\w+)|^(?:export )?([A-Z_]+) \?=""",
        re.MULTILINE,
    )
    texts = (file.read_text(encoding="utf-8") for file in files)
    read = {"".join(names) for text in texts for names in reads.findall(text)}
    page = COMMANDS.read_text(encoding="utf-8")
    section = page.partition("## Environment variables\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", section))
    assert {name for name in read ^ listed if not name.startswith("AWS_")} == set()


# The service's unit file

UNIT = PROJECT / "deploy/systemd/cdc-lakehouse.service"


def test_service_runs_a_command_line_that_there_is() -> None:
    """And ends Python before its Java."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's names
    parser.read_string(UNIT.read_text().replace("\\\n", " "))
    service = parser["Service"]
    assert service["KillMode"] == "mixed"
    assert service["RestartPreventExitStatus"] == "2"
    python, *words = shlex.split(service["ExecStart"])
    assert python.endswith("/.venv/bin/python")
    assert words[:3] == ["-m", "ingest", "kafka"]
    context = command.commands["kafka"].make_context("kafka", words[3:])
    assert context.params["continuous"] is True
    assert context.params["then_build"] == "build"
    assert context.params["metrics_port"] == ("127.0.0.1", 9464)


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
