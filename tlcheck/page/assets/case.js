// One case: what there is to say of it, its texts and its pictures; and the overview of all.

const LAYOUTS = "layouts";
const MARKED = /^ *\d* \| /; // a line of the user's file, or an access below it
const LABEL = /^(kernel|blame|help|witness|accepted|expected|known):|^(found|also)(?= )/;
const MANY = 12; // words that are shown without asking
const current = { entry: null, place: -1, view: "" };
let showAll = false;

function overview() {
  const clusters = data.clusters.map((cluster) => {
    const links = cluster.members.map((place) => make("a", { href: address(data.entries[place]) }, shortName(data.entries[place])));
    const lines = cluster.words.map((word) => make("p", {}, word));
    return make("section", { class: "cluster" }, make("div", {}, tagOf(cluster.tag), make("div", { class: "words" }, lines)), folded(links, MANY, "members"));
  });
  const notes = data.notes.map((note) => make("li", {}, note));
  const [head, none] = data.sides[0] ? ["What differs", "Nothing differs."] : ["What was found", "Nothing is wrong."];
  const nothing = clusters.length ? null : make("p", { class: "quiet" }, none);
  const made = data.made.length ? make("p", { class: "made" }, data.made.join(", ")) : null;
  return [make("h2", {}, clusters.length ? head : "Overview"), nothing, ...clusters, notes.length ? make("ul", { class: "notes" }, notes) : null, made];
}

function shortName(entry) {
  return entry.name ? `${entry.name} ${entry.target}` : entry.file;
}

/** The first of many things, and a button for the others. */
function folded(things, many, name) {
  const box = make("div", { class: name }, things.slice(0, many));
  if (things.length > many) {
    const button = make("button", { type: "button", class: "more", onclick: () => button.replaceWith(...things.slice(many)) }, `${things.length - many} more`);
    box.append(button);
  }
  return box;
}

function caseElement(entry) {
  const head = make("h2", {}, entry.name || entry.file, entry.target ? make("span", { class: "target" }, entry.target) : null);
  const back = make("a", { class: "back", href: "#" }, "all cases");
  const file = make("p", { class: "path" }, back, entry.name ? entry.file : null);
  const words = entry.words.map((word) => make("li", {}, word));
  return [file, head, make("p", { class: "tags" }, entry.tags.map(tagOf)), claimsElement(entry), passesElement(entry), folded(words, MANY, "differences"), ...entry.remarks.map(remarkElement), ...tabs(entry)];
}

/** Every claim with its verdict, a line for each kind. */
function claimsElement(entry) {
  if (!entry.claims.length) return null;
  const rows = entry.claims.map(([kind, tags]) => make("tr", {}, make("th", { scope: "row" }, kind), make("td", {}, tags.map(tagOf))));
  return make("table", { class: "claims", "aria-label": "claims" }, rows);
}

/** The checkpoints in their order, and which one is the first that is wrong. */
function passesElement(entry) {
  if (!entry.passes.length) return null;
  const steps = entry.passes.map(([words, tone]) => {
    const open = () => go(entry, words.split(":")[0]);
    return make("li", {}, make("button", { type: "button", class: `tag tone-${tone}`, onclick: open }, words));
  });
  return make("ol", { class: "passes", "aria-label": "from source to device" }, steps);
}

function remarkElement(remark) {
  const lines = remark.lines.map((line) => make("p", MARKED.test(line) ? { class: "marked" } : {}, labelled(line)));
  const code = remark.code.length ? make("pre", {}, remark.code.join("\n")) : null;
  const places = remark.spots.length ? make("p", { class: "spots" }, "shown in: ", remark.spots.map((spot) => spotLink(spot))) : null;
  if (!lines.length && !code) return make("p", { class: `remark tone-${remark.tone}` }, remark.title);
  return make("details", { class: `remark tone-${remark.tone}`, open: remark.tone === "bad" }, make("summary", {}, remark.title), lines, code, places);
}

/** A line whose first word says what it is, with that word in bold. */
function labelled(line) {
  const label = LABEL.exec(line);
  return label ? [make("b", {}, label[0]), line.slice(label[0].length)] : line;
}

/** A button that shows a line of a text. */
function spotLink([view, line]) {
  const shown = () => byId("panel").querySelector(`[data-view="${CSS.escape(view)}"] .row[data-line="${line}"]`);
  const place = () => {
    if (!shown()) go(current.entry, view);
    if (shown()) pointAt(shown());
  };
  const known = current.entry.views.some((one) => one.name === view);
  return known ? make("button", { type: "button", class: "spot", onclick: place }, `${view}:${line}`) : make("span", {}, `${view}:${line}`);
}

/** What is said of a line of a text: the remark's title, and its other lines. */
function spoken(entry, view, line) {
  const about = entry.remarks.filter((remark) => remark.spots.some((spot) => spot[0] === view && spot[1] === line));
  return about.map((remark) => {
    const others = remark.spots.filter((spot) => spot[0] !== view || spot[1] !== line);
    return make("p", { class: `spoken tone-${remark.tone}` }, remark.title, " ", others.map((spot) => spotLink(spot)));
  });
}

