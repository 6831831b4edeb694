// What every bench has in common: its words, tables, CSV files and pictures.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { barChart } from './chart.mjs';
import { buildPath, findWasi, root } from '../../demo/toolchain.mjs';

export function fail(words) {
  console.error(`bench: ${words}`);
  process.exit(1);
}

process.on('uncaughtException', (error) => fail(error.message));

export function parse(options) {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return fail(error.message.split('\n')[0]);
  }
}

// --node PATH: the same bench, run by another Node.
export function runUnder(node) {
  if (node === undefined) return;
  const args = process.argv.slice(1);
  const at = args.findIndex((arg) => /^--node(=|$)/.test(arg));
  args.splice(at, args[at] === '--node' ? 2 : 1);
  const { error, status } = spawnSync(node, ['--no-warnings', ...args], { stdio: 'inherit' });
  if (error) fail(`cannot run ${node}: ${error.code}`);
  process.exit(status ?? 1);
}

// One line on standard error that is written over; without words the line is ended.
// Where that is no terminal, a line every five seconds.
let written = 0;
export function progress(words) {
  const now = Date.now();
  if (process.stderr.isTTY) {
    process.stderr.write(words === undefined ? '\n' : `\rbench: ${words} \x1b[K`);
  } else if (words !== undefined && now - written > 5000) {
    process.stderr.write(`bench: ${words}\n`);
    written = now;
  }
}

export function requireTools(names) {
  for (const name of names) {
    if (spawnSync(name, ['--version']).error) fail(`${name} is missing: ./dev setup`);
  }
}

// A folder for one run, gone at its end however it ends.
export function scratch() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-bench-'));
  process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
  return folder;
}

// As many at a time as there are processors.
export async function inParallel(jobs) {
  const queue = [...jobs];
  const worker = async () => {
    while (queue.length > 0) await queue.shift()();
  };
  await Promise.all(os.cpus().map(worker));
}

const firstLine = (command, ...args) => {
  const { stdout } = spawnSync(command, args, { encoding: 'utf8' });
  return stdout ? stdout.split('\n')[0] : 'none';
};

export function machineFacts(more) {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: firstLine('git', '-C', root, 'describe', '--always', '--dirty'),
    cpu: os.cpus()[0].model.trim(),
    node: process.version,
    wasi: firstLine(findWasi().cc, '--version'),
    ...more,
  };
}

export const versionOf = (command) => firstLine(command, '--version');

export const geometricMean = (values) =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);

// rows: arrays of cells; the first row is the head, the first column stands to the left.
export function printTable(rows) {
  const width = (column) => Math.max(...rows.map((row) => `${row[column]}`.length));
  const widths = rows[0].map((_, column) => width(column));
  const pad = (cell, column) =>
    column === 0 ? `${cell}`.padEnd(widths[0]) : `${cell}`.padStart(widths[column] + 2);
  for (const row of rows) console.log(row.map(pad).join('').trimEnd());
}

const quoted = (cell) => (/[",\n]/.test(`${cell}`) ? `"${`${cell}`.replaceAll('"', '""')}"` : cell);

// The facts about the machine as comments, a head, the rows.
function csv(facts, rows) {
  const comments = Object.entries(facts).map(([key, value]) => `# ${key}: ${value}`);
  return `${[...comments, ...rows.map((row) => row.map(quoted).join(','))].join('\n')}\n`;
}

const fixed = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : '-');

// The geometric mean of the ratios to the first column. A work where that one has no figure counts
// for nobody; one where only this column has none leaves it without a mean.
function meanRatio(works, column, { columns, figure }) {
  const rated = works.filter((work) => figure(work, columns[0]) > 0);
  return geometricMean(rated.map((work) => figure(work, column) / figure(work, columns[0])));
}

function meanRows(table) {
  const kinds = new Set(table.works.map((work) => work.kind).filter(Boolean));
  return [...kinds].map((kind) => {
    const works = table.works.filter((work) => work.kind === kind);
    // A mean is no surer than what it is made of.
    const mark = (column) =>
      works
        .map((work) => table.mark(work, column))
        .sort()
        .at(-1);
    const means = table.columns.map(
      (column) => fixed(meanRatio(works, column, table), 3) + mark(column),
    );
    return [`${kind}s: mean ratio`, ...means];
  });
}

// One table of a run: a row for each work (a trace or a shape), a column for each arm, a figure in
// each cell or NaN. Printed, and kept as build/bench/NAME.csv and NAME.svg (NAME-part when the run
// was one over a part of the works). {name, title, facts,
// works: [{name, kind}], columns: names, figure: (work, column) => number, digits, mark: what
// follows a cell's figure}
export function publish({ mark = () => '', ...table }) {
  const { name, title, facts, works, figure, digits } = table;
  const has = (column) => works.some((work) => Number.isFinite(figure(work, column)));
  const columns = table.columns.filter(has);
  if (columns.length === 0) return;
  const text = (work, column) => fixed(figure(work, column), digits) + mark(work, column);
  const rows = works.map((work) => [work.name, ...columns.map((column) => text(work, column))]);
  console.log(`${title}:`);
  printTable([['', ...columns], ...rows, ...meanRows({ ...table, columns, mark })]);
  console.log();

  const exact = works.map((work) => [work.name, ...columns.map((column) => figure(work, column))]);
  const bars = works.map((work) => ({
    name: work.name,
    cells: columns.map((c) => ({ label: c, value: figure(work, c), text: text(work, c) })),
  }));
  const note = [facts.cpu, `Node ${facts.node}`, facts.commit, facts.date].join(', ');
  fs.mkdirSync(buildPath('bench'), { recursive: true });
  const part = facts.part ? '-part' : '';
  const file = (ending) => buildPath('bench', `${name}${part}.${ending}`);
  fs.writeFileSync(file('csv'), csv(facts, [['', ...columns], ...exact]));
  fs.writeFileSync(file('svg'), barChart(title, note, bars));
}
