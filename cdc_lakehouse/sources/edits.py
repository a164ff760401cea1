"""Changes of a staging model's declaration, and of its silver model's descriptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.sources.difference import Difference, names_of
from cdc_lakehouse.sources.models import Declaration, column_yaml, literal, scalar
from cdc_lakehouse.sources.project import Model, Project, mapping


@dataclass
class Changes:
    """What is to be another of the columns that a model has.

    Attributes:
        types: of columns that are new or have another.
        removed: the columns to take away.
        renamed: the new name of a column.
        source_names: what a column is called at the source, the newest name first; none
            of one that always had its own.
        ignored_fields: all that the model is to have.
        descriptions: of new columns.
    """

    types: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    source_names: dict[str, list[str]] = field(default_factory=dict)
    ignored_fields: list[str] = field(default_factory=list)
    descriptions: dict[str, str] = field(default_factory=dict)


def change_model(
    project: Project,
    model: Model,
    differences: Sequence[Difference],
    declared: Declaration,
    renamed: Mapping[str, str],
) -> None:
    """Have a staging model and its silver model's descriptions follow the source.

    Args:
        project: whose models they are.
        model: the staging model.
        differences: of its table, of kinds that are ``CHANGEABLE``.
        declared: what ``add`` would declare of the table today.
        renamed: the new name of a column, as ``declared`` has it.
    """
    file = project.model(model.name)
    if file is None:
        raise UserError(
            f"{model.name} has no file of its own below {project.folder}/models"
        )
    changes = changes_of(model, differences, declared, renamed)
    change_columns(project, file, changes)
    change_descriptions(project, model.name.removeprefix("stg_"), changes)


def changes_of(
    model: Model,
    differences: Sequence[Difference],
    declared: Declaration,
    renamed: Mapping[str, str],
) -> Changes:
    """What the differences mean for the columns; a column of the key keeps its name."""
    keys = {model.meta["key"], *model.meta.get("key_columns", ())}
    found = Changes(ignored_fields=[*model.meta.get("ignored_fields", ())])
    names = {column: names_of(model.meta, column) for column in model.meta["columns"]}
    for old, new in renamed.items():
        column = old if old in keys else new
        newest = declared.source_names.get(new, new)
        names[column] = [newest, *(name for name in names.pop(old) if name != newest)]
        found.types[column] = declared.columns[new]
        found.renamed |= {old: column} if column != old else {}
    for each in differences:
        if each.column in renamed or each.column in renamed.values():
            continue
        if not each.source:
            found.removed.add(each.column)
            found.ignored_fields += names.pop(each.column)
    for each in differences:
        if each.column in renamed or each.column in renamed.values() or not each.source:
            continue
        found.types[each.column] = each.source
        if not each.declared:
            if each.column in names:
                raise UserError(
                    f"{model.name}: the new column would be called {each.column}, which it"
                    " has; change it by hand"
                )
            names[each.column] = [declared.source_names.get(each.column, each.column)]
            found.descriptions[each.column] = declared.descriptions[each.column]
    # What a column is called now was another's name in events that a resync outdates.
    current = {own[0] for own in names.values()}
    found.ignored_fields = [
        name
        for name in dict.fromkeys([*found.ignored_fields, *declared.ignored_fields])
        if name not in current
    ]
    for column, own in names.items():
        kept = [own[0], *(name for name in own[1:] if name not in current)]
        found.source_names |= {column: kept} if kept != [column] else {}
    return found


def change_columns(project: Project, file: Path, changes: Changes) -> None:
    """Change what a staging model declares.

    Raises:
        UserError: the declaration is not written as literals.
    """
    text = project.text(file)
    declared: dict[str, str] = _literal(file, text, "columns")
    wanted = {
        changes.renamed.get(name, name): type_
        for name, type_ in declared.items()
        if name not in changes.removed
    } | changes.types
    text = _with_entries(file, text, "columns", wanted, changes.renamed)
    names: dict[str, str | list[str]] = {
        name: its[0] if len(its) == 1 else its for name, its in changes.source_names.items()
    }
    if names or _place(text, "source_names"):
        text = _with_entries(file, text, "source_names", names, changes.renamed)
    if changes.ignored_fields or _place(text, "ignored_fields"):
        begin, end = _place(text, "ignored_fields") or (None, None)
        if begin is None or ast.literal_eval(text[begin:end]) != changes.ignored_fields:
            text, begin, end = _with_setting(file, text, "ignored_fields", "[]")
            text = text[:begin] + literal(changes.ignored_fields) + text[end:]
    project.write(file, text)


def change_descriptions(project: Project, model: str, changes: Changes) -> None:
    """Change a model's columns in its YAML; new ones stand before the position columns.

    Raises:
        UserError: the columns are not a list of lines.
    """
    described = _described_columns(project, model)
    if described is None:
        return
    file, columns = described
    text = project.text(file)
    if columns.flow_style or not columns.value:
        raise UserError(f"{file}: the columns of {model} are not a list of lines")
    begins = [text.rfind("\n", 0, column.start_mark.index) + 1 for column in columns.value]
    end = text.rfind("\n", 0, columns.end_mark.index) + 1
    if columns.end_mark.index == len(text):
        end = len(text)
    names = [mapping(column)["name"] for column in columns.value]
    indent = columns.value[0].start_mark.column - 2
    added = "".join(
        column_yaml(name, description, indent)
        for name, description in changes.descriptions.items()
        if name not in [each.value for each in names]
    )
    place = next(
        (begin for begin, name in zip(begins, names, strict=True) if name.value == "op"),
        end,
    )
    edits = [(place, place, added)]
    for name, begin, following in zip(names, begins, [*begins[1:], end], strict=True):
        if name.value in changes.removed:
            edits.append((begin, following, ""))
        elif name.value in changes.renamed:
            new = scalar(changes.renamed[name.value])
            edits.append((name.start_mark.index, name.end_mark.index, new))
    for begin, following, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[following:]
    project.write(file, text)


def _described_columns(project: Project, model: str) -> tuple[Path, Any] | None:
    """The file that describes a model, and the node of its columns."""
    for file in project.files("*.yml"):
        text = project.text(file)
        if model not in text:
            continue
        root = mapping(yaml.compose(text, Loader=yaml.SafeLoader))
        for each in root["models"].value if "models" in root else ():
            described = mapping(each)
            if described["name"].value == model and "columns" in described:
                return file, described["columns"]
    return None


def _place(text: str, name: str) -> tuple[int, int] | None:
    """Where the value of a setting is, which is written as a literal."""
    found = re.search(rf"(['\"]){name}\1\s*:\s*(?=[\[{{])", text)
    if found is None:
        return None
    for end in re.finditer(r"[\]}]", text[found.end() :]):
        try:
            ast.literal_eval(text[found.end() : found.end() + end.end()])
        except (SyntaxError, ValueError):
            continue
        return found.end(), found.end() + end.end()
    return None


def _literal(file: Path, text: str, name: str) -> Any:
    place = _place(text, name)
    if place is None:
        raise _unusual(file)
    return ast.literal_eval(text[slice(*place)])


def _with_setting(file: Path, text: str, name: str, empty: str) -> tuple[str, int, int]:
    """The text, with a setting behind ``columns`` if it had none, and its value's place."""
    if _place(text, name) is None:
        begin, end = _place(text, "columns") or (0, 0)
        line = text[text.rfind("\n", 0, begin) + 1 : begin]
        indent = " " * (len(line) - len(line.lstrip()))
        has_comma = text[end : end + 1] == ","
        added = f"{'' if has_comma else ','}\n{indent}'{name}': {empty},"
        end += has_comma
        text = text[:end] + added + text[end:]
    place = _place(text, name)
    if place is None:
        raise _unusual(file)
    return text, *place


