"use strict";

// The content security policy lets no text become a program: Vega interprets expressions.
const OPTIONS = {
    actions: false,
    ast: true,
    defaultStyle: false,
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
};
const charts = JSON.parse(document.getElementById("charts").textContent);

for (const [name, chart] of Object.entries(charts)) {
    vegaEmbed(`#chart-${name}`, chart, OPTIONS);
}

/** Lay the page out for paper, or for the screen again; charts follow their places. */
function layOut(isPrint) {
    document.documentElement.classList.toggle("printing", isPrint);
    dispatchEvent(new Event("resize"));
}

addEventListener("beforeprint", () => layOut(true));
addEventListener("afterprint", () => layOut(false));
