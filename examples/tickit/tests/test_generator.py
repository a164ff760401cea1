"""TICKIT's generator: the shape that it promises, and the same rows each time."""

from datetime import datetime, time
from decimal import Decimal

from examples.tickit.source.generator import COMMISSION, Tickit

SMALL = Tickit(0.01)


def test_as_many_rows_as_the_documents_say() -> None:
    whole = Tickit()
    assert sum(1 for _ in whole.listings()) == 192_497
    assert sum(1 for _ in whole.sales()) == 171_100


def test_the_same_seed_gives_the_same_rows() -> None:
    assert [*Tickit(0.01).sales()] == [*SMALL.sales()]
    assert [*Tickit(0.01, seed=1).sales()] != [*SMALL.sales()]


def test_sales_are_of_their_listing() -> None:
    """And of a user that there is; keys between two databases are not checked there."""
    listings = {row[0]: row for row in SMALL.listings()}
    dates, users = {row[0]: row[1] for row in SMALL.dates()}, {u[0] for u in SMALL.users()}
    assert {row[2] for row in listings.values()} <= {row[0] for row in SMALL.events()}
    left = {key: row[4] for key, row in listings.items()}
    for _, listid, seller, buyer, event, day, number, paid, commission, at in SMALL.sales():
        listing = listings[listid]
        assert (seller, event) == listing[1:3]
        assert {seller, buyer} <= users and buyer != seller
        assert paid == number * listing[5]
        assert commission == (paid * COMMISSION).quantize(Decimal("0.01"))
        assert day >= listing[3]
        assert at >= datetime.combine(dates[day], time())
        assert number > 0
        left[listid] -= number
    assert min(left.values()) == 0
