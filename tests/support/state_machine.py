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


class StateError(Exception):
    """An error of a task or of a ``Fail`` state: its name and its cause."""

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(name, cause)
        self.name = name
        self.cause = cause


class _Object(dict[str, Any]):
    """A JSON object whose fields are attributes."""

    __getattr__ = dict.__getitem__


class Execution:
    """One execution of a state machine.

    Args:
        task: answers a task's resource and parameters, or raises ``StateError``; those of
            a wait are ``wait`` and its seconds.
        context: the context object (``$$``).
    """

    def __init__(self, task: Callable[[str, Any], Any], context: dict[str, Any]) -> None:
        self.task = task
        self.context = context

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
                if "Catch" not in state:
                    raise
                (catch,) = state["Catch"]
                assert catch["ErrorEquals"] == ["States.ALL"]
                found = {"Error": error.name, "Cause": error.cause}
                name, data = catch["Next"], _placed(catch, data, found)
        return data

    def _step(self, state: dict[str, Any], data: Any) -> tuple[str | None, Any]:
        """The name of the next state, and the data for it."""
        following = state.get("Next")
        result = self._filled(state.get("Parameters", data), data)
        match state["Type"]:
            case "Task":
                result = self.task(state["Resource"], result)
                result = self._filled(state.get("ResultSelector", result), result)
            case "Pass":
                result = state.get("Result", result)
            case "Choice":
                rules = state["Choices"]
                chosen = (rule["Next"] for rule in rules if self._holds(rule, data))
                return next(chosen, state["Default"]), data
            case "Wait":
                self.task("wait", self._value(state["SecondsPath"], data))
                return following, data
            case "Map":
                items = self._value(state["ItemsPath"], data)
                result = [self._iterated(state, data, item) for item in items]
            case "Fail":
                raise StateError(state["Error"], self._value(state["CausePath"], data))
            case "Succeed":
                return None, data
            case _:
                raise NotImplementedError(state["Type"])  # no machine of ours has it
        return following, _placed(state, data, result)

    def _iterated(self, state: dict[str, Any], data: Any, item: Any) -> Any:
        inner = Execution(self.task, {**self.context, "Map": {"Item": {"Value": item}}})
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
        known = json.loads(json.dumps(names), object_hook=_Object)
        return eval(expression, {"States": FUNCTIONS, **known})


def _placed(state: dict[str, Any], data: Any, result: Any) -> Any:
    """The data with a result where ``ResultPath`` says; without one, the result."""
    if "ResultPath" not in state:
        return result
    return {**data, state["ResultPath"].removeprefix("$."): result}
