"""Small wrong changes of the macros, made by operators and not by hand.

Each takes one word, one condition or one branch of a macro's text for another: ``or`` for
``and``, ``<=`` for ``<``, ``max`` for ``min``, no ``not``, a branch of a ``case`` that is
never taken, a condition less, a value that is null. Comments and messages are left alone.
"""

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_file = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
WORDS: dict[str, str] = _file["words"]
CONDITION_LESS = re.compile(r"^ *(?:and|or) .*\n", re.MULTILINE)
JINJA_IF = re.compile(r"(\{%-? (?:el)?if )(.+?)( -?%\})", re.DOTALL)
VALUE = re.compile(
    r"^ *(?!from\b|end\b|cast\(null\b|\{%)(\S.*) as `?\w+`?,?$", re.MULTILINE
)
BRANCH = re.compile(r"\bwhen\b|\bcase\b|\bthen\b|\bend\b")
# Comments, the range of a window, assignments, names of arguments, and what people read.
LEFT_ALONE = re.compile(
    r"""(['"])[; ]*(?:it|setting|the)\b[^'"\n]*\1|"""
    r"\{#.*?#\}|\bbetween\b[^\n]*?\band\b|\{%-? set [`\w.,() ]+ = |\bmerge into\b[^\n]*"
    r"|(?:exceptions\.\w+|errors\.append)\((?:[^{}]|\{(?!%))*?\)"
    r" *(?:\}\}|(?:if \w+ )?-?%\})|do log\((?:[^{}]|\{(?!%))*?\) -?%\}",
    re.DOTALL,
)


@dataclass(frozen=True)
class Generated:
    """One wrong change.

    Attributes:
        file: the macro's, below the project.
        line: where it is.
        text: the lines that it changes.
        wrong: what is there instead.
        content: of the whole file.
    """

    file: str
    line: int
    text: str
    wrong: str
    content: str

    @property
    def change(self) -> str:
        """The lines that it changes, before and after; the same where others are added."""
        return f"{_short(self.text)} -> {_short(self.wrong)}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.change}"

    def apply(self, project: Path) -> None:
        """Make the change in a copy of the project."""
        (project / self.file).write_text(self.content)


def _short(text: str) -> str:
    return " ".join(text.split())[:120] or "nothing"


def generated(project: Path) -> list[Generated]:
    """All wrong changes of a project's macros, in the order of their files."""
    return [
        mutant
        for file in sorted((project / "macros").glob("*/*.sql"))
        for mutant in _of_file(file, str(file.relative_to(project)))
    ]


def sample(mutants: list[Generated], count: int, seed: int) -> list[Generated]:
    """Some of them, of as many macros as there are."""
    chance = random.Random(seed)
    by_file: dict[str, list[Generated]] = {}
    for mutant in chance.sample(mutants, len(mutants)):
        by_file.setdefault(mutant.file, []).append(mutant)
    rounds = max(map(len, by_file.values()))
    ordered = [each[n] for n in range(rounds) for each in by_file.values() if n < len(each)]
    return ordered[:count]


def _of_file(file: Path, name: str) -> Iterator[Generated]:
    content = file.read_text()
    # As long as the file, so that places are the same.
    text = LEFT_ALONE.sub(lambda found: re.sub(r"[^\n]", "\0", found[0]), content)
    found = {*_words(text), *_conditions(text), *_branches(text)}
    for start, end, wrong in sorted(found):
        begin = content.rfind("\n", 0, start) + 1
        stop = (
            (content.find("\n", end) + 1 or len(content))
            if content[end - 1] != "\n"
            else end
        )
        lines = content[begin:start] + wrong + content[end:stop]
        yield Generated(
            *(name, content.count("\n", 0, start) + 1, content[begin:stop], lines),
            content[:begin] + lines + content[stop:],
        )


Change = tuple[int, int, str]


def _words(text: str) -> Iterator[Change]:
    for pattern, wrong in WORDS.items():
        for found in re.finditer(pattern, text):
            yield (*found.span(), wrong)


def _conditions(text: str) -> Iterator[Change]:
    for found in CONDITION_LESS.finditer(text):
        line = found[0]
        if all(line.count(a) == line.count(b) for a, b in (("(", ")"), ("{", "}"))):
            yield (*found.span(), "")
    for found in VALUE.finditer(text):
        if _is_one_value(found[1]):
            yield (*found.span(1), "null")
    for found in JINJA_IF.finditer(text):
        if "\0" not in found[2]:
            yield (*found.span(2), f"not ({found[2]})")


def _is_one_value(text: str) -> bool:
    count = 1
    while count:
        text, count = re.subn(r"\([^()]*\)", "", text)
    return not re.search(r"[(),]|\bnull\b|\bjoin\b|\blateral\b", text)


def _branches(text: str) -> Iterator[Change]:
    """The condition of each branch of a ``case`` is false."""
    open_whens: list[list[int]] = []
    for found in BRANCH.finditer(text):
        if found[0] == "case":
            open_whens.append([])
        elif found[0] == "when" and open_whens:
            open_whens[-1].append(found.end())
        elif found[0] == "then" and open_whens and open_whens[-1]:
            yield (open_whens[-1].pop(), found.start(), " false ")
        elif found[0] == "end" and open_whens:
            open_whens.pop()
