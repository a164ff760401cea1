"""A state machine without AWS: its tasks are a function's answers, its waits take no time.

Interprets the states, paths and functions of the Amazon States Language that
``deploy/aws/schedule.yml`` uses, with their meaning in
https://states-language.net/spec.html; any other is an error.
"""

import json
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

FUNCTIONS = SimpleNamespace(
    Array=lambda *values: [*values],
    ArrayLength=len,
    Format=str.format,
    MathAdd=operator.add,
    StringToJson=json.loads,
)
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "NumericEquals": operator.eq,
    "NumericGreaterThan": operator.gt,
    "NumericLessThan": operator.lt,
}
# Answers a task's resource and parameters; those of a wait are ``wait`` and its seconds.
Task = Callable[[str, Any], Any]


class StateError(Exception):
    """An error of a task or of a ``Fail`` state: its name and its cause."""


class _Object(dict[str, Any]):
    """A JSON object whose fields are attributes."""

    __getattr__ = dict.__getitem__


def execute(machine: dict[str, Any], data: Any, task: Task, context: dict[str, Any]) -> Any:
    """Run from the first state to the last; the output.

    Raises:
        StateError: it failed.
    """
    name = machine["StartAt"]
    while name is not None:
        state = machine["States"][name]
        name = state.get("Next")
        if state["Type"] == "Choice":
            rules = (rule for rule in state["Choices"] if _holds(rule, data, context))
            name = next(rules, {"Next": state["Default"]})["Next"]
            continue
        try:
            result = _result(state, data, task, context)
        except StateError as error:
            if "Catch" not in state:
                raise
            (state,) = state["Catch"]
            assert state["ErrorEquals"] == ["States.ALL"]
            name = state["Next"]
            result = dict(zip(("Error", "Cause"), error.args, strict=True))
        if "ResultPath" in state:
            result = {**data, state["ResultPath"].removeprefix("$."): result}
        data = result
    return data


def _result(state: dict[str, Any], data: Any, task: Task, context: dict[str, Any]) -> Any:
    """What a state makes of the data."""
    asked = _filled(state.get("Parameters", data), data, context)
    match state["Type"]:
        case "Task":
            answer = task(state["Resource"], asked)
            return _filled(state.get("ResultSelector", answer), answer, context)
        case "Pass":
            return state.get("Result", asked)
        case "Wait":
            task("wait", _value(state["SecondsPath"], data, context))
            return data
        case "Map":
            results = []
            for item in _value(state["ItemsPath"], data, context):
                inner = {**context, "Map": {"Item": {"Value": item}}}
                selected = _filled(state["ItemSelector"], data, inner)
                results.append(execute(state["ItemProcessor"], selected, task, inner))
            return results
        case "Fail":
            raise StateError(state["Error"], _value(state["CausePath"], data, context))
        case "Succeed":
            return data
    raise NotImplementedError(state["Type"])  # no machine of ours has it


def _holds(rule: dict[str, Any], data: Any, context: dict[str, Any]) -> bool:
    if "And" in rule:
        return all(_holds(one, data, context) for one in rule["And"])
    ((name, limit),) = (item for item in rule.items() if item[0] in COMPARISONS)
    return COMPARISONS[name](_value(rule["Variable"], data, context), limit)


def _filled(template: Any, data: Any, context: dict[str, Any]) -> Any:
    """A template whose keys that end with ``.$`` have paths and functions."""
    if not isinstance(template, dict):
        return template
    return {
        key.removesuffix(".$"): _value(value, data, context)
        if key.endswith(".$")
        else _filled(value, data, context)
        for key, value in template.items()
    }


def _value(text: str, data: Any, context: dict[str, Any]) -> Any:
    """The value of a path or of a function, which Python's grammar has, too."""
    expression = text.replace("$$", "context").replace("$", "data")
    names = {"context": context, "data": data}
    known = json.loads(json.dumps(names), object_hook=_Object)
    return eval(expression, {"States": FUNCTIONS, **known})
