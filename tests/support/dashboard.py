"""The dashboard's page in tests: read without a browser, and rows to fill it with."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

from serving.dashboard.content import Content, Freshness
from tests.support.records import Row

# Names are input; each of these would do harm somewhere if it were taken for markup.
COMPANY = "</script><script>alert(1)</script>"
SHIPPER = "<img src=x onerror=alert(2)>"
CATEGORY = '" onmouseover="alert(3)'
COUNTRY = "<b>Bold &amp; co</b>"
RENDERED = datetime(2026, 1, 1, tzinfo=UTC)
EMPTY = Content([], [], [], [], [], {}, {}, {})
VOID_ELEMENTS = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Element:
    """An element of a page, with its elements and texts."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What it says to a reader."""
        return " ".join(self.raw_text.split())

    @property
    def raw_text(self) -> str:
        return "".join(
            child if isinstance(child, str) else child.raw_text for child in self.children
        )

    def all(self, tag: str) -> list[Element]:
        """The elements of a tag inside it, in the page's order."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                found += [child] if child.tag == tag else []
                found += child.all(tag)
        return found

    def everything(self) -> list[Element]:
        """All elements inside it."""
        elements = [child for child in self.children if isinstance(child, Element)]
        return [found for one in elements for found in (one, *one.everything())]

    def texts(self, tag: str) -> list[str]:
        """What the elements of a tag say."""
        return [element.text for element in self.all(tag)]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("page", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID_ELEMENTS:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


@dataclass
class ParsedPage:
    """A page as it is written, before any script runs."""

    root: Element

    @classmethod
    def read(cls, text: str) -> ParsedPage:
        """Parse a page, in which every element must be closed."""
        reader = _Reader()
        reader.feed(text)
        reader.close()
        assert reader._open == [reader.root]
        return cls(reader.root)

    def find(self, name: str) -> Element | None:
        """The element with an id."""
        return next(
            (one for one in self.root.everything() if one.attributes.get("id") == name),
            None,
        )

    def __getitem__(self, name: str) -> Element:
        element = self.find(name)
        assert element is not None, name
        return element

    def table(self, name: str) -> list[list[str]]:
        """The values in a table's cells, with all their digits."""
        [body] = self[f"table-{name}"].all("tbody")
        return [
            [cell.attributes["value"] for cell in row.all("data")] for row in body.all("tr")
        ]

    def of_class(self, name: str) -> list[Element]:
        """The elements of a class."""
        return [
            one
            for one in self.root.everything()
            if name in one.attributes.get("class", "").split()
        ]

    @property
    def data(self) -> dict[str, list[Row]]:
        """What the charts are drawn from."""
        content: dict[str, list[Row]] = json.loads(self["data"].raw_text)
        return content


def customer(rank: int, revenue: str | None, **columns: Any) -> Row:
    """A row of gold.revenue_by_customer with one order."""
    amount = None if revenue is None else Decimal(revenue)
    return {
        "customer_id": f"C{rank}",
        "company_name": f"Company {rank}",
        "country": "Germany",
        "count_orders": 1,
        "count_items": 1,
        "total_quantity": Decimal("1.00"),
        "revenue": amount,
        "revenue_share": amount and amount / 100,
        "revenue_rank": rank,
        "avg_order_quantity": Decimal("1.0000"),
        "avg_order_revenue": amount,
        **columns,
    }


def shipment(shipper: int, **columns: Any) -> Row:
    """A row of gold.late_shipments: one of two was late."""
    return {
        "ship_country": "Germany",
        "shipper_id": shipper,
        "shipper_name": f"Shipper {shipper}",
        "count_shipped": 2,
        "count_late": 1,
        "late_share": Decimal("0.5"),
        "avg_days_late": Decimal("3.0"),
        **columns,
    }


def full_content() -> Content:
    """As many rows as Northwind has, markup in a name of each kind, and every notice."""
    customers = [
        customer(
            rank,
            f"{(92 - rank) ** 2}.25",
            revenue_share=Decimal((92 - rank) ** 2).scaleb(-6),
            count_orders=1 + (91 - rank) // 3,
            avg_order_quantity=Decimal(20 + rank * 7 % 50),
        )
        for rank in range(1, 92)
    ]
    customers[0] |= {"company_name": COMPANY, "country": COUNTRY}
    months = [
        {
            "order_month": date(1996 + month // 12, month % 12 + 1, 1),
            "count_orders": month,
            "count_items": 3 * month,
            "revenue": Decimal(f"{1000 + month * month}.50"),
        }
        for month in range(6, 29)
    ]
    months.insert(0, {**months[0], "order_month": date(1900, 1, 1)})
    names = [CATEGORY, "Beverages", "Condiments", "Dairy Products", "Seafood"]
    categories = [
        {
            "category_name": name,
            "count_products": 10 + rank,
            "total_quantity": Decimal(1000 * rank),
            "revenue": Decimal(f"{9 - rank}000.75"),
            "revenue_share": Decimal(9 - rank).scaleb(-2),
            "revenue_rank": rank,
        }
        for rank, name in enumerate(names, 1)
    ]
    countries = [COUNTRY, *(f"Country {number:02}" for number in range(1, 21))]
    shipments = [
        shipment(
            number,
            ship_country=country,
            shipper_name=SHIPPER if number == 3 else f"Shipper {number}",
            count_shipped=4,
            count_late=(number + len(country)) % 4,
        )
        for country, number in product(countries, (1, 2, 3))
    ]
    # The bar that the pointer is moved to.
    shipments[2]["count_late"] = 4
    return Content(
        customers,
        months,
        categories,
        shipments,
        freshness=[Freshness("silver.orders", RENDERED, RENDERED, RENDERED)],
        outdated={"gold.revenue_by_month": ["silver.order_items", "silver.orders"]},
        rejected={"not JSON": 2, "a key that is no object": 1},
        untyped={"order_date is no date: 'soon'": 1},
    )


def newest_commit(root: Path, name: str) -> Path:
    """The newest commit of a table: its name is when it began."""
    layer, _, folder = name.partition(".")
    timeline = root / "warehouse" / f"{layer}.db" / folder / ".hoodie"
    return max(timeline.glob("*commit"), key=lambda file: file.name)


def began(commit: Path) -> datetime:
    """When a commit began."""
    return datetime.strptime(f"{commit.stem}000+0000", "%Y%m%d%H%M%S%f%z")


def commit_later(root: Path, name: str, hours: int) -> None:
    """Add a commit without rows after the table's newest."""
    commit = newest_commit(root, name)
    instant = f"{began(commit) + timedelta(hours=hours):%Y%m%d%H%M%S%f}"[:17]
    content = json.loads(commit.read_text())
    content |= {"partitionToWriteStats": {}, "operationType": "UPSERT"}
    content.pop("partitionToReplaceFileIds", None)
    commit.with_name(f"{instant}.commit").write_text(json.dumps(content))
