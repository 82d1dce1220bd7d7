// What is shown follows the address: `#case=TITLE&view=NAME`, nothing for the overview.

const KEYS = [
  ["/", "search"], ["j  k", "next, previous case"], ["1 ... 9", "that text"], ["l", "layouts"], ["n  p", "next, previous difference or hit"],
  ["a", "all lines, or what differs"], ["u", "one column or two"], ["t", "light or dark"], ["Esc", "leave the search, the picture, the case"], ["?", "these keys"],
];

function show() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const place = data.entries.findIndex((entry) => entry.title === parameters.get("case"));
  const entry = place < 0 ? null : data.entries[place];
  const moved = entry !== current.entry;
  Object.assign(current, { entry, place, view: entry ? chosenView(entry, parameters.get("view")) : "" });
  document.body.classList.toggle("has-case", Boolean(entry));
  byId("main").replaceChildren(...(entry ? caseElement(entry) : overview()).filter(Boolean));
  document.title = entry ? visible(`${shortName(entry)} - ${data.title}`) : visible(data.title);
  if (moved) {
    byId("main").scrollTop = 0;
    if (matchMedia("(max-width: 760px)").matches) window.scrollTo(0, 0);
  }
  markCurrent();
}

function go(entry, view) {
  history.replaceState(null, "", address(entry, view));
  refocused(show);
}

/** A new step of the history. Shown at once: `hashchange` comes later, and the next key may come before it. */
function visit(address) {
  history.pushState(null, "", address);
  show();
}

/** To a neighbour in the list. */
function step(by) {
  if (!listed.length) return;
  const at = listed.indexOf(current.place);
  const next = at < 0 ? (by > 0 ? 0 : listed.length - 1) : Math.max(0, Math.min(listed.length - 1, at + by));
  visit(address(data.entries[listed[next]], current.view));
}

function leave() {
  if (document.activeElement === byId("search")) byId("search").blur();
  else if (current.entry) visit("#");
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("sheet").open) return;
  if (event.key === "Escape") { leave(); return; }
  if (event.target.matches("input, textarea")) return;
  const actions = {
    "/": () => byId("search").focus(), "?": () => help(KEYS), j: () => step(1), k: () => step(-1), n: () => jump(1), p: () => jump(-1),
    l: () => current.entry && current.entry.plates.length && go(current.entry, LAYOUTS), t: flipTheme, u: flipColumns, a: () => byId("all") && byId("all").click(),
  };
  const tab = /^[1-9]$/.test(event.key) && byId(`tab-${event.key - 1}`);
  const action = tab ? () => tab.click() : actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

/** The address says which case is shown, so the link must not change it. */
function skip(event) {
  event.preventDefault();
  byId("main").focus();
}

let waiting = 0;

function search(event) {
  query = event.target.value.trim().toLowerCase();
  clearTimeout(waiting);
  waiting = setTimeout(() => { makeList(); if (current.entry) show(); }, 120);
}

async function start() {
  startFrame(KEYS);
  await load();
  makeFilters();
  makeList();
  if (data.entries.length === 1 && !data.notes.length && !location.hash) history.replaceState(null, "", address(data.entries[0]));
  show();
  addEventListener("hashchange", show);
  addEventListener("keydown", press);
  byId("search").addEventListener("input", search);
  document.querySelector(".skip").addEventListener("click", skip);
}

run(start);
