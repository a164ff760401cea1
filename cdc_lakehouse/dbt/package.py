"""The dbt package in a project: linked from what is installed, without `dbt deps`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import yaml

if TYPE_CHECKING:  # dbt takes a second to load
    from dbt.config.project import Project

PACKAGE = "cdc_lakehouse"
# What a project lists in packages.yml to have the installed package, wherever that is.
LINK = ".cdc_lakehouse"


def installed_package() -> Path:
    """The folder of the package that this environment has: a wheel's, or a checkout's."""
    package = Path(__file__).parents[1]
    in_wheel = package / "macros"
    return in_wheel if in_wheel.exists() else package.with_name("macros")


def profiles_option(folder: Path) -> list[str]:
    """dbt's option, where a project keeps its profiles in a folder of their own."""
    profiles = folder / "profiles"
    there = (profiles / "profiles.yml").exists()
    return ["--profiles-dir", str(profiles)] if there else []


def link_package(project: Project) -> bool:
    """Have the package where dbt looks for it, if a project lists it as a local one.

    Returns:
        Whether the project has it: so, or as `dbt deps` has brought it, or as its own.
    """
    root = Path(project.project_root).absolute()
    place = root / project.packages_install_path / PACKAGE
    for listed in project.packages.packages:
        if (local := getattr(listed, "local", None)) is None:
            continue
        source = root / local
        if source == root / LINK:
            point(source, installed_package())
        if not place.exists() and _is_package(source):
            place.parent.mkdir(parents=True, exist_ok=True)
            point(place, source)
    return place.exists() or project.project_name == PACKAGE


def _is_package(folder: Path) -> bool:
    file = folder / "dbt_project.yml"
    if not file.exists():
        return False
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return isinstance(content, dict) and content.get("name") == PACKAGE


def point(link: Path, target: Path) -> None:
    """Have a link point to a folder; another process may do the same."""
    if link.is_symlink() and link.readlink() == target:
        return
    new = link.with_name(f".{link.name}.{uuid4().hex}")
    new.symlink_to(target)
    new.replace(link)
