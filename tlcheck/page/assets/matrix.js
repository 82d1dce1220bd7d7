// A table of kernels and toolchains: searched, sorted by any column, and a cell that is not fine opens what was found.

const KEYS = [["/", "search"], ["t", "light or dark"], ["Esc", "leave the search, close what is open"], ["?", "these keys"]];
const TONES = { fine: "good", wrong: "bad", hazard: "bad", broken: "bad", undecided: "warn", absent: "quiet" };
const WORST_FIRST = ["wrong", "hazard", "broken", "undecided", "fine", "absent"];
let table = null;
let query = "";
let sorting = { column: -1, back: false }; // -1: by kernel, as it was asked for

const titleOf = (row) => [row.name ? `${row.file}::${row.name}` : row.file, row.target].filter(Boolean).join(" ");

function field(name, value) {
  return value ? [make("dt", {}, name), make("dd", {}, String(value))] : [];
}

function claimElement(claim) {
  const finding = claim.finding;
  if (!finding) return make("dl", {}, field("undecided", `${claim.kind} ${claim.buffer}`), field("why", claim.reason));
  return make("dl", {},
    field(finding.rule, finding.what), field("origin", finding.origin), field("source", claim.source), field("found", finding.found), field("witness", finding.words));
}

function openCell(row, cell, column) {
  const head = make("h2", {}, `${titleOf(row)}, ${column.title}`);
  const failure = cell.failure ? make("dl", {}, field("failed", cell.failure.phase), field("why", cell.failure.message), field("more", cell.failure.detail)) : null;
  openSheet(head, make("p", { class: `tone-${TONES[cell.state]}` }, `${cell.state}${cell.counts ? `: ${cell.counts}` : ""}`), cell.cost ? make("p", {}, `cost: ${cell.cost}`) : null, failure, ...cell.claims.map(claimElement));
}

function cellElement(row, cell, column) {
  const properties = { type: "button", class: `tone-${TONES[cell.state]}`, onclick: () => openCell(row, cell, column) };
  return make("td", { class: `tone-${TONES[cell.state]}` }, cell.state === "absent" ? "" : make("button", properties, cell.state));
}

function rowElement(row) {
  const history = row.since ? make("div", { class: "quiet" }, row.since) : null;
  return make("tr", {}, make("th", { scope: "row" }, titleOf(row), history), row.cells.map((cell, place) => cellElement(row, cell, table.columns[place])));
}

/** Rows that have the query in their title or in what was found, sorted. */
function shownRows() {
  const rows = table.rows.filter((row) => !query || row.text.includes(query));
  const rank = (row) => (sorting.column < 0 ? row.place : WORST_FIRST.indexOf(row.cells[sorting.column].state));
  rows.sort((one, other) => rank(one) - rank(other) || one.place - other.place);
  return sorting.back ? rows.reverse() : rows;
}

function headElement(title, column) {
  const mine = sorting.column === column;
  const sort = () => { sorting = { column, back: mine && !sorting.back }; refresh(); byId(`sort${column}`).focus(); };
  const direction = mine ? (sorting.back ? "descending" : "ascending") : "none";
  return make("th", { scope: "col", "aria-sort": direction }, make("button", { type: "button", id: `sort${column}`, onclick: sort }, title, mine ? (sorting.back ? " ▾" : " ▴") : ""));
}

function refresh() {
  const rows = shownRows();
  const head = make("tr", {}, headElement("kernel", -1), table.columns.map((column, place) => headElement(column.title, place)));
  const foot = make("tr", {}, make("td", {}, table.notes.join("; ")), table.columns.map((column) => make("td", {}, column.counts)));
  byId("main").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, rows.map(rowElement)), make("tfoot", {}, foot)));
  byId("shown").textContent = `${rows.length} of ${plural(table.rows.length, "kernel")}`;
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("sheet").open) return;
  if (event.key === "Escape") { byId("search").blur(); return; }
  if (event.target.matches("input")) return;
  const action = { "/": () => byId("search").focus(), t: flipTheme, "?": () => help(KEYS) }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

async function start() {
  startFrame(KEYS);
  table = await embedded();
  table.rows.forEach((row, place) => {
    row.place = place;
    row.text = `${titleOf(row)} ${JSON.stringify(row.cells)}`.toLowerCase();
  });
  refresh();
  addEventListener("keydown", press);
  byId("search").addEventListener("input", (event) => { query = event.target.value.trim().toLowerCase(); refresh(); });
}

run(start);
