// Real programs under Ashlar and under their toolchain's own malloc: the proof that Ashlar
// is a malloc. What makes a comparison count is in demo/check.mjs; here are all of its variants and
// the controls that show that it can fail.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import {
  compare, definersInMap, faults, inspect, minAllocations, minLivePeakBytes, wasmFunctionNames,
} from '../../demo/check.mjs';
import { build, limit, programs, variants } from '../../demo/programs.mjs';
import { root, run, wasiCompile } from '../../demo/toolchain.mjs';

const pool = limit(os.availableParallelism());
const outputs = new Map();

// All builds start at once, so that the compilers are busy while programs run.
const builds = new Map();
for (const variant of Object.keys(variants)) {
  for (const program of Object.keys(programs)) {
    const pair = Promise.all(['own', 'ashlar'].map((malloc) =>
      build(program, variant, malloc, { pool })));
    pair.catch(() => {}); // It is awaited, and reported, by the test that needs it.
    builds.set(`${program} ${variant}`, pair);
  }
}

// Catches: a block handed out twice, moved without its contents, too small, or not zeroed, in any
// variant; a link that leaves some calls with the toolchain's malloc; a preload that isn't used.
for (const [key, pair] of builds) {
  test(`${key}: the same output under Ashlar, and Ashlar alone served it`, async () => {
    const sides = await compare(...await pair);
    assert.deepEqual(faults(sides), []);
    outputs.set(key, sides.ashlar.hash);
  });
}

// Catches: damage that strikes both builds of one variant alike, or a script that depends on the
// platform, which would hide such damage.
for (const program of Object.keys(programs)) {
  test(`${program}: one output on every variant`, () => {
    const keys = Object.keys(variants).map((variant) => `${program} ${variant}`);
    const hashes = keys.map((key) => outputs.get(key));
    assert.ok(hashes[0], 'the first variant has no output');
    assert.deepEqual(hashes, keys.map(() => hashes[0]));
  });
}

// Catches: checks that pass without Ashlar in the program.
for (const variant of ['wasi', 'emscripten-O2', 'native', 'native-preload']) {
  test(`control: ${variant} forgets to link Ashlar and fails`, async () => {
    const [own] = await builds.get(`sqlite ${variant}`);
    const forgotten = await build('sqlite', variant, 'ashlar', {
      pool, forget: true, name: 'forgotten',
    });
    const text = faults(await compare(own, forgotten)).join('\n');
    assert.match(text, /Ashlar counted 0 allocations/);
    assert.match(text, /Ashlar is not in the binary/);
    assert.match(text, /a second allocator is in the binary/);
    assert.match(text, /no fingerprint in the binary/);
  });
}

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-demo-'));
after(() => fs.rmSync(scratch, { recursive: true }));

async function wasiWith(source, name) {
  const file = path.join(scratch, `${name}.c`);
  const object = path.join(scratch, `${name}.o`);
  fs.writeFileSync(file, source);
  await wasiCompile(['-O1', '-fno-builtin', '-c', file, '-o', object]);
  return inspect(await build('leveldb', 'wasi', 'ashlar', { pool, extra: [object], name }));
}

// Catches: a check that doesn't see part of the calls served by another object than Ashlar's.
test('control: a call that another object defines is seen as a second allocator', async () => {
  const facts = await wasiWith(
    `#include <stdlib.h>
    __attribute__((used, retain)) void* pvalloc(size_t size) { return malloc(size); }`,
    'partial',
  );
  assert.deepEqual(facts.allocators, ['ashlar', 'partial.o']);
});

// Catches: a check that a second allocator escapes by being reached under names of its own.
test('control: an allocator under names of its own is seen', async () => {
  const facts = await wasiWith(
    `char heap[4096];
    unsigned used_bytes;
    __attribute__((used, retain, noinline)) void* dlmalloc(unsigned size) {
      used_bytes += size;
      return heap + used_bytes - size;
    }`,
    'hidden',
  );
  assert.deepEqual(facts.allocators, ['ashlar', 'dlmalloc']);
});

