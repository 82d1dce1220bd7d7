// Pictures of layouts on a canvas: small ones beside each other, and one alone with its numbers.

const INK = "#1c2024";
const RED = "#d1121f";
const WRONG = "#ff5a5f";
const DETAIL = [32, 16]; // columns and rows where lanes are to be seen
const SMALL = 384; // pixels wide at most
const PIXELS = 16e6; // that every browser gives a canvas

/** What a cell says, in words. */
function cellWords(picture, row, column) {
  const place = row * picture.columns.length + column;
  const value = picture.values[place];
  if (value < 0) return "no element";
  const last = picture.line ? [picture.rows[row] + column] : [picture.rows[row], picture.columns[column]];
  const index = [...picture.leading, ...last].join(", ");
  const mark = picture.marks.find(([r, c]) => r === row && c === column);
  const what = picture.registers ? `thread ${value}, register ${picture.registers[place]}` : `offset ${value}`;
  return `${picture.name}[${index}]: ${what}${mark ? ` - ${mark[3]}` : ""}`;
}

function label(picture, place) {
  const value = picture.values[place];
  if (value < 0) return "";
  return picture.registers ? `${value}:${picture.registers[place]}` : String(value);
}

/** Draws with cells of this size in CSS pixels. labels: whether each has its number. */
function draw(canvas, picture, width, height, labels) {
  const [columns, rows] = [picture.columns.length, picture.rows.length];
  const scale = Math.min(window.devicePixelRatio || 1, Math.sqrt(PIXELS / (columns * width * rows * height)));
  canvas.width = Math.round(columns * width * scale);
  canvas.height = Math.round(rows * height * scale);
  canvas.style.width = `${columns * width}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  for (let place = 0; place < picture.colours.length; place++) {
    if (picture.colours[place] < 0) continue;
    pen.fillStyle = picture.palette[picture.colours[place]];
    pen.fillRect((place % columns) * width, Math.floor(place / columns) * height, width, height);
  }
  if (picture.vector && width > 4) drawVectors(pen, picture, width, height);
  drawMarks(pen, picture, width, height);
  if (labels) drawLabels(pen, picture, width, height);
}

/** Lines between neighbours that no one instruction adds together. */
function drawVectors(pen, picture, width, height) {
  const columns = picture.columns.length;
  const group = picture.values.map((value) => Math.floor(value / picture.vector));
  pen.fillStyle = "#6b7280";
  group.forEach((own, place) => {
    const [x, y] = [(place % columns) * width, Math.floor(place / columns) * height];
    if (place % columns && group[place - 1] !== own) pen.fillRect(x, y, 1, height);
    if (place >= columns && group[place - columns] !== own) pen.fillRect(x, y, width, 1);
  });
}

/** Frames of lanes; where cells are small, these are larger than the cell. */
function drawMarks(pen, picture, width, height) {
  const grow = Math.max(0, 8 - width) / 2;
  for (const [row, column, kind] of picture.marks) {
    const [x, y] = [column * width, row * height];
    if (kind === "written") {
      pen.fillStyle = WRONG;
      pen.fillRect(x - grow / 2, y - grow / 2, width + grow, height + grow);
    }
    pen.strokeStyle = kind === "lane" ? INK : RED;
    pen.lineWidth = 2;
    pen.strokeRect(x - grow + 1, y - grow + 1, width + 2 * grow - 2, height + 2 * grow - 2);
  }
}

function drawLabels(pen, picture, width, height) {
  const columns = picture.columns.length;
  pen.fillStyle = INK;
  pen.font = "9px ui-monospace, Menlo, Consolas, monospace";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let place = 0; place < picture.values.length; place++) {
    const [x, y] = [(place % columns) * width, Math.floor(place / columns) * height];
    pen.fillText(label(picture, place), x + width / 2, y + height / 2);
  }
}

/** The part in which lanes can be seen: around the wrong one, or the first. */
function detail(picture) {
  if (!picture.vector && !picture.marks.length) return picture;
  const wide = picture.columns.length;
  const [columns, rows] = [Math.min(wide, DETAIL[0]), Math.min(picture.rows.length, DETAIL[1])];
  const [row, column] = picture.marks.find(([, , kind]) => kind === "written") || [0, 0];
  const left = Math.floor(column / columns) * columns;
  const top = Math.floor(row / rows) * rows;
  const cut = (cells) => cells && Array.from({ length: rows }, (_, r) => cells.slice((top + r) * wide + left, (top + r) * wide + left + columns)).flat();
  const marks = picture.marks.map(([r, c, ...rest]) => [r - top, c - left, ...rest]);
  const [values, registers, colours] = [cut(picture.values), cut(picture.registers), cut(picture.colours)];
  const part = columns * rows < picture.values.length ? [`${rows} x ${columns} of it; opens larger`] : [];
  const notes = [...part, ...picture.notes];
  return { ...picture, values, registers, colours, marks, notes, columns: picture.columns.slice(left, left + columns), rows: picture.rows.slice(top, top + rows) };
}

/** One picture, small; opens large. */
function thumbnail(whole, caption) {
  const picture = detail(whole);
  const canvas = make("canvas", { role: "img", "aria-label": `${picture.title}. ${picture.legend}` });
  const cell = Math.max(3, Math.min(12, Math.floor(SMALL / picture.columns.length)));
  draw(canvas, picture, cell, cell, false);
  const button = make("button", { type: "button", class: "thumbnail", title: "larger", onclick: () => enlarge(whole) }, canvas);
  const wrong = picture.marks.some(([, , kind]) => kind === "written");
  const notes = picture.notes.map((note) => make("li", { class: wrong && note.includes("offset") ? "tone-bad" : null }, note));
  const title = make("p", { class: "map" }, picture.title);
  return make("figure", {}, caption ? make("p", { class: "caption" }, caption) : null, button, title, make("ul", {}, notes));
}

/** One picture alone, with its numbers; arrows walk over its cells. */
function enlarge(picture) {
  const size = Math.max(20, Math.max(...picture.values.map((_, place) => label(picture, place).length)) * 5.6 + 4);
  const canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": picture.title });
  const first = picture.marks.find(([, , kind]) => kind === "written") || [0, 0];
  const readout = make("p", { class: "readout", role: "status" });
  const ring = make("div", { class: "ring" });
  let [row, column] = first;
  const point = (r, c) => {
    row = Math.max(0, Math.min(picture.rows.length - 1, r));
    column = Math.max(0, Math.min(picture.columns.length - 1, c));
    readout.textContent = visible(cellWords(picture, row, column));
    Object.assign(ring.style, { left: `${column * size}px`, top: `${row * 16}px`, width: `${size}px`, height: "16px" });
  };
  const under = (event) => point(Math.floor(event.offsetY / 16), Math.floor(event.offsetX / size));
  canvas.addEventListener("pointermove", under);
  canvas.addEventListener("click", under);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    point(row + step[0], column + step[1]);
    ring.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  const head = make("p", { class: "map" }, picture.title);
  const notes = [picture.legend, ...picture.notes].map((note) => make("li", {}, note));
  openSheet(head, readout, make("div", { class: "large" }, make("div", { class: "sheet" }, canvas, ring)), make("ul", {}, notes));
  draw(canvas, picture, size, 16, true);
  point(row, column);
  canvas.focus();
}

function plates(entry) {
  return make("div", { class: "plates" }, entry.plates.map((plate) => {
    const shown = [];
    if (plate.before !== undefined) shown.push(thumbnail(pictureAt(plate.before), data.sides[0]));
    if (plate.picture !== undefined) shown.push(thumbnail(pictureAt(plate.picture), plate.before !== undefined ? data.sides[1] : ""));
    if (plate.missing) shown.push(make("p", { class: "quiet" }, plate.missing));
    return make("section", { class: shown.length > 1 ? "plate pair" : "plate" }, make("h3", {}, plate.buffer), shown);
  }));
}
