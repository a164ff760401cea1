"""What is refused, by the commands of ``refusals.yml``."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

import cdc_lakehouse.cli
import ingest.cli
from tests.support.project import PROJECT
from tests.unit.conftest import Cli

STORIES: dict[str, list[str | dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("refusals.yml").read_text()
)
PROGRAMS = {"cdc-lakehouse": cdc_lakehouse.cli.main, "ingest": ingest.cli.main}
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
                    monkeypatch.setenv(name, value)
            case {"sh": str(words)}:
                subprocess.run(placed(words), shell=True, check=True)
            case str():
                program, *arguments = shlex.split(placed(step))
                code, out, err = cli(*arguments, main=PROGRAMS[program])
                said.append(f"$ {step}\n{out}{err}[{code}]\n")
    assert "".join(said).replace(str(tmp_path), "FOLDER") == snapshot
