// ./dev bench's short forms: each bench runs to its end and gives figures that can be true.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { buildPath, nativeCompile, root, run } from '../../demo/toolchain.mjs';

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

// Makes known calls of each kind; what libstdc++ and threads allocate for themselves is a few more.
const recorded = `
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
static void* pairs(void*) {
  for (int i = 0; i < 2500; ++i) free(malloc(48));
  return nullptr;
}
static void* blocks[1000];
int main() {
  pthread_t threads[4];
  for (auto& block : blocks) block = malloc(1000);
  for (auto& block : blocks) block = realloc(block, 3000);
  for (int i = 0; i < 2000; ++i) if (!calloc(5, 100)) return 1;
  for (int i = 0; i < 700; ++i) if (!new int[20]) return 1;
  for (int i = 0; i < 500; ++i) {
    void* block;
    if (!memalign(256, 100) || !aligned_alloc(4096, 100)) return 1;
    if (posix_memalign(&block, 512, 100) || posix_memalign(&block, 3, 100) == 0) return 1;
  }
  for (auto& block : blocks) free(block);
  for (auto& thread : threads) pthread_create(&thread, nullptr, pairs, nullptr);
  for (auto& thread : threads) pthread_join(thread, nullptr);
  if (fork() == 0) {
    for (int i = 0; i < 9000; ++i) if (!malloc(2000)) return 1;
    return 0;
  }
  wait(nullptr);
  if (system("ls / > /dev/null") != 0) return 1;
  _exit(3);
}`;

// How many operations of each kind, by a reader that shares nothing with the bench's.
function kindsOf(file) {
  const bytes = fs.readFileSync(file);
  const kinds = [0, 0, 0, 0, 0];
  let at = 12;
  const skip = () => {
    while (bytes[at] >= 128) at += 1;
    at += 1;
  };
  while (at < bytes.length) {
    const kind = bytes[at];
    kinds[kind] += 1;
    for (let left = [3, 2, 3, 3, 4][kind]; left > 0; left -= 1) skip();
  }
  return kinds;
}

async function recordAndReplay(folder) {
  const inside = (name) => path.join(folder, name);
  fs.writeFileSync(inside('program.cc'), recorded);
  // -O0: nothing that is allocated may be optimised away.
  const program = [inside('program.cc'), '-pthread', '-o', inside('program')];
  await nativeCompile(['-O0', ...program]);
  await nativeCompile(['-O0', '-static', '-w', ...program.slice(0, -1), inside('static')]);
  const include = `-I${path.join(root, 'include')}`;
  const replay = [path.join(root, 'tests/replay/replay.c'), include, '-o', inside('replay')];
  await nativeCompile(['-O1', ...replay]);
  const { status, stderr } = await bench('record', '-o', inside('a.mtr'), inside('program'));
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^bench: program ended with 3; .*a\.mtr: [\d,]+ operations, at most/m);
  const { stdout } = await run(inside('replay'), [inside('a.mtr'), 'check']);
  return { ...JSON.parse(stdout), kinds: kindsOf(inside('a.mtr')) };
}

// Would catch: calls that are not recorded, recorded as another kind or twice, or with another
// size; a call of a thread that is lost; a child that writes into its parent's trace; an _exit that
// loses the end.
test('a recorded program asks of malloc what it was written to ask', async (context) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-record-'));
  context.after(() => fs.rmSync(folder, { recursive: true }));
  const { failure, operations, peak_live_bytes: peak, kinds } = await recordAndReplay(folder);
  const total = kinds.reduce((sum, count) => sum + count);
  const isAbout = (value, least, more) => value >= least && value <= least + more;
  assert.equal(failure, undefined);
  assert.equal(operations, total);
  [1700 + 10000, 1000 + 10000, 2000, 1000, 1500].forEach((least, kind) => {
    assert.ok(isAbout(kinds[kind], least, 10), `kind ${kind}: ${kinds[kind]}, not ${least}`);
  });
  const asked = 1000 * 3000 + 2000 * 500 + 700 * 80 + 1500 * 100;
  assert.ok(isAbout(peak, asked, 100000), `${peak} bytes at the peak, not ${asked}`);

  const isStatic = await bench('record', path.join(folder, 'static'));
  assert.match(isStatic.stderr, /^bench: .*static is statically linked, .*\n$/);
});

// Would catch: a wrapped link that misses a function, or a recorder that records itself.
test('a program of the demo is recorded as WebAssembly', async (context) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-record-'));
  context.after(() => fs.rmSync(folder, { recursive: true }));
  const [script, file] = ['script.txt', 'a.mtr'].map((name) => path.join(folder, name));
  fs.writeFileSync(script, 'fill 0 4000 1 160\nread 0 4000 1\ncompact\n');
  const { status, stderr } = await bench('record', '-o', file, '--wasm', 'leveldb', script);
  assert.equal(status, 0, stderr);
  const [malloc, free] = kindsOf(file);
  assert.ok(malloc > 1000 && free > malloc * 0.9 && free <= malloc * 1.1, kindsOf(file).join());
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
    ['record', [], /^bench: record \[-o FILE\] PROGRAM ARGS\.\.\. .*\n$/],
    ['record', ['nonsense'], /^bench: cannot run nonsense: not on the PATH\n$/],
    ['record', ['./nonsense'], /^bench: cannot run \.\/nonsense: no such program\n$/],
    ['record', ['--wasm', 'x'], /^bench: no program 'x'; there are: sqlite, leveldb\n$/],
    ['figures', ['--file', '/nonsense'], /^bench: .*nonsense is missing: .*--pin\n$/],
    ['instructions', ['--arms', 'x'], /^bench: no arm 'x'; there are: dlmalloc, .*\n$/],
  ];
  for (const [name, args, words] of cases) {
    const { status, stdout, stderr } = await bench(name, ...args);
    assert.equal(status, 1, stdout);
    assert.match(stderr, words);
  }
  fs.rmSync(file);
});
