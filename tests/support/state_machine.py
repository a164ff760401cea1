"""A state machine without AWS: its tasks are a function's answers, its waits take no time.

Interprets the states, paths and functions of the Amazon States Language that
``deploy/aws/schedule.yml`` uses, with their meaning in
https://states-language.net/spec.html; any other is an error.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Array": lambda *values: [*values],
    "ArrayLength": len,
    "Format": str.format,
    "MathAdd": operator.add,
    "StringToJson": json.loads,
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "NumericEquals": operator.eq,
    "NumericGreaterThan": operator.gt,
    "NumericLessThan": operator.lt,
}


class StateError(Exception):
    """An error of a task or of a ``Fail`` state: its name and its cause."""

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(name, cause)
        self.name = name
        self.cause = cause


class Execution:
    """One execution of a state machine.

    Args:
        task: answers a task's resource and parameters, or raises ``StateError``.
        context: the context object (``$$``).

    Attributes:
        waits: the seconds of each wait.
    """

    def __init__(self, task: Callable[[str, Any], Any], context: dict[str, Any]) -> None:
        self.task = task
        self.context = context
        self.waits: list[int] = []

    def run(self, machine: dict[str, Any], data: Any) -> Any:
        """Run from the first state to the last; its output.

        Raises:
            StateError: it failed.
        """
        name = machine["StartAt"]
        while name is not None:
            state = machine["States"][name]
            try:
                name, data = self._step(state, data)
            except StateError as error:
                (catch,) = state.get("Catch") or [None]
                if catch is None:
                    raise
                assert catch["ErrorEquals"] == ["States.ALL"]
                found = {"Error": error.name, "Cause": error.cause}
                name, data = catch["Next"], _placed(catch, data, found)
        return data

    def _step(self, state: dict[str, Any], data: Any) -> tuple[str | None, Any]:
        """The name of the next state, and the data for it."""
        parameters = self._filled(state.get("Parameters", data), data)
        following = state.get("Next")
        match state["Type"]:
            case "Task":
                result = self.task(state["Resource"], parameters)
                result = self._filled(state.get("ResultSelector", result), result)
                return following, _placed(state, data, result)
            case "Pass":
                return following, _placed(state, data, state.get("Result", parameters))
            case "Choice":
                chosen = (
                    rule["Next"] for rule in state["Choices"] if self._holds(rule, data)
                )
                return next(chosen, state["Default"]), data
            case "Wait":
                self.waits.append(self._value(state["SecondsPath"], data))
                return following, data
            case "Map":
                results = [
                    self._iterated(state, data, item)
                    for item in self._value(state["ItemsPath"], data)
                ]
                return following, _placed(state, data, results)
            case "Fail":
                raise StateError(state["Error"], self._value(state["CausePath"], data))
            case "Succeed":
                return None, data
        raise NotImplementedError(state["Type"])  # no machine of ours has it

    def _iterated(self, state: dict[str, Any], data: Any, item: Any) -> Any:
        inner = Execution(self.task, {**self.context, "Map": {"Item": {"Value": item}}})
        inner.waits = self.waits
        selected = inner._filled(state["ItemSelector"], data)
        return inner.run(state["ItemProcessor"], selected)

    def _holds(self, rule: dict[str, Any], data: Any) -> bool:
        if "And" in rule:
            return all(self._holds(one, data) for one in rule["And"])
        ((name, limit),) = (item for item in rule.items() if item[0] in COMPARISONS)
        return COMPARISONS[name](self._value(rule["Variable"], data), limit)

    def _filled(self, template: Any, data: Any) -> Any:
        """A template whose keys that end with ``.$`` have paths and functions."""
        if not isinstance(template, dict):
            return template
        return {
            key.removesuffix(".$"): self._value(value, data)
            if key.endswith(".$")
            else self._filled(value, data)
            for key, value in template.items()
        }

    def _value(self, text: str, data: Any) -> Any:
        """The value of a path or of a function, which Python's grammar has, too."""
        expression = text.replace("$$", "context").replace("$", "data")
        names = {"context": self.context, "data": data}
        return _evaluated(ast.parse(expression, mode="eval").body, names)


def _evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names[node.id]
        case ast.Attribute():
            return _evaluated(node.value, names)[node.attr]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="States"), attr=name)):
            return FUNCTIONS[name](*(_evaluated(one, names) for one in node.args))
    raise NotImplementedError(ast.dump(node))  # no machine of ours has it


def _placed(state: dict[str, Any], data: Any, result: Any) -> Any:
    """The data with a result where ``ResultPath`` says; without one, the result."""
    if "ResultPath" not in state:
        return result
    return {**data, state["ResultPath"].removeprefix("$."): result}
