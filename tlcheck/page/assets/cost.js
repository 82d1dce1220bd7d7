// The cost of kernels beside their source. A line that costs opens its accesses.

const HEAD = ["line", "", "share", "source", "limit"];

function percent(share) {
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

function sitesOf(row) {
  const head = make("tr", {}, ["access", "share", "counts", "limit"].map((title) => make("th", {}, title)));
  const rows = row.sites.map((site) => make("tr", {},
    make("td", {}, site.access), make("td", {}, percent(site.share)), make("td", {}, site.counts), make("td", {}, site.limit)));
  const advice = [...new Set(row.sites.map((site) => site.advice))].filter(Boolean);
  openSheet(make("h2", {}, row.number ? `line ${row.number}` : "no line known"), make("pre", {}, row.text),
    make("table", {}, head, rows), ...advice.map((text) => make("p", { class: "advice" }, text)));
}

function lineOf(row) {
  const limits = [...new Set(row.sites.map((site) => site.limit))].filter(Boolean);
  const costs = row.sites.length > 0;
  return make("tr", { class: limits.length ? "limited" : costs ? "costs" : "free" },
    make("th", { scope: "row" }, row.number ? String(row.number) : ""),
    make("td", { class: "bar" }, costs ? make("meter", { min: 0, max: 1, value: row.share, title: percent(row.share) }) : ""),
    make("td", { class: "share" }, costs ? make("button", { type: "button", onclick: () => sitesOf(row) }, percent(row.share)) : ""),
    make("td", { class: "code" }, make("code", {}, row.text || " ")),
    make("td", { class: "limit" }, limits.join(", ")));
}

function kernelOf(kernel) {
  return make("section", {}, make("h2", {}, kernel.title), kernel.summary.map((text) => make("p", {}, text)),
    make("table", {}, make("thead", {}, make("tr", {}, HEAD.map((title) => make("th", { scope: "col" }, title)))), make("tbody", {}, kernel.rows.map(lineOf))));
}

run(async () => {
  startFrame([["t", "light or dark"], ["?", "these keys"]]);
  const data = await embedded();
  byId("main").replaceChildren(...data.kernels.map(kernelOf));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "t") flipTheme();
    if (event.key === "?") byId("help").click();
  });
});
