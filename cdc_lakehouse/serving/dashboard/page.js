"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
// Dollar signs in a name are no formula.
const CONFIG = { displayModeBar: false, typesetMath: false };
// One fewer than the colours of a series, so that the two together repeat late.
const PATTERNS = ["", "/", ".", "x", "-"];
const NARROW = 560;
const FONT_SIZE = 13;

const money = formatter({ minimumFractionDigits: 2, maximumFractionDigits: 2 });
const number = formatter({ minimumFractionDigits: 1, maximumFractionDigits: 1 });
const share = formatter({
    style: "percent",
    minimumFractionDigits: 1,
    maximumFractionDigits: 1,
});

/** Numbers as the tables write them. */
function formatter(options) {
    const format = new Intl.NumberFormat("en", { ...options, roundingMode: "halfEven" });
    return (value) => (value === null ? "-" : format.format(value));
}

/** A name as text: the chart library reads some markup, and names are input. */
function plain(name) {
    return name.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** A colour of the style sheet, which knows the scheme. */
function colour(name) {
    return getComputedStyle(root).getPropertyValue(name).trim();
}

/** A colour between two, by a part from 0 to 1. */
function between(from, to, part) {
    const channels = [1, 3, 5].map((start) => {
        const [a, b] = [from, to].map((hex) => parseInt(hex.slice(start, start + 2), 16));
        return Math.round(a + (b - a) * part);
    });
    return `#${channels.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever stands out more from a colour (as WCAG measures it). */
function readable(hex) {
    const [red, green, blue] = [1, 3, 5].map((start) => {
        const value = parseInt(hex.slice(start, start + 2), 16) / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    return luminance > 0.179 ? "#000000" : "#ffffff";
}

function layout(width, height, more) {
    return {
        width,
        height,
        paper_bgcolor: "rgba(0, 0, 0, 0)",
        plot_bgcolor: "rgba(0, 0, 0, 0)",
        font: {
            family: getComputedStyle(document.body).fontFamily,
            size: FONT_SIZE,
            color: colour("--ink"),
        },
        hoverlabel: { align: "left" },
        dragmode: false,
        showlegend: false,
        ...more,
    };
}

function axis(title, more) {
    return {
        title: { text: title, font: { color: colour("--muted") }, standoff: 12 },
        fixedrange: true,
        gridcolor: colour("--line"),
        zerolinecolor: colour("--muted"),
        tickformat: ",",
        ...more,
    };
}

function isRest(row) {
    return row.revenue_rank === null;
}

/** The ring of shares, in the colours of the list beside it. */
function drawShares(div) {
    const rows = data.shares;
    const ends = [colour("--first"), colour("--last")];
    const steps = rows.filter((row) => !isRest(row)).length - 1;
    const colours = rows.map((row, index) =>
        isRest(row) ? colour("--rest") : between(...ends, steps > 0 ? index / steps : 0),
    );
    document.querySelectorAll("#bars-shares li").forEach((item, index) => {
        item.style.setProperty("--slice", colours[index]);
    });
    // A ring has no place for a share below nothing; the list has.
    const shares = rows.map((row) => row.revenue_share);
    div.hidden = shares.some((value) => value === null || value < 0);
    if (div.hidden) {
        return;
    }
    const size = Math.min(div.clientWidth, 420);
    const trace = {
        type: "pie",
        values: shares,
        // The library adds up slices of one label, and companies may share a name.
        labels: rows.map((row, index) => String(index)),
        text: rows.map((row) => label(row)),
        textinfo: "text",
        textposition: "inside",
        insidetextorientation: "horizontal",
        insidetextfont: { color: colours.map(readable) },
        hovertext: rows.map(
            (row) =>
                `${plain(row.name)}<br>${money(row.revenue)}` +
                `<br>${share(row.revenue_share)}`,
        ),
        hoverinfo: "text",
        hole: 0.55,
        sort: false,
        direction: "clockwise",
        marker: { colors: colours, line: { color: colour("--card"), width: 1.5 } },
    };
    const middle = {
        text: `<b>${money(rows.reduce((sum, row) => sum + row.revenue, 0))}</b><br>revenue`,
        showarrow: false,
        font: { size: size < 320 ? 15 : 18 },
    };
    const margin = { l: 4, r: 4, t: 4, b: 4 };
    Plotly.react(
        div,
        [trace],
        layout(div.clientWidth, size, { annotations: [middle], margin }),
        CONFIG,
    );

    function label(row) {
        if (isRest(row)) {
            return `${plain(row.name).replace(" ", "<br>")}<br>${share(row.revenue_share)}`;
        }
        return row.revenue_share < 0.012 ? "" : String(row.revenue_rank);
    }
}

/** Where a range ends, so that bubbles at its ends are whole. */
function range(values) {
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    const room = (high - low || 1) * 0.1;
    return [low < 0 ? low - room : -room / 2, high + room];
}

/** Average quantity against average revenue; names where they do not meet. */
function drawAverages(div) {
    const rows = data.customers;
    const width = div.clientWidth;
    const height = width < NARROW ? 380 : 460;
    const margin = { l: 76, r: 12, t: 8, b: 52 };
    const ranges = [
        range(rows.map((row) => row.avg_order_quantity)),
        range(rows.map((row) => row.avg_order_revenue)),
    ];
    const most = Math.max(...rows.map((row) => row.count_orders));
    const sizes = rows.map((row) => {
        return Math.max(6, (width < NARROW ? 26 : 40) * Math.sqrt(row.count_orders / most));
    });
    const plot = [width - margin.l - margin.r, height - margin.t - margin.b];
    const places = rows.map((row, index) => ({
        name: row.name,
        x: along(row.avg_order_quantity, ranges[0]) * plot[0],
        y: (1 - along(row.avg_order_revenue, ranges[1])) * plot[1],
        radius: sizes[index] / 2,
    }));
    const font = { size: 11, color: colour("--ink") };
    const bottom = (1 - along(0, ranges[1])) * plot[1];
    const names = placeNames(places, plot, bottom, font.size);
    const trace = {
        type: "scatter",
        mode: "markers+text",
        x: rows.map((row) => row.avg_order_quantity),
        y: rows.map((row) => row.avg_order_revenue),
        text: rows.map((row, index) => (names[index] ? plain(row.name) : "")),
        textposition: rows.map((row, index) => names[index] || "top center"),
        textfont: font,
        hovertext: rows.map(
            (row) =>
                `${plain(row.name)}<br>orders: ${row.count_orders}` +
                `<br>units an order: ${number(row.avg_order_quantity)}` +
                `<br>revenue an order: ${money(row.avg_order_revenue)}`,
        ),
        hoverinfo: "text",
        cliponaxis: false,
        marker: {
            size: sizes,
            color: colour("--accent"),
            opacity: 0.5,
            line: { color: colour("--ink"), width: 1 },
        },
    };
    Plotly.react(
        div,
        [trace],
        layout(width, height, {
            margin,
            xaxis: axis("Average units an order", { range: ranges[0] }),
            yaxis: axis("Average revenue an order", {
                range: ranges[1],
                ticklabelstandoff: 6,
            }),
        }),
        CONFIG,
    );
}

function along(value, [low, high]) {
    return (value - low) / (high - low);
}

/** How wide a text will be, in pixels. */
function widthOf(text, size) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
    return context.measureText(text).width;
}

/** A text cut short, where it is wider than the room for it. */
function fitted(text, room) {
    let end = text.length;
    while (end > 1 && widthOf(text.slice(0, end), FONT_SIZE) > room) {
        end -= 1;
    }
    return end < text.length ? `${text.slice(0, end)}…` : text;
}

/** For each place, where its name stands: off other names, bubbles, and the zero line. */
function placeNames(places, [width, height], bottom, size) {
    const taken = [[0, width, bottom, bottom]];
    return places.map((place, index) => {
        const half = [widthOf(place.name, size) / 2 + 3, size * 0.65];
        const away = [place.radius + half[0], place.radius + half[1]];
        const right = ["middle right", place.x + away[0], place.y];
        const left = ["middle left", place.x - away[0], place.y];
        const candidates = [
            place.x > width / 2 ? left : right,
            ["top center", place.x, place.y - away[1]],
            ["bottom center", place.x, place.y + away[1]],
            place.x > width / 2 ? right : left,
        ];
        for (const [position, x, y] of candidates) {
            const box = [x - half[0], x + half[0], y - half[1], y + half[1]];
            const isInside =
                box[0] >= 0 && box[1] <= width + 10 && box[2] >= 0 && box[3] <= height;
            const isFree =
                taken.every((other) => apart(box, other)) &&
                places.every((other, at) => at === index || apart(box, around(other)));
            if (isInside && isFree) {
                taken.push(box);
                return position;
            }
        }
        return null;
    });
}

function around(place) {
    const reach = place.radius * 0.8;
    return [place.x - reach, place.x + reach, place.y - reach, place.y + reach];
}

function apart(a, b) {
    return a[1] < b[0] || b[1] < a[0] || a[3] < b[2] || b[3] < a[2];
}

function drawMonths(div) {
    drawColumns(div, data.months, "revenue", "Revenue", (row) => [
        money(row.revenue),
        `orders: ${row.count_orders}`,
    ]);
}

function drawWaits(div) {
    drawColumns(div, data.waits, "avg_hours_to_ship", "Hours", (row) => [
        `${number(row.avg_hours_to_ship)} hours`,
        `shipped: ${row.count_shipped}`,
    ]);
}

/** A number of each month; `described` has the lines that show beside the pointer. */
function drawColumns(div, rows, key, title, described) {
    const trace = {
        type: "bar",
        x: rows.map((row) => row.order_month),
        y: rows.map((row) => row[key]),
        hovertext: rows.map((row) => {
            const month = new Date(row.order_month).toLocaleDateString("en", {
                month: "long",
                year: "numeric",
                timeZone: "UTC",
            });
            return [month, ...described(row)].join("<br>");
        }),
        hoverinfo: "text",
        // A column covers its month, be it of 28 days or of 31.
        xperiod: "M1",
        marker: { color: colour("--accent") },
    };
    Plotly.react(
        div,
        [trace],
        layout(div.clientWidth, 340, {
            margin: { l: 80, r: 8, t: 8, b: 40 },
            bargap: 0.2,
            xaxis: axis("", {
                type: "date",
                showgrid: false,
                ticklabelmode: "period",
                tickformat: "%b\n%Y",
            }),
            yaxis: axis(title, { nticks: 7, ticklabelstandoff: 6 }),
        }),
        CONFIG,
    );
}

/** Late shipments by country, the worst first, divided by shipper. */
function drawLate(div) {
    const countries = new Map();
    for (const row of data.shipments) {
        const sums = countries.get(row.ship_country) || { late: 0, shipped: 0 };
        sums.late += row.count_late;
        sums.shipped += row.count_shipped;
        countries.set(row.ship_country, sums);
    }
    const shown = [...countries].filter(([, sums]) => sums.late > 0);
    shown.sort(([, a], [, b]) => b.late - a.late);
    const rowOf = new Map(shown.map(([country], index) => [country, index]));
    const shippers = new Map();
    for (const row of data.shipments.filter((shipment) => shipment.count_late > 0)) {
        shippers.set(row.shipper_id, [...(shippers.get(row.shipper_id) || []), row]);
    }
    const labels = shown.map(([country, sums]) => {
        return `${fitted(country, div.clientWidth / 3)} (${sums.late} of ${sums.shipped})`;
    });
    const longest = Math.max(...labels.map((label) => widthOf(label, FONT_SIZE)));
    const margin = { l: longest + 12, r: 12, t: 44, b: 44 };
    const series = colour("--series").split(" ");
    const traces = [...shippers]
        .sort(([a], [b]) => a - b)
        .map(([, rows], index) => ({
            type: "bar",
            orientation: "h",
            name: plain(rows[0].shipper),
            x: rows.map((row) => row.count_late),
            y: rows.map((row) => rowOf.get(row.ship_country)),
            hovertext: rows.map(
                (row) =>
                    `${plain(row.shipper)}, ${plain(row.ship_country)}` +
                    `<br>${row.count_late} of ${row.count_shipped} late` +
                    `<br>${number(row.avg_days_late)} days on average`,
            ),
            hoverinfo: "text",
            marker: {
                color: series[index % series.length],
                line: { color: colour("--card"), width: 1 },
                pattern: {
                    shape: PATTERNS[index % PATTERNS.length],
                    fillmode: "overlay",
                    fgcolor: colour("--card"),
                    fgopacity: 0.6,
                    size: 6,
                    solidity: 0.25,
                },
            },
        }));
    Plotly.react(
        div,
        traces,
        layout(div.clientWidth, 110 + 24 * shown.length, {
            barmode: "stack",
            bargap: 0.3,
            showlegend: true,
            legend: {
                orientation: "h",
                x: -margin.l / (div.clientWidth - margin.l - margin.r),
                y: 1,
                yanchor: "bottom",
                traceorder: "normal",
                itemclick: false,
                itemdoubleclick: false,
            },
            margin,
            xaxis: axis("Late shipments", { rangemode: "tozero", tickformat: ",d" }),
            yaxis: axis("", {
                autorange: "reversed",
                showgrid: false,
                zeroline: false,
                ticklabelstandoff: 6,
                tickvals: shown.map((country, index) => index),
                ticktext: labels.map(plain),
            }),
        }),
        CONFIG,
    );
}

const CHARTS = {
    "chart-shares": drawShares,
    "chart-averages": drawAverages,
    "chart-months": drawMonths,
    "chart-late": drawLate,
    "chart-waits": drawWaits,
};

/** Draw every chart that the page has a place for, as wide as the place is now. */
function draw() {
    for (const [id, drawChart] of Object.entries(CHARTS)) {
        const div = document.getElementById(id);
        if (div !== null) {
            div.hidden = false;
            drawChart(div);
        }
    }
}

draw();
let drawnWidth = root.clientWidth;
addEventListener("resize", () => {
    // A phone's browser resizes in height with every scroll.
    if (root.clientWidth !== drawnWidth) {
        drawnWidth = root.clientWidth;
        requestAnimationFrame(draw);
    }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("beforeprint", () => {
    root.classList.add("printing");
    draw();
});
addEventListener("afterprint", () => {
    root.classList.remove("printing");
    draw();
});
