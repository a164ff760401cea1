"""Files and folders that an ingest may not read; unit/test_stack_commands.py has others.

It needs no server; it is in this tier because each command is a process of its own.
"""

import json
import subprocess
from pathlib import Path

from tests.support.rights import run_bound
from tests.support.scenario import order


def said_at_last(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a command says, without its progress."""
    return [line for line in done.stderr.splitlines() if not line.endswith(" s now")]


def test_files_without_rights_are_named(tmp_path: Path) -> None:
    """They do not hold up the others."""
    folder = tmp_path / "landing"
    folder.mkdir()
    for number in (1, 2):
        change = order("c", number, number, number)
        (folder / f"{number}.json").write_text(json.dumps(change))
    (folder / "2.json").chmod(0)
    lake = tmp_path / "lake"
    done = run_bound(lake, "ingest", "files", str(folder))
    assert done.returncode == 3, done.stderr
    assert done.stdout == "read 1 records, wrote 1 events, rejected 0, skipped 0\n"
    [line] = said_at_last(done)
    assert f"cannot read file:{folder}/2.json: " in line
    assert "(Permission denied)" in line

    (folder / "closed").mkdir(mode=0)
    done = run_bound(lake, "ingest", "files", str(folder))
    (folder / "closed").chmod(0o700)
    assert done.returncode == 3
    said = said_at_last(done)
    assert len(said) == 2
    [line] = [each for each in said if f"cannot read file:{folder}/closed: " in each]
    assert ": Permission denied; " in line
