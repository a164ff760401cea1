"""Changes of a staging model's declaration, and of its silver model's descriptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from connectors.declare.difference import Difference
from connectors.declare.models import Declaration, column_yaml
from connectors.declare.project import Project, inserted, mapping
from lake.errors import UserError


def change_model(
    project: Project, differences: Sequence[Difference], declared: Declaration
) -> None:
    """Have a staging model and its silver model's descriptions follow the source.

    Args:
        project: whose models they are.
        differences: of one table, of kinds that are ``CHANGEABLE``.
        declared: what ``add`` would declare of the table today.
    """
    model = differences[0].model
    file = project.model(model)
    if file is None:
        raise UserError(f"{model} has no file of its own below {project.folder}/models")
    removed = {each.column for each in differences if not each.source}
    types = {each.column: each.source for each in differences if each.source}
    new = [each.column for each in differences if each.source and not each.declared]
    names = declared.source_names
    change_columns(
        *(project, file),
        set_types=types,
        removed=removed,
        source_names={column: names[column] for column in new if column in names},
    )
    for silver in project.files(f"{model.removeprefix('stg_')}.yml"):
        described = {column: declared.descriptions[column] for column in new}
        change_descriptions(project, silver, described, removed)


def change_columns(
    project: Project,
    model: Path,
    *,
    set_types: Mapping[str, str],
    removed: set[str],
    source_names: Mapping[str, str],
) -> None:
    """Change the columns that a staging model declares.

    Args:
        project: whose model it is.
        model: its file.
        set_types: the types of columns that are new or have another.
        removed: the columns to take away.
        source_names: of new columns, where they have another at the source.

    Raises:
        UserError: the declaration is not written as literals.
    """
    text = project.text(model)
    declared = _literal(model, text, "columns")
    wanted = {name: type_ for name, type_ in declared.items() if name not in removed}
    wanted |= set_types
    text = _changed(model, text, "columns", wanted)
    names = _literal(model, text, "source_names", missing={})
    kept = {name: its for name, its in names.items() if name not in removed}
    if kept | dict(source_names) != names:
        if not names:
            block = re.search(r"( *)(['\"])columns\2\s*:\s*\{[^}]*\},?\n", text)
            if block is None:
                raise _unusual(model)
            text = inserted(text, block.end(), f"{block[1]}'source_names': {{}},\n")
        text = _changed(model, text, "source_names", kept | dict(source_names))
    project.write(model, text)


def change_descriptions(
    project: Project, file: Path, added: Mapping[str, str], removed: set[str]
) -> None:
    """Add columns to a model's YAML, before those that every silver table has."""
    text = project.text(file)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    columns = mapping(mapping(root)["models"].value[0])["columns"].value
    places = {}
    for number, column in enumerate(columns):
        begin = text.rfind("\n", 0, column.start_mark.index) + 1
        following = columns[number + 1] if number + 1 < len(columns) else None
        end = text.rfind("\n", 0, following.start_mark.index) + 1 if following else begin
        places[mapping(column)["name"].value] = begin, end
    first = places["op"][0] if "op" in places else len(text)
    new = "".join(
        column_yaml(name, described)
        for name, described in added.items()
        if name not in places
    )
    text = text[:first] + new + text[first:]
    for name in sorted(removed & places.keys(), key=lambda each: -places[each][0]):
        begin, end = places[name]
        if begin < first:
            text = text[:begin] + text[end:]
    project.write(file, text)


def _literal(
    model: Path, text: str, name: str, missing: dict[str, str] | None = None
) -> dict[str, str]:
    block = _block(text, name)
    if block is None:
        if missing is None:
            raise _unusual(model)
        return missing
    try:
        found: dict[str, str] = ast.literal_eval(block["value"])
    except (SyntaxError, ValueError) as error:
        raise _unusual(model) from error
    return found


def _block(text: str, name: str) -> re.Match[str] | None:
    return re.search(rf"(['\"]){name}\1\s*:\s*(?P<value>\{{[^}}]*\}})", text)


def _changed(model: Path, text: str, name: str, wanted: Mapping[str, str]) -> str:
    """The text, in which a block has the wanted entries; the others stay as written."""
    block = _block(text, name)
    assert block is not None
    entries = block["value"]
    for column, was in _literal(model, text, name).items():
        entry = rf"(['\"]){re.escape(column)}\1\s*:\s*(['\"]){re.escape(was)}\2"
        if column not in wanted:
            entries = re.sub(rf"[ \t]*{entry}[ \t]*,?[ \t]*\n?", "", entries, count=1)
        elif wanted[column] != was:
            entries = re.sub(entry, f"'{column}': '{wanted[column]}'", entries, count=1)
    new = [each for each in wanted if each not in ast.literal_eval(entries)]
    if new:
        line = re.search(rf"^( *)['\"]{name}['\"]", text, re.MULTILINE)
        outer = line[1] if line else "    "
        entry_line = re.search(r"\n( *)['\"]", entries)
        inner = entry_line[1] if entry_line else f"{outer}    "
        body = entries[1:-1].rstrip()
        body += "," if body and not body.endswith(",") else ""
        lines = "".join(f"\n{inner}'{each}': '{wanted[each]}'," for each in new)
        entries = "{" + body + lines + f"\n{outer}}}"
    changed = text[: block.start("value")] + entries + text[block.end("value") :]
    if _literal(model, changed, name) != dict(wanted):
        raise _unusual(model)
    return changed


def _unusual(model: Path) -> UserError:
    return UserError(f"{model}: its columns are not written as literals; change it by hand")
