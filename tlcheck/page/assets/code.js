// Texts: one alone, or two side by side with what differs.

const CONTEXT = 3; // lines around a difference
const MOST = 4000; // rows that are made at once
const CHUNK = 80;
const SIGNS = { same: "", renamed: "", nested: ">", changed: "~", moved: "*", removed: "-", added: "+" };
const SYNTAX = {
  tir: /(?<comment>^\s*#.*)|(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<keyword>\b(?:def|for|in|if|elif|else|while|with|pass|and|or|not|True|False)\b)|(?<call>\bT\.\w+)|(?<number>(?<![\w.])\d[\w.]*)/g,
  cuda: /(?<comment>\/\/.*|\/\*.*?\*\/)|(?<string>"(?:[^"\\]|\\.)*")|(?<keyword>^\s*#\s*\w+|\b(?:extern|const|constexpr|void|int|uint|float|double|half_t|bfloat16_t|bool|char|unsigned|signed|long|short|auto|for|if|else|while|do|return|break|continue|struct|template|typename|static|__\w+__)\b)|(?<call>\b[A-Za-z_]\w*(?:::\w+)*(?=\s*[(<][^=]))|(?<number>(?<![\w.])\d[\w.]*)/g,
};

/** Where each syntactic part of a line is: [start, end, class]. */
function parts(text, syntax) {
  const found = [];
  if (text.length > 20000) return found;
  for (const match of text.matchAll(SYNTAX[syntax])) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    found.push([match.index, match.index + match[0].length, kind]);
  }
  return found;
}

/** A line as spans. marks: flat ranges that differ. */
function coloured(text, syntax, marks) {
  const code = make("code");
  const indent = text.length - text.trimStart().length;
  code.style.setProperty("--indent", `${Math.min(indent, 24)}ch`);
  const ranges = parts(text, syntax);
  const cuts = new Set([0, text.length, ...(marks || [])]);
  for (const [start, end] of ranges) cuts.add(start).add(end);
  const places = [...cuts].filter((n) => n <= text.length).sort((a, b) => a - b);
  let range = 0;
  for (let n = 0; n + 1 < places.length; n++) {
    const [start, end] = [places[n], places[n + 1]];
    while (range < ranges.length && ranges[range][1] <= start) range++;
    const kind = range < ranges.length && ranges[range][0] <= start ? ranges[range][2] : "";
    const differs = marks && marked(marks, start);
    const piece = text.slice(start, end);
    if (!kind && !differs) code.append(visible(piece));
    else code.append(make(differs ? "mark" : "span", { class: kind ? `is-${kind}` : null }, piece));
  }
  return code;
}

function marked(marks, place) {
  for (let n = 0; n < marks.length; n += 2) if (marks[n] <= place && place < marks[n + 1]) return true;
  return false;
}

function side(name, number, line, sign, syntax, marks) {
  if (line < 0) return make("div", { class: `side ${name} none` });
  const gutter = make("span", { class: "number", "aria-hidden": "true" }, number ? String(number) : "");
  const margin = make("span", { class: "sign" }, sign);
  return make("div", { class: `side ${name}` }, gutter, margin, coloured(data.lines[line], syntax, marks));
}

/** What is to be shown of a text: rows with what they need, and gaps. Layouts between the lines have no number. */
function rowsOf(text, hits, syntax) {
  const counts = (line) => line >= 0 && !(syntax === "tir" && data.lines[line].trimStart().startsWith("# layout "));
  let [l, r] = [0, 0];
  if (text.lines) return text.lines.map((line) => ({ kind: "one", right: line, r: counts(line) ? ++r : 0, hit: hits && hits[line] }));
  const rows = [];
  for (let n = 0; n < text.rows.length; n += 3) {
    const [kind, left, right] = [data.kinds[text.rows[n]], text.rows[n + 1], text.rows[n + 2]];
    const hit = hits && (hits[left] || hits[right]);
    const numbers = { l: counts(left) ? ++l : 0, r: counts(right) ? ++r : 0 };
    rows.push({ kind, left, right, ...numbers, marks: text.spans[n / 3], hit });
  }
  return rows;
}

function rowElement(row, syntax) {
  const [ours, theirs] = row.marks || [];
  const only = row.kind === "one";
  const sign = SIGNS[row.kind] || "";
  const element = make("div", { class: `row ${row.kind}${row.hit ? " hit" : ""}`, "data-line": only && row.r ? row.r : null });
  const both = !only && row.left >= 0 && row.right >= 0 && row.kind !== "same" && row.kind !== "renamed";
  if (!only) element.append(side("left", row.l, row.left, both ? "-" : sign, syntax, ours));
  element.append(side("right", row.r, row.right, both ? "+" : sign, syntax, theirs));
  return element;
}

/** The whole text as an element. all: equal lines too. */
function textElement(view, hits, all) {
  const text = data.views[view.text];
  const rows = rowsOf(text, hits, view.syntax);
  const box = make("div", { class: text.lines ? "text" : "text diff", tabindex: "0", role: "group", "aria-label": view.name });
  const isQuiet = text.verdict === "names" ? (row) => row.kind === "same" : (row) => row.kind === "same" || row.kind === "renamed";
  const differ = text.lines ? [] : rows.map((row) => !isQuiet(row));
  for (const [start, end, hidden] of stretches(rows, differ, all)) {
    box.append(hidden ? gap(rows, start, end, view.syntax) : chunks(rows, start, end, view.syntax, differ));
  }
  return box;
}

/** Ranges of rows in turn shown and hidden; everything is shown where nothing differs. */
function stretches(rows, differ, all) {
  if (all || !differ.some(Boolean)) return [[0, rows.length, false]];
  const near = new Uint8Array(rows.length);
  differ.forEach((does, n) => does && near.fill(1, Math.max(0, n - CONTEXT), n + CONTEXT + 1));
  const found = [];
  for (let start = 0, end; start < rows.length; start = end) {
    for (end = start; end < rows.length && near[end] === near[start]; end++);
    found.push([start, end, !near[start]]);
  }
  return found;
}

function gap(rows, start, end, syntax) {
  const open = () => button.replaceWith(chunks(rows, start, end, syntax, []));
  const hits = rows.slice(start, end).filter((row) => row.hit).length;
  const found = hits ? `, ${hits} with what is searched for` : "";
  const button = make("button", { type: "button", class: "gap", onclick: open }, `${plural(end - start, "equal line")}${found}`);
  return button;
}

/** Rows in boxes that the browser need not lay out before they are seen; a button for what is too much. */
function chunks(rows, start, end, syntax, differ) {
  const all = document.createDocumentFragment();
  const last = Math.min(end, start + MOST);
  for (let first = start; first < last; first += CHUNK) {
    const chunk = make("div", { class: "chunk" });
    for (let n = first; n < Math.min(first + CHUNK, last); n++) {
      const element = rowElement(rows[n], syntax);
      if (differ[n] && !differ[n - 1]) element.dataset.first = "";
      chunk.append(element);
    }
    all.append(chunk);
  }
  if (last < end) all.append(gap(rows, last, end, syntax));
  return all;
}
