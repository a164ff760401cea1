"""The slowest modules of a run: ``python -m tests.durations reports/test.xml``.

It prints the rows of the table in ``docs/testing.md``.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree

SHOWN = 12


def main(report: Path) -> None:
    """Print the modules that took longest, each with its number of tests and seconds."""
    seconds: dict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        module = case.get("classname", "").removeprefix("tests.").replace(".", "/")
        seconds[module] += float(case.get("time", 0))
        counts[module] += 1
    for module, total in sorted(seconds.items(), key=lambda item: -item[1])[:SHOWN]:
        print(f"| `{module}.py` | {counts[module]} | {total:.0f} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
