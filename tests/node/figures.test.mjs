// The figures that repeat exactly, against those that bench/figures.json has pinned: by how much
// each may be worse stands in bench/figures.mjs, which also pins them anew.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { root, run } from '../../demo/toolchain.mjs';

const figures = (...args) =>
  run(process.execPath, ['--no-warnings', path.join(root, 'bench/figures.mjs'), ...args]);

async function mustHold(...args) {
  const { status, stdout, stderr } = await figures(...args);
  assert.equal(status, 0, `${stdout}${stderr}`);
  return stdout;
}

// Would catch: a change that makes a trace or a shape need more memory, or more grows of it, or the
// modules larger.
test('memory and module bytes are as pinned, for every trace and shape', async (context) => {
  context.diagnostic(await mustHold('--memory'));
});

// Would catch: a change that makes the fast paths, the checks or the arena slower. All are counted
// by ./dev bench figures.
test('instructions per call are as pinned, for a few', async (context) => {
  context.diagnostic(await mustHold('--arms', 'fast,bare', 'clang', 'pair', 'churn-256', 'tiny'));
});

// Would catch: a comparison that compares nothing, or a figure that is left out of it.
test('a figure that is worse than pinned ends with an error', async (context) => {
  const file = path.join(os.tmpdir(), `ashlar-figures-${process.pid}.json`);
  context.after(() => fs.rmSync(file, { force: true }));
  const args = ['--file', file, '--arms', 'fast'];
  await mustHold(...args, '--pin', 'churn-256');
  const other = JSON.parse(fs.readFileSync(file, 'utf8'));
  const { fast } = other.figures['churn-256'];
  for (const kind of Object.keys(fast)) fast[kind] = fast[kind] * 0.9 - 2;
  other.figures.module.fast.bytes -= 100;
  fs.writeFileSync(file, JSON.stringify(other));
  const { status, stdout, stderr } = await figures(...args, 'churn-256', 'pair');
  assert.equal(status, 1);
  for (const kind of ['instructions', 'used', 'grown', 'grows']) {
    assert.match(stdout, new RegExp(`^WORSE  churn-256, fast: ${kind} `, 'm'));
  }
  assert.match(stdout, /^WORSE {2}module, fast: bytes /m);
  assert.match(stdout, /^WORSE {2}pair, fast: not pinned$/m);
  assert.match(stderr, /^bench: 6 figures are worse than .*; .*--pin/m);
});