// Catches: any one of the reasons to fail going missing, or firing for a good comparison.
test('every reason for a failure is named', () => {
  const good = () => ({
    own: {
      failure: null, hash: 'a', outputBytes: 9, allocators: ['libc'], fingerprint: null,
      report: { allocations: 0, livePeakBytes: 0, version: 'none' },
    },
    ashlar: {
      failure: null, hash: 'a', outputBytes: 9, allocators: ['ashlar'],
      fingerprint: 'ashlar 0.1.0 fast',
      report: {
        allocations: minAllocations, livePeakBytes: minLivePeakBytes, version: 'ashlar 0.1.0 fast',
      },
    },
  });
  assert.deepEqual(faults(good()), []);
  const cases = [
    [/own malloc: exit/, ({ own }) => { own.failure = 'exit code 1'; }],
    [/with Ashlar: died/, ({ ashlar }) => { ashlar.failure = 'died'; }],
    [/no output/, ({ own, ashlar }) => { own.outputBytes = ashlar.outputBytes = 0; }],
    [/outputs differ/, ({ ashlar }) => { ashlar.hash = 'b'; }],
    [/allocations, too few/, ({ ashlar }) => { ashlar.report.allocations--; }],
    [/live, too few/, ({ ashlar }) => { ashlar.report.livePeakBytes--; }],
    [/is not in the binary/, ({ ashlar }) => { ashlar.allocators = []; }],
    [/second allocator.*x\.o/, ({ ashlar }) => { ashlar.allocators.push('x.o'); }],
    [/no fingerprint/, ({ ashlar }) => { ashlar.fingerprint = null; }],
    [/the run says/, ({ ashlar }) => { ashlar.report.version = 'ashlar 0.1.0 bare'; }],
    [/no allocator was found/, ({ own }) => { own.allocators = []; }],
    [/should not have it/, ({ own }) => { own.allocators.push('ashlar'); }],
    [/counted in the build without/, ({ own }) => { own.report.allocations = 1; }],
  ];
  for (const [reason, spoil] of cases) {
    const sides = good();
    spoil(sides);
    const found = faults(sides);
    assert.equal(found.length, 1, `${reason}: ${found.join('; ')}`);
    assert.match(found[0], reason);
  }
});

// Catches: a map whose layout is misread, or names that were stripped, so that no allocator would
// ever be found.
test('maps and name sections say who defines malloc', async () => {
  for (const variant of ['wasi', 'emscripten-O0', 'emscripten-O3']) {
    const [own, ashlar] = await builds.get(`leveldb ${variant}`);
    assert.match(definersInMap(fs.readFileSync(own.map, 'utf8')).malloc, /dlmalloc/);
    assert.ok(wasmFunctionNames(own.wasm).includes('dlmalloc'), variant);
    assert.match(definersInMap(fs.readFileSync(ashlar.map, 'utf8')).malloc, /^libashlar\.a\(/);
  }
  const [, ashlar] = await builds.get('leveldb native');
  assert.match(definersInMap(fs.readFileSync(ashlar.map, 'utf8')).malloc, /^libashlar\.a\(/);
});

// Catches: a demo that prints no table, or that succeeds where it compared nothing.
test('the demo prints its table, and refuses names it does not know', async () => {
  await builds.get('sqlite wasi');
  const demo = path.join(root, 'demo/run.mjs');
  const shown = await run(process.execPath, [demo, '--only', 'wasi,sqlite', '--runs', '1']);
  assert.equal(shown.status, 0, shown.stderr);
  const lines = shown.stdout.split('\n');
  for (const column of ['output', 'ms', 'ratio', 'memory MiB', 'code bytes', 'allocations']) {
    assert.ok(lines[0].includes(column), column);
  }
  assert.match(lines[1], /^sqlite +wasi +libc\.a\(dlmalloc/);
  assert.match(lines[2], /^sqlite +wasi +Ashlar .* [\d,]{7,}$/);
  const unknown = await run(process.execPath, [demo, '--only', 'sqllite']);
  assert.equal(unknown.status, 2);
  assert.match(unknown.stderr, /nothing is called sqllite/);
});
