// The list of cases, its filters and its search.

const TONES = ["bad", "warn", "good", "quiet"]; // the worst first
const chosen = new Set(); // words of tags; none is all
let query = "";
let hits = null; // for each line whether it has the query
let listed = []; // places of the entries that are shown

function address(entry, view) {
  const parameters = new URLSearchParams({ case: entry.title });
  if (view) parameters.set("view", view);
  return `#${parameters}`;
}

function makeFilters() {
  const counts = new Map();
  for (const entry of data.entries) {
    for (const [word, tone] of entry.tags) {
      const found = counts.get(word) || { tone, number: 0 };
      counts.set(word, { ...found, number: found.number + 1 });
    }
  }
  const sorted = [...counts].sort(([, a], [, b]) => TONES.indexOf(a.tone) - TONES.indexOf(b.tone) || b.number - a.number);
  byId("filters").replaceChildren(...sorted.map(([word, { tone, number }]) => {
    const toggle = () => {
      if (!chosen.delete(word)) chosen.add(word);
      button.setAttribute("aria-pressed", String(chosen.has(word)));
      makeList();
    };
    const button = make("button", { type: "button", class: `tag tone-${tone}`, "aria-pressed": "false", onclick: toggle }, word, make("b", {}, String(number)));
    return button;
  }));
}

/** How many lines of a case have the query; -1 if its names and words have it. */
function found(entry) {
  if (!query) return -1;
  const words = [entry.title, ...entry.words, ...entry.remarks.flatMap((remark) => [remark.title, ...remark.lines])];
  if (words.some((text) => text.toLowerCase().includes(query))) return -1;
  const lines = new Set();
  for (const view of entry.views) for (const line of lineNumbers(data.views[view.text])) if (hits[line]) lines.add(line);
  return lines.size;
}

function makeList() {
  hits = linesWith(query);
  const items = [];
  listed = [];
  let file = "";
  data.entries.forEach((entry, place) => {
    if (chosen.size && !entry.tags.some(([word]) => chosen.has(word))) return;
    const number = found(entry);
    if (!number) return;
    if (entry.file !== file && entry.name) items.push(make("li", { class: "file" }, entry.file));
    file = entry.file;
    listed.push(place);
    items.push(item(entry, place, number));
  });
  byId("cases").replaceChildren(...items);
  const all = data.entries.length;
  byId("shown").textContent = listed.length === all ? plural(all, "case") : `${listed.length} of ${plural(all, "case")}`;
  markCurrent();
}

function item(entry, place, number) {
  const [word, tone] = entry.tags.reduce((worst, tag) => (TONES.indexOf(tag[1]) < TONES.indexOf(worst[1]) ? tag : worst));
  const where = number > 0 ? make("span", { class: "count" }, plural(number, "line")) : null;
  const dot = make("span", { class: `dot tone-${tone}`, title: word });
  const link = make("a", { href: address(entry), "data-place": place }, dot, make("span", { class: "name" }, entry.name || entry.file), where, make("span", { class: "target" }, entry.target));
  return make("li", {}, link);
}

function markCurrent() {
  for (const link of byId("cases").querySelectorAll("a")) {
    const is = current.entry && Number(link.dataset.place) === current.place;
    if (is) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (is) link.scrollIntoView({ block: "nearest" });
  }
}
