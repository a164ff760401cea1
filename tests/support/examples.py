"""Examples that Hypothesis draws from a seed: the same for the same seed."""

from typing import TypeVar
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def examples(strategy: SearchStrategy[T], count: int, seed_number: int) -> list[T]:
    """Some examples, of which some may be equal."""
    found: list[T] = []

    @seed(seed_number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    # It would draw numbers out of the modules that happen to be loaded, whatever the seed.
    with patch.object(HypothesisProvider, "_maybe_draw_constant", return_value=None):
        collect()
    return found
