// A table as a picture: a group of bars for each row, a bar for each column that has a figure.
const colours = { fast: '#0b6e4f', bare: '#3fa34d', small: '#9bc53d', mimalloc: '#b56576' };
const floors = ['bump', 'list', 'classes', 'pages'];
const colourOf = (label) => colours[label] ?? (floors.includes(label) ? '#c9a227' : '#7a869a');

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
const escape = (text) => `${text}`.replace(/[&<>]/g, (sign) => entities[sign]);

const [pitch, labelEnd, barStart, room, width] = [11, 234, 240, 590, 900];

// Each row has its own scale. A huge value would flatten all others: bars end at eight times the
// row's median, and an arrow says so.
function scaleOf(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const limit = 8 * sorted[sorted.length >> 1] || Infinity;
  return Math.min(sorted.at(-1), limit) || 1;
}

function barOf({ label, value, text }, scale, y) {
  const length = (Math.min(value, scale) / scale) * room;
  const words = value > scale ? `${text} \u2192` : text;
  const size = `width="${length.toFixed(1)}" height="${pitch - 2}"`;
  return [
    `<text x="${labelEnd}" y="${y + 9}" text-anchor="end">${escape(label)}</text>`,
    `<rect x="${barStart}" y="${y}" ${size} fill="${colourOf(label)}"/>`,
    `<text x="${(barStart + length + 4).toFixed(1)}" y="${y + 9}">${escape(words)}</text>`,
  ];
}

// rows: [{name, cells: [{label, value, text}]}]
export function barChart(title, note, rows) {
  const parts = [];
  let y = 52;
  for (const { name, cells } of rows) {
    const shown = cells.filter((cell) => Number.isFinite(cell.value));
    if (shown.length === 0) continue;
    const scale = scaleOf(shown.map((cell) => cell.value));
    parts.push(`<text x="8" y="${y + 9}" font-weight="bold">${escape(name)}</text>`);
    shown.forEach((cell, index) => parts.push(...barOf(cell, scale, y + index * pitch)));
    y += shown.length * pitch + 8;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y + 8}"`,
    ` font-family="sans-serif" font-size="10">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    `<text x="8" y="20" font-size="15">${escape(title)}</text>`,
    `<text x="8" y="37" fill="#555">${escape(note)}</text>`,
    ...parts,
    '</svg>\n',
  ].join('\n');
}
