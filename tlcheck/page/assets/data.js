// The page's data: see pack.py for its form.

let data = null;

async function load() {
  data = await embedded();
  const times = new Map(); // two snapshots may be of one case
  for (const entry of data.entries) {
    const title = entry.name ? `${entry.file}::${entry.name} ${entry.target}` : entry.file;
    times.set(title, (times.get(title) || 0) + 1);
    entry.title = times.get(title) > 1 ? `${title} (${times.get(title)})` : title;
  }
}

/** Numbers from their differences. */
function summed(differences) {
  let total = 0;
  return differences.map((step) => (total += step));
}

const pictures = new Map();

/** A picture with its numbers unpacked. */
function pictureAt(number) {
  if (!pictures.has(number)) {
    const packed = data.pictures[number];
    const unpacked = { ...packed };
    for (const key of ["rows", "columns", "values", "registers", "colours"]) {
      unpacked[key] = packed[key] && summed(packed[key]);
    }
    pictures.set(number, unpacked);
  }
  return pictures.get(number);
}

/** The numbers of a text's lines, whatever its form. */
function lineNumbers(text) {
  return text.lines || text.rows.filter((number, place) => place % 3 > 0 && number >= 0);
}

/** For each line whether it has the query; null for an empty one. */
function linesWith(query) {
  if (!query) return null;
  return Uint8Array.from(data.lines, (line) => line.toLowerCase().includes(query));
}
