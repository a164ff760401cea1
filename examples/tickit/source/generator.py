"""Rows of the shape of Amazon's sample database TICKIT, made by chance from a seed.

The tables, their columns and how many rows each has are those that Amazon documents
(https://docs.aws.amazon.com/redshift/latest/dg/c_sampledb.html); every value is ours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]

SEED = 20_261_123
FIRST_DAY = date(2025, 1, 1)
DAYS = 365
# As many rows as Amazon's, but for categories and days, of which there are always as many.
VENUES, EVENTS, USERS, LISTINGS = 202, 8_798, 49_990, 192_497
# Of a listing's tickets, how many sales there are.
SALES_OF_A_LISTING, WEIGHTS_OF_SALES = (0, 1, 2, 3), (40, 36, 18, 6)
COMMISSION = Decimal("0.15")
CENT = Decimal("0.01")

CATEGORIES = (
    ("Sports", "Baseball", "Professional baseball"),
    ("Sports", "Hockey", "Professional ice hockey"),
    ("Sports", "Football", "Professional football"),
    ("Sports", "Basketball", "Professional basketball"),
    ("Sports", "Soccer", "Professional soccer"),
    ("Shows", "Musicals", "Musical theatre"),
    ("Shows", "Plays", "All theatre without music"),
    ("Shows", "Opera", "All opera and light opera"),
    ("Concerts", "Pop", "All rock and pop music"),
    ("Concerts", "Jazz", "All jazz singers and bands"),
    ("Concerts", "Classical", "All orchestras and choirs"),
)
CITIES = (
    ("Albany", "NY"),
    ("Austin", "TX"),
    ("Boise", "ID"),
    ("Boston", "MA"),
    ("Cañon City", "CO"),
    ("Chicago", "IL"),
    ("Denver", "CO"),
    ("Detroit", "MI"),
    ("El Paso", "TX"),
    ("Houston", "TX"),
    ("La Cañada", "CA"),
    ("Miami", "FL"),
    ("New York", "NY"),
    ("Portland", "ME"),
    ("Portland", "OR"),
    ("San José", "CA"),
    ("Seattle", "WA"),
    ("St. Paul", "MN"),
    ("Tampa", "FL"),
    ("Washington", "DC"),
)
HALLS = ("Arena", "Field", "Garden", "Hall", "Opera House", "Park", "Stadium", "Theatre")
ADJECTIVES = ("Blue", "Electric", "Golden", "Grand", "Little", "Northern", "Quiet", "Red")
NOUNS = ("Bears", "Circus", "Harbor", "Lanterns", "Orchestra", "Rivers", "Story", "Wolves")
FIRST_NAMES = ("Ada", "Björn", "Chloé", "Dan", "Eve", "Farid", "Grace", "Ian", "Mei", "Zoë")
LAST_NAMES = ("Adams", "Brown", "Díaz", "Kim", "Müller", "Ng", "O'Neil", "Okoye", "Smith")
# New Year, Independence Day, Veterans Day, Christmas.
HOLIDAYS = {(1, 1), (7, 4), (11, 11), (12, 25)}


@dataclass(frozen=True)
class Tickit:
    """The seven tables; the same scale and seed give the same rows.

    Args:
        scale: 1 for as many rows as Amazon's: 192,497 listings, and 171,100 sales.
        seed: of all that is left to chance.
    """

    scale: float = 1
    seed: int = SEED

    def categories(self) -> Iterator[Row]:
        """The rows of ``ems.category``."""
        for catid, category in enumerate(CATEGORIES, 1):
            yield catid, *category

    def venues(self) -> Iterator[Row]:
        """The rows of ``ems.venue``; one in four does not say its seats."""
        draw = self._chance("venue")
        for venueid in range(1, self._count(VENUES) + 1):
            city, state = draw.choice(CITIES)
            name = f"{draw.choice(ADJECTIVES)} {draw.choice(HALLS)} {venueid}"
            seats = draw.choice((None, 2_500, 18_000, draw.randint(1_000, 90_000)))
            yield venueid, name, city, state, seats

    def events(self) -> Iterator[Row]:
        """The rows of ``ems.event``, from the second month on."""
        draw = self._chance("event")
        for eventid in range(1, self._count(EVENTS) + 1):
            dateid = draw.randint(32, DAYS)
            yield (
                eventid,
                draw.randint(1, self._count(VENUES)),
                draw.randint(1, len(CATEGORIES)),
                dateid,
                f"{draw.choice(ADJECTIVES)} {draw.choice(NOUNS)}",
                _moment(dateid, draw.choice((14, 15, 19, 20)) * 3600),
            )

    def dates(self) -> Iterator[Row]:
        """The rows of ``ecomm.date``: the days of one year."""
        for dateid in range(1, DAYS + 1):
            day = _day(dateid)
            yield (
                dateid,
                day,
                f"{day:%a}"[:2].upper(),
                int(f"{day:%W}") + 1,
                f"{day:%b}".upper(),
                str((day.month + 2) // 3),
                day.year,
                (day.month, day.day) in HOLIDAYS,
            )

    def listings(self) -> Iterator[Row]:
        """The rows of ``ecomm.listing``, each before its event."""
        draw = self._chance("listing")
        events = {row[0]: row[3] for row in self.events()}
        for listid in range(1, self._count(LISTINGS) + 1):
            eventid = draw.randint(1, len(events))
            dateid = draw.randint(max(1, events[eventid] - 60), events[eventid] - 1)
            number, price = draw.randint(1, 30), Decimal(draw.randint(20, 2_500))
            yield (
                listid,
                draw.randint(1, self._count(USERS)),
                eventid,
                dateid,
                number,
                price,
                number * price,
                _moment(dateid, draw.randrange(86_400)),
            )

    def sales(self) -> Iterator[Row]:
        """The rows of ``ecomm.sale``: of no listing more tickets than it has."""
        draw = self._chance("sale")
        salesid = 0
        for listid, sellerid, eventid, listed, number, price, _, _ in self.listings():
            left = number
            [sales] = draw.choices(SALES_OF_A_LISTING, WEIGHTS_OF_SALES)
            for _ in range(min(sales, number)):
                salesid += 1
                quantity = draw.randint(1, max(1, left // 2))
                left -= quantity
                # Anybody but the seller.
                buyerid = draw.randint(1, self._count(USERS) - 1)
                dateid = draw.randint(listed, min(listed + 30, DAYS))
                yield (
                    salesid,
                    listid,
                    sellerid,
                    buyerid + (buyerid >= sellerid),
                    eventid,
                    dateid,
                    quantity,
                    quantity * price,
                    (quantity * price * COMMISSION).quantize(CENT),
                    _moment(dateid, draw.randrange(86_400)),
                )
                if not left:
                    break

    def users(self) -> Iterator[Row]:
        """The rows of ``crm.user``; each was asked some of what it likes."""
        draw = self._chance("user")
        for userid in range(1, self._count(USERS) + 1):
            first, last = draw.choice(FIRST_NAMES), draw.choice(LAST_NAMES)
            likes = (draw.choice((None, None, True, False)) for _ in range(10))
            yield (
                userid,
                f"U{userid:07d}",
                first,
                last,
                *draw.choice(CITIES),
                f"user{userid}@example.com",
                f"(555) {userid // 10_000:03d}-{userid % 10_000:04d}",
                *likes,
            )

    def _count(self, rows: int) -> int:
        """How many of a table's rows there are at this scale; never fewer than two."""
        return max(2, round(rows * self.scale))

    def _chance(self, table: str) -> random.Random:
        """What a table's rows are drawn by, whichever others are drawn."""
        return random.Random(f"{self.seed} {table}")


def _day(dateid: int) -> date:
    return FIRST_DAY + timedelta(days=dateid - 1)


def _moment(dateid: int, second: int) -> datetime:
    return datetime.combine(_day(dateid), time()) + timedelta(seconds=second)
