// ./dev bench's short form.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { root, run } from '../../demo/toolchain.mjs';

const bench = (...args) => run(process.execPath, ['--no-warnings', path.join(root, 'bench/traces.mjs'), ...args]);

// Would catch: a bench that no longer builds or runs, or a row without its figures.
test('a replay of one trace gives a figure for each allocator', async () => {
  const { status, stdout, stderr } = await bench('--smoke', 'sqlite');
  assert.equal(status, 0, stderr);
  for (const unit of ['x memory', ' of time']) {
    const figures = stdout.split('\n').find((line) => line.includes(unit)).match(/\d+\.\d\d/g);
    assert.equal(figures.length, 5, stdout);
    assert.ok(figures.every((figure) => Number(figure) > 0.1), stdout);
  }
});

// Would catch: a stack trace, or silence, where a name is wrong.
test('a trace that is not there is one clear line', async () => {
  const { status, stderr } = await bench('nonsense');
  assert.equal(status, 1);
  assert.match(stderr, /^bench: no trace 'nonsense'; there are: .*lua.*\n$/);
});
