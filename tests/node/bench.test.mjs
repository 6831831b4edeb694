// ./dev bench's short forms: each bench runs to its end and gives figures that can be true.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { buildPath, root, run } from '../../demo/toolchain.mjs';

const bench = (name, ...args) =>
  run(process.execPath, ['--no-warnings', path.join(root, 'bench', `${name}.mjs`), ...args]);

const output = async (name, ...args) => {
  const { status, stdout, stderr } = await bench(name, ...args);
  assert.equal(status, 0, stderr);
  return stdout;
};

// The figures of one row of one table, by column.
function figures(text, title, row) {
  const lines = text.slice(text.indexOf(title)).split('\n');
  const cells = (line) => line.trim().split(/ {2,}|(?<=\d\??) +/);
  const columns = cells(lines[1]);
  const values = cells(lines.find((line) => line.startsWith(row)).slice(row.length));
  return Object.fromEntries(columns.map((column, index) => [column, parseFloat(values[index])]));
}

// Would catch: a bench that no longer builds or runs, or a row without its figures.
test('a replay of one trace gives footprint and time for each allocator', async () => {
  const text = await output('traces', '--smoke', 'sqlite');
  for (const target of ['wasi', 'emscripten']) {
    const grown = figures(text, `${target}: memory grown`, 'sqlite');
    const time = figures(text, `${target}: time`, 'sqlite');
    for (const arm of ['dlmalloc', 'again', 'fast', 'bare', 'small']) {
      assert.ok(grown[arm] >= 1 && grown[arm] < 1.5, `${arm}: ${text}`);
      assert.ok(time[arm] > 0.1 && time[arm] < 20, `${arm}: ${text}`);
    }
  }
});

// Would catch: counts that take in the replay's own work, that miss a part of the allocator's, or
// that differ from run to run (the bench itself compares dlmalloc with `again`).
test('instruction counts tell the arms apart by what is known of them', async () => {
  const text = await output('instructions', '--smoke');
  const pair = figures(text, 'Instructions per call', 'pair');
  assert.ok(pair.bump >= 3 && pair.bump <= 12, text);
  assert.ok(pair.pages > pair.bump && pair.pages < pair.bare, text);
  assert.equal(pair.dlmalloc, pair.again);
  assert.ok(pair.slowed > pair.dlmalloc + 8, text);
  assert.ok(pair.bare < pair.fast, text);
});

// Would catch: a shape that traps, or a table or picture that isn't written.
test('the shapes run on both targets and leave a table and a picture', async () => {
  const text = await output('micro', '--smoke', 'tiny');
  assert.ok(figures(text, 'emscripten: nanoseconds', 'tiny').fast > 0, text);
  const table = fs.readFileSync(buildPath('bench', 'micro-wasi-ns-part.csv'), 'utf8');
  assert.match(table, /^# cpu: .*^# node: v.*^# seed: 1$.*^,dlmalloc,.*^tiny,\d/ms);
  const picture = fs.readFileSync(buildPath('bench', 'micro-wasi-ns-part.svg'), 'utf8');
  assert.match(picture, /^<svg[^]*<\/svg>\n$/);
});

// Would catch: a size bench that measures something else than the archive.
test('the size of a module is told', async () => {
  const { small } = figures(await output('size', '--smoke'), 'wasi: bytes', 'allocator, raw');
  assert.ok(small > 1000 && small < 4000, `${small}`);
});

// Would catch: a stack trace, or silence, where a name, a file or a number is wrong.
test('bad input is one clear line', async () => {
  const file = path.join(os.tmpdir(), `ashlar-bench-${process.pid}.mtr`);
  fs.writeFileSync(file, 'MTR1\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00');
  const cases = [
    ['traces', ['nonsense'], /^bench: no trace 'nonsense'; there are: .*lua.*\n$/],
    ['traces', [file], /^bench: .* cannot be replayed: it ends early\n$/],
    ['traces', ['--runs', 'many'], /^bench: --runs many is no count of runs\n$/],
    ['traces', ['--fast'], /^bench: .*--fast.*\n$/],
    ['instructions', ['nonsense'], /^bench: no trace or shape 'nonsense'; there are: .*pair.*\n$/],
    ['instructions', ['--arms', 'x'], /^bench: no arm 'x'; there are: dlmalloc, .*\n$/],
  ];
  for (const [name, args, words] of cases) {
    const { status, stdout, stderr } = await bench(name, ...args);
    assert.equal(status, 1, stdout);
    assert.match(stderr, words);
  }
  fs.rmSync(file);
});