function viewNames(entry) {
  return [...entry.views.map((view) => view.name), ...(entry.plates.length ? [LAYOUTS] : [])];
}

/** The view that is asked for, else that of the first finding, else the first that differs. */
function chosenView(entry, name) {
  const names = viewNames(entry);
  if (names.includes(name)) return name;
  const spots = entry.remarks.filter((remark) => remark.tone === "bad").flatMap((remark) => remark.spots);
  const found = spots.find(([view]) => names.includes(view));
  if (found) return found[0];
  const differs = entry.views.filter((view) => data.views[view.text].rows);
  return (differs.find((view) => view.name === "lower-tile-op") || differs[0] || entry.views.find((view) => view.name === "lower-tile-op") || { name: names[0] }).name;
}

function tabs(entry) {
  const names = viewNames(entry);
  if (!names.length) return [];
  const list = make("div", { role: "tablist", "aria-label": "texts and pictures" }, names.map((name, n) => {
    const view = entry.views[n];
    const differs = view ? data.views[view.text].rows : entry.plates.some((plate) => plate.before !== undefined);
    const is = name === current.view;
    const label = differs ? make("span", { class: "differs", title: "differs" }, "differs") : null;
    return make("button", { type: "button", role: "tab", id: `tab-${n}`, "aria-selected": String(is), "aria-controls": "panel", tabindex: is ? "0" : "-1", onclick: () => go(entry, name), onkeydown: turn }, name, label);
  }));
  const panel = make("div", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${names.indexOf(current.view)}` });
  fill(panel, entry);
  return [list, panel];
}

/** Arrows go from tab to tab. */
function turn(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  event.stopPropagation();
  const names = viewNames(current.entry);
  go(current.entry, names[(names.indexOf(current.view) + step + names.length) % names.length]);
  document.querySelector("[role=tab][aria-selected=true]").focus();
}

/** Redraws, and gives the focus back to what had it and was made anew. */
function refocused(redraw) {
  const { id } = document.activeElement || {};
  redraw();
  if (id && byId(id)) byId(id).focus({ preventScroll: true });
}

function fill(panel, entry) {
  const view = entry.views.find((one) => one.name === current.view);
  if (!view) {
    panel.replaceChildren(plates(entry));
    return;
  }
  const differs = Boolean(data.views[view.text].rows);
  const tools = make("p", { class: "tools" });
  if (view.note) tools.append(make("span", { class: "quiet" }, view.note));
  if (differs) {
    tools.append(make("span", { class: "legend" }, `${data.sides[0]} | ${data.sides[1]}`));
    const flip = () => { showAll = !showAll; refocused(() => fill(panel, entry)); };
    tools.append(make("button", { type: "button", id: "all", "aria-pressed": String(showAll), onclick: flip }, "all lines (a)"));
    tools.append(make("button", { type: "button", id: "columns-toggle", "aria-pressed": String(document.body.classList.contains("unified")), onclick: flipColumns }, "one column (u)"));
    tools.append(make("button", { type: "button", onclick: () => jump(1) }, "next difference (n)"));
  }
  const beside = differs ? null : besideOf(entry, view);
  const boxes = [view, ...(beside ? [beside] : [])].map((one) => textBox(entry, one));
  panel.replaceChildren(tools, beside ? make("div", { class: "beside" }, boxes) : boxes[0]);
  requestAnimationFrame(() => panel.querySelectorAll(".beside .pane").forEach(scrollToFinding));
}

/** Has a pane show the first line that a finding names. */
function scrollToFinding(pane) {
  const row = pane.querySelector(".row.risky");
  if (row) pane.scrollTop += row.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
}

/** The kernel's own file, which stands at the right of a checkpoint that a finding names. */
function besideOf(entry, view) {
  const named = new Set(entry.remarks.flatMap((remark) => remark.spots.map((spot) => spot[0])));
  const file = entry.views.find((one) => one.name === entry.file && named.has(one.name));
  return file && file !== view && named.has(view.name) ? file : null;
}

/** A text, and at its lines what findings say of them. */
function textBox(entry, view) {
  const box = make("div", { class: "pane" }, textElement(view, hits, showAll));
  box.dataset.view = view.name;
  for (const row of box.querySelectorAll(".row[data-line]")) {
    const said = spoken(entry, view.name, Number(row.dataset.line));
    row.classList.toggle("risky", said.length > 0);
    row.append(...said);
  }
  return box;
}

function flipColumns() {
  const is = document.body.classList.toggle("unified");
  const button = byId("columns-toggle");
  if (button) button.setAttribute("aria-pressed", String(is));
}

/** To the next or previous difference, or line with what is searched for. */
function jump(step) {
  const rows = [...document.querySelectorAll("#panel .row[data-first], #panel .row.hit, #panel .row.risky")];
  if (!rows.length) return;
  const now = rows.indexOf(document.querySelector("#panel .row.at"));
  const next = rows[now < 0 ? (step > 0 ? 0 : rows.length - 1) : (now + step + rows.length) % rows.length];
  pointAt(next);
}

function pointAt(row) {
  for (const other of document.querySelectorAll("#panel .row.at")) other.classList.remove("at");
  row.classList.add("at");
  row.scrollIntoView({ block: "center" });
}
