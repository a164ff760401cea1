"""The page's charts, as Vega-Lite specifications with their rows.

Colours are the style sheet's variables, so that a chart follows the scheme and the print
without being drawn again. What stands beside the pointer is text with the tables' digits.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from cdc_lakehouse.serving.dashboard.figures import shown, total
from cdc_lakehouse.serving.gold import Row

Chart = dict[str, Any]

# Of the shippers with a colour of their own.
COLOURS = 6
OTHERS = "Other shippers"
# How gold says that a customer buys, whose bubble has a colour of its own.
RARE = "rarely and well"
FONT = "system-ui, Segoe UI, Roboto, Helvetica Neue, Noto Sans, sans-serif"
CONFIG = {
    "aria": False,  # the page describes each chart
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "domainColor": "var(--muted)",
        "gridColor": "var(--line)",
        "labelColor": "var(--ink)",
        "labelFontSize": 12,
        "labelPadding": 6,
        "labelSeparation": 8,
        "ticks": False,
        "titleColor": "var(--muted)",
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    },
    "legend": {"labelColor": "var(--ink)", "labelFontSize": 12, "symbolType": "square"},
}


def shares_chart(rows: list[Row]) -> Chart | None:
    """A ring in the colours of the list beside it; none if a share is below nothing."""
    shares = [row["revenue_share"] for row in rows]
    if not shares or any(share is None or share < 0 for share in shares):
        return None
    radius = "min(width, height) / 2"
    values = [
        {
            "at": at,
            "share": float(row["revenue_share"]),
            "colour": row["colour"],
            "label": _slice_label(row),
            "Customer": row["name"],
            "Revenue": shown(row["revenue"], "money"),
            "Share": shown(row["revenue_share"], "share"),
        }
        for at, row in enumerate(rows)
    ]
    slices = {
        "mark": {
            "type": "arc",
            "innerRadius": {"expr": f"0.55 * {radius}"},
            "outerRadius": {"expr": radius},
            "stroke": "var(--card)",
            "strokeWidth": 1.5,
        },
        "encoding": {
            "color": {"field": "colour", "type": "nominal", "scale": None},
            "tooltip": _tooltip("Customer", "Revenue", "Share"),
        },
    }
    labels = {
        "mark": {
            **_text(11, "var(--card)"),
            "radius": {"expr": f"0.88 * {radius}"},
        },
        "encoding": {"text": {"field": "label"}},
    }
    middle = [
        {
            "data": {"values": [{}]},
            "mark": {
                **_text({"expr": f"min(18, 0.1 * {radius})"}, "var(--ink)"),
                **{"text": text, "dy": dy, "fontWeight": weight},
            },
        }
        for text, dy, weight in (
            (shown(total(rows, "revenue"), "money"), -9, "bold"),
            ("revenue", 13, "normal"),
        )
    ]
    theta = {"field": "share", "type": "quantitative", "stack": True}
    return _chart(
        layer=[
            {
                "data": {"values": values},
                "encoding": {
                    "theta": theta,
                    "order": {"field": "at", "type": "quantitative"},
                },
                "layer": [slices, labels],
            },
            *middle,
        ],
        height="container",
    )


def _slice_label(row: Row) -> str | list[str]:
    share = row["revenue_share"]
    if row["revenue_rank"] is None:
        lines = [*str(row["name"]).split(" ", 1), shown(share, "share")]
        return lines if share >= 0.06 else ""
    return str(row["revenue_rank"]) if share >= 0.012 else ""


def averages_chart(rows: list[Row], per: str) -> Chart | None:
    """A bubble for each customer, and names where they do not meet.

    Args:
        rows: of ``gold.revenue_by_customer``.
        per: what the averages are of, ``order`` or ``line``.
    """
    if not any(row["revenue"] for row in rows):
        return None
    prefix = {"order": "avg_order", "line": "avg_item"}[per]
    quantity, revenue = f"{prefix}_quantity", f"{prefix}_revenue"
    units, money = f"Units per {per}", f"Revenue per {per}"
    values = [
        {
            "orders": row["count_orders"],
            "units": _number(row[quantity]),
            "revenue": _number(row[revenue]),
            "colour": "var(--focus)" if row["buys"] == RARE else "var(--accent)",
            "Customer": row["name"],
            "Orders": shown(row["count_orders"], "count"),
            units: shown(row[quantity], "number"),
            money: shown(row[revenue], "money"),
        }
        for row in rows
    ]
    padded = {"nice": False, "padding": 20}
    # Vega-Lite has no word for Vega's placing of labels.
    names = {
        "type": "text",
        "from": {"data": "marks"},
        "interactive": False,
        "encode": {
            "enter": {
                "text": {"field": "datum.Customer"},
                "fill": {"value": "var(--ink)"},
                "font": {"value": FONT},
                "fontSize": {"value": 11},
            }
        },
        "transform": [
            {
                "type": "label",
                # A window that is resized may have no width for a moment.
                "size": {"signal": "[max(width, 1), height]"},
                "anchor": [
                    *("right", "left", "top", "bottom"),
                    *("top-left", "bottom-left", "top-right", "bottom-right"),
                ],
                "offset": [3],
                "padding": 12,
            }
        ],
    }
    return _chart(
        data={"values": values},
        mark={
            "type": "circle",
            "opacity": 0.5,
            "stroke": "var(--ink)",
            "strokeWidth": 1,
        },
        encoding={
            "x": _amount("units", f"Average units per {per}") | {"scale": padded},
            "y": _amount("revenue", f"Average revenue per {per}") | {"scale": padded},
            "size": {
                "field": "orders",
                "type": "quantitative",
                "scale": {
                    "rangeMin": 30,
                    "rangeMax": {"expr": "width < 400 ? 550 : 1250"},
                },
                "legend": None,
            },
            "color": {"field": "colour", "type": "nominal", "scale": None},
            "tooltip": _tooltip("Customer", "Orders", units, money),
        },
        height=440,
        usermeta={
            "embedOptions": {"patch": [{"op": "add", "path": "/marks/-", "value": names}]}
        },
    )


def months_chart(rows: list[Row]) -> Chart | None:
    """The revenue of each month."""
    return _columns(rows, ("Revenue", "revenue", "money"), ("Orders", "count_orders"))


def waits_chart(rows: list[Row]) -> Chart | None:
    """How long the orders of each month waited to be shipped."""
    return _columns(
        rows, ("Hours", "avg_hours_to_ship", "number"), ("Shipped", "count_shipped")
    )


def _columns(
    rows: list[Row], drawn: tuple[str, str, str], told: tuple[str, str]
) -> Chart | None:
    """A number of each month, and one more that stands beside the pointer."""
    (title, column, kind), (other, other_column) = drawn, told
    if not any(row[column] for row in rows):
        return None
    values = [
        {
            "month": row["order_month"].isoformat(),
            "value": _number(row[column]),
            "Month": shown(row["order_month"], "month"),
            title: shown(row[column], kind),
            other: shown(row[other_column], "count"),
        }
        for row in rows
    ]
    return _chart(
        data={"values": values},
        mark={"type": "bar", "color": "var(--accent)", "width": {"band": 0.8}},
        encoding={
            "x": {
                "field": "month",
                "type": "temporal",
                "timeUnit": "utcyearmonth",
                "axis": {
                    "title": None,
                    "grid": False,
                    "format": {"year": "%Y", "quarter": "%b", "month": "%b"},
                    "labelAlign": "left",
                    "labelFlush": False,
                    # The month after the last one has no column.
                    "labelExpr": "datum.value < domain('x')[1] ? datum.label : ''",
                },
            },
            "y": _amount("value", title),
            "tooltip": _tooltip("Month", title, other),
        },
        height=300,
    )


def late_chart(rows: list[Row]) -> Chart | None:
    """Late shipments by country, the worst first, divided by shipper."""
    late: Counter[str] = Counter()
    shipped: Counter[str] = Counter()
    by_shipper: Counter[str] = Counter()
    for row in rows:
        late[row["ship_country"]] += row["count_late"]
        shipped[row["ship_country"]] += row["count_shipped"]
        by_shipper[row["shipper"]] += row["count_late"]
    countries = [country for country, count in late.most_common() if count]
    if not countries:
        return None
    shippers = [shipper for shipper, count in by_shipper.most_common() if count]
    named = sorted(shippers[:COLOURS])
    values = [
        {
            "shipper": row["shipper"] if row["shipper"] in named else OTHERS,
            "late": row["count_late"],
            "Shipper": row["shipper"],
            "Country": row["ship_country"],
            "Late": f"{row['count_late']} of {row['count_shipped']}",
            "Days late": shown(row["avg_days_late"], "number"),
        }
        for row in rows
        if row["count_late"]
    ]
    sums = [
        {
            "Country": country,
            "late": late[country],
            "of": f"{late[country]} of {shipped[country]}",
        }
        for country in countries
    ]
    colours = [f"var(--series-{number})" for number in range(1, len(named) + 1)]
    if len(named) < len(shippers):
        named, colours = [*named, OTHERS], [*colours, "var(--rest)"]
    return _chart(
        layer=[
            {
                "data": {"values": values},
                "mark": {"type": "bar", "stroke": "var(--card)", "strokeWidth": 1},
                "encoding": {
                    "color": {
                        "field": "shipper",
                        "type": "nominal",
                        "scale": {"domain": named, "range": colours},
                        "legend": {
                            "title": None,
                            "orient": "top",
                            "columns": {"expr": "max(1, floor(containerSize()[0] / 160))"},
                        },
                    },
                    "tooltip": _tooltip("Shipper", "Country", "Late", "Days late"),
                },
            },
            {
                "data": {"values": sums},
                "mark": {**_text(12, "var(--muted)"), "align": "left", "dx": 6},
                "encoding": {"text": {"field": "of"}},
            },
        ],
        encoding={
            "y": {
                "field": "Country",
                "type": "nominal",
                "sort": None,
                "scale": {"domain": countries},
                "axis": {"title": None, "domain": False, "labelLimit": 120},
            },
            "x": _amount("late", "Late shipments", tickMinStep=1),
        },
        height=24 * len(countries),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _amount(field: str, title: str, **axis: Any) -> Chart:
    zero = {"test": "datum.value === 0", "value": "var(--muted)"}
    axis = {
        "title": title,
        "format": ",~f",
        "domain": False,
        "tickCount": 7,
        "gridColor": {"condition": zero, "value": "var(--line)"},
        **axis,
    }
    return {"field": field, "type": "quantitative", "axis": axis}


def _tooltip(*fields: str) -> list[Chart]:
    return [{"field": field, "type": "nominal"} for field in fields]


def _text(size: int | Chart, colour: str) -> Chart:
    return {"type": "text", "fontSize": size, "color": colour}


def _chart(height: Any, **more: Any) -> Chart:
    return {"width": "container", "height": height, "config": CONFIG, **more}
