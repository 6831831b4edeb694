// The size of the allocator in a program: a module that exports five names of malloc's, optimised.
// README's figures are these, so the commit that changes one changes README.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { buildPath, root, run, wasiCompile } from '../../demo/toolchain.mjs';
import { archive } from './support.mjs';

const names = ['malloc', 'free', 'calloc', 'realloc', 'aligned_alloc'];
const folder = buildPath('tests-node', 'size');
const bytes = {};

async function moduleBytes(stem, library) {
  const linked = path.join(folder, `${stem}.wasm`);
  const optimised = path.join(folder, `${stem}.opt.wasm`);
  const exports = names.map((name) => `-Wl,--export=${name}`);
  await wasiCompile(['-nostdlib', '-Wl,--no-entry', ...exports, library, '-o', linked]);
  const optimiser = path.join(root, 'node_modules/binaryen/bin/wasm-opt');
  const strip = ['--strip-debug', '--strip-producers', '--strip-target-features'];
  const { status, stderr } = await run(process.execPath, [optimiser, '-all', '-Oz', ...strip, linked, '-o', optimised]);
  assert.equal(status, 0, stderr);
  return fs.statSync(optimised).size;
}

before(async () => {
  fs.mkdirSync(folder, { recursive: true });
  bytes.fast = await moduleBytes('fast', archive('wasi'));
  bytes.bare = await moduleBytes('bare', archive('wasi', 'bare'));
  bytes.small = await moduleBytes('small', archive('wasi', 'small'));
  bytes.dlmalloc = await moduleBytes('dlmalloc', '-lc');
});

// Would catch: code that the arena alone does not need, linked into the smallest build.
test('small is at most 3.5 KiB', () => assert.ok(bytes.small <= 3584, `${bytes.small} bytes`));

// Would catch: a feature that makes the default larger than what it replaces.
test('fast is smaller than dlmalloc', () =>
  assert.ok(bytes.fast < bytes.dlmalloc, `${bytes.fast} >= ${bytes.dlmalloc} bytes`));

// Would catch: README's table left behind by a change of the code (1 %: another compiler's output).
test('README tells these sizes', () => {
  const readme = fs.readFileSync(path.join(root, 'README.md'), 'utf8');
  const row = readme.split('\n').find((line) => line.startsWith('| bytes of wasm |'));
  const told = row.split('|').slice(2, 6).map((cell) => Number(cell.trim().replace(',', '')));
  const measured = [bytes.fast, bytes.bare, bytes.small, bytes.dlmalloc];
  told.forEach((value, index) =>
    assert.ok(Math.abs(value - measured[index]) <= measured[index] / 100, `${told} told, ${measured} measured`));
});
