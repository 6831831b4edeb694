// All recorded traces (tests/traces), replayed in checking mode: the bytes of every block, calloc's
// zeros, realloc's contents, and ashlar_check every 20,000 operations (tests/replay/replay.c).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { buildPath, root, runEmscripten, runWasi } from '../../demo/toolchain.mjs';
import { archive, buildAll, compileObject, link, profiles } from './support.mjs';

const folder = path.join(root, 'tests/traces');
const traces = fs.readdirSync(folder).filter((name) => name.endsWith('.mtr.xz'));
assert.ok(traces.length >= 4, 'tests/traces is incomplete');
for (const name of traces) {
  const unpacked = buildPath('traces', name.replace('.xz', ''));
  const shown = path.relative(root, unpacked);
  assert.ok(fs.existsSync(unpacked), `${shown} is missing: run ./dev setup`);
}

// replay.c refers to these weakly, which alone pulls nothing out of an archive.
const wanted = ['-Wl,-u,ashlar_stats', '-Wl,-u,ashlar_check'];
const flags = {
  wasi: wanted,
  emscripten: [...wanted, '-O1', '-sALLOW_MEMORY_GROWTH', '-sNODERAWFS', '-sENVIRONMENT=node'],
};
const jobs = ['wasi', 'emscripten'].flatMap((target) =>
  profiles.map((profile) => ({ target, profile })),
);
const programs = await buildAll(
  jobs.map(({ target, profile }) => async () => {
    const object = await compileObject(target, path.join(root, 'tests/replay/replay.c'));
    const library = archive(target, profile);
    const output = target === 'wasi' ? 'wasm' : 'js';
    return link(target, `replay-${target}-${profile}`, [object], library, flags[target], output);
  }),
);

for (const [index, { target, profile }] of jobs.entries()) {
  for (const name of traces) {
    const trace = name.replace('.xz', '');
    // Would catch: whatever goes wrong only in the order in which a real program calls.
    test(`${trace}: ${target} ${profile}`, async (context) => {
      const file = programs[index];
      const unpacked = buildPath('traces');
      const result =
        target === 'wasi'
          ? await runWasi(file, { args: [`/t/${trace}`, 'check'], preopens: { '/t': unpacked } })
          : await runEmscripten(file, { args: [path.join(unpacked, trace), 'check'] });
      assert.equal(result.status, 0, `${result.trap ?? ''} ${result.stdout} ${result.stderr}`);
      const facts = JSON.parse(result.stdout);
      assert.equal(facts.failure, undefined, result.stdout);
      // The library that was to be tested has served it.
      const { ashlar } = facts;
      assert.ok(ashlar.allocations >= 100000, result.stdout);
      assert.ok(ashlar.used_peak_bytes >= facts.peak_live_bytes, result.stdout);
      const growth = (bytes) => (bytes / facts.peak_live_bytes).toFixed(3);
      const peak = (facts.peak_live_bytes / 2 ** 20).toFixed(2);
      context.diagnostic(
        `${facts.operations} operations, peak ${peak} MiB, used/peak ` +
          `${growth(ashlar.used_peak_bytes)}, committed/peak ${growth(ashlar.committed_bytes)}, ` +
          `${ashlar.grow_count} grows`,
      );
    });
  }
}
