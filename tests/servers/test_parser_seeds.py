"""Records of fresh seeds for the ingest's parser: many more than test_records.py has."""

import os
import random

from tests.support.bad_records import generated, problems, texts
from tests.support.lake import Lake
from tests.support.parser import KafkaRecord, classify, decode

SEED = int(os.environ.get("CDC_TEST_SEED") or random.SystemRandom().randrange(2**32))
CASES = 2_000  # of each kind


def test_every_record_of_a_fresh_seed_has_one_place(lake: Lake) -> None:
    """A failure prints the seed, and CDC_TEST_SEED sets it."""
    print(f"CDC_TEST_SEED={SEED}")
    cases = generated(CASES, SEED)
    assert problems(cases, classify(lake, texts(cases))) == ""
    values = decode(lake, [KafkaRecord(each.text) for each in cases], None)
    assert problems(cases, values, is_kafka=True) == ""
