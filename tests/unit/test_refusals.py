"""What is refused, by the commands of ``refusals.yml``."""

import re
import shlex
import subprocess
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

import cdc_lakehouse.cli
import ingest.cli
import lab.stack.__main__
from tests.support.project import PROJECT
from tests.unit.conftest import Cli

STORIES: dict[str, list[str | dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("refusals.yml").read_text()
)
PROGRAMS = {
    "cdc-lakehouse": cdc_lakehouse.cli.main,
    "ingest": ingest.cli.main,
    "stack": lab.stack.__main__.main,
}
PLACES = {
    "PROJECT": str(PROJECT),
    "MANIFEST": str(Path(__file__).with_name("manifest.json")),
    "QUICKSIGHT": "--account 123456789012 --region eu-west-1"
    " --principal arn:aws:quicksight:us-east-1:123456789012:user/default/ann",
}


def placed(text: str) -> str:
    for name, place in PLACES.items():
        text = text.replace(name, place)
    return text


@pytest.mark.parametrize("story", STORIES)
def test_refusal(
    story: str,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = []
    for step in STORIES[story]:
        match step:
            case {"env": dict(variables)}:
                for name, value in variables.items():
                    monkeypatch.setenv(name, placed(value))
            case {"sh": str(words)}:
                subprocess.run(placed(words), shell=True, check=True)
            case {"shown": str(words)}:
                done = subprocess.run(
                    placed(words), shell=True, stdout=PIPE, stderr=STDOUT, text=True
                )
                # What make itself adds has the number of a line of its file.
                out = re.sub("^make.*\n", "", done.stdout, flags=re.MULTILINE)
                said.append(f"$ {words}\n{out}[{done.returncode}]\n")
            case str():
                program, *arguments = shlex.split(placed(step))
                code, out, err = cli(*arguments, main=PROGRAMS[program])
                said.append(f"$ {step}\n{out}{err}[{code}]\n")
    assert "".join(said).replace(str(tmp_path), "FOLDER") == snapshot
