// What every page has around its content: data, theme, keys, the sheet above it.

/** The keys of a page, as pairs of keys and words. */
function help(keys) {
  const rows = keys.map(([key, what]) => make("tr", {}, make("td", {}, make("kbd", {}, key)), make("td", {}, what)));
  openSheet(make("h2", {}, "Keys"), make("table", {}, rows));
}

function flipTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  keep("theme", root.dataset.theme);
}

/** Storage is refused to files by some browsers. */
function keep(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(`tlcheck-${name}`);
    localStorage.setItem(`tlcheck-${name}`, value);
  } catch { /* nothing is kept, then */ }
  return null;
}

function openSheet(...content) {
  const sheet = byId("sheet");
  const close = make("button", { type: "button", class: "close", onclick: () => sheet.close() }, "close (Esc)");
  sheet.replaceChildren(close, ...content);
  sheet.showModal();
}

/** What is embedded in the page: JSON, compressed, as base64. */
async function embedded() {
  const bytes = Uint8Array.from(atob(byId("data").textContent), (c) => c.charCodeAt(0));
  byId("data").remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Keeps the theme of the last time, and makes the header's buttons work. */
function startFrame(keys) {
  const theme = keep("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  byId("theme").addEventListener("click", flipTheme);
  byId("help").addEventListener("click", () => help(keys));
}

/** The page says how long it took, or why there is nothing to see. */
function run(start) {
  start().then(() => {
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }, (error) => {
    byId("main").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2024 or later.`;
    throw error;
  });
}