def _with_entries(
    file: Path, text: str, name: str, wanted: Mapping[str, Any], renamed: Mapping[str, str]
) -> str:
    """The text, in which a mapping has the wanted entries; the others stay as written."""
    text, begin, end = _with_setting(file, text, name, "{}")
    entries = text[begin:end]
    for column, was in ast.literal_eval(entries).items():
        own = renamed.get(column, column)
        value = r"(?:'[^']*'|\"[^\"]*\"|\[[^\]]*\])"
        entry = rf"(['\"]){re.escape(column)}\1\s*:\s*{value}"
        if own not in wanted:
            entries = re.sub(rf"[ \t]*{entry}[ \t]*,?[ \t]*\n?", "", entries, count=1)
        elif own != column or wanted[own] != was:
            place = re.search(entry, entries)
            if place is None:
                raise _unusual(file)
            new = f"'{own}': {_written(wanted[own])}"
            entries = entries[: place.start()] + new + entries[place.end() :]
    new_ones = [each for each in wanted if each not in ast.literal_eval(entries)]
    if new_ones:
        line = text[text.rfind("\n", 0, begin) + 1 : begin]
        outer = " " * (len(line) - len(line.lstrip()))
        entry_line = re.search(r"\n( *)['\"]", entries)
        inner = entry_line[1] if entry_line else f"{outer}    "
        body = entries[1:-1].rstrip()
        body += "," if body and not body.endswith(",") else ""
        lines = "".join(
            f"\n{inner}'{each}': {_written(wanted[each])}," for each in new_ones
        )
        entries = "{" + body + lines + f"\n{outer}}}"
    changed = text[:begin] + entries + text[end:]
    if _literal(file, changed, name) != dict(wanted):
        raise _unusual(file)
    return changed


def _written(value: str | list[str]) -> str:
    return f"'{value}'" if isinstance(value, str) else literal(value)


def _unusual(file: Path) -> UserError:
    return UserError(f"{file}: its columns are not written as literals; change it by hand")
