// ashlar selftest: the allocator's own checks, in this Node.
import { readFile } from 'node:fs/promises';
import { selftest } from '../js/selftest.js';

const profiles = ['fast', 'small', 'bare'];

export const usage = `  ashlar selftest [--profile fast|small|bare]
      Runs the allocator's own checks in this Node, in every profile when none is named. The exit
      code is that of the first check that failed.`;

export const options = { profile: { type: 'string' } };

export async function run({ profile }) {
  if (profile !== undefined && !profiles.includes(profile)) {
    throw new Error(`no profile ${profile}; there are: ${profiles.join(', ')}`);
  }
  let failures = 0;
  let exitCode = 0;
  for (const each of profile === undefined ? profiles : [profile]) {
    const bytes = await readFile(new URL(`../wasm/${each}/selftest.wasm`, import.meta.url));
    const { passed, failed, skipped, code, results } = await selftest(bytes);
    for (const failure of results.filter(({ ok }) => !ok)) {
      console.log(`${each}: ${failure.code} ${failure.name}: ${failure.detail}`);
    }
    console.log(`${each}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
    failures += failed;
    exitCode ||= code;
  }
  if (failures > 0) throw Object.assign(new Error(`${failures} checks failed`), { exitCode });
}
