// A million random operations against a shadow model (programs/model.c), per target and profile.
// The seed is random and printed; ASHLAR_SEED=n repeats a run.
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { buildAll, casesProgram, mustPass, numbers, profiles, runCase } from './support.mjs';

const operations = 1000000;
const jobs = ['wasi', 'emscripten-growth'].flatMap((kind) =>
  profiles.map((profile) => ({ kind, profile })),
);
const programs = await buildAll(
  jobs.map(({ kind, profile }) => () => casesProgram(kind, profile)),
);

for (const [index, { kind, profile }] of jobs.entries()) {
  // Would catch: any sequence of calls after which blocks overlap, lose bytes or alignment, calloc
  // isn't zero, the counts are wrong, or ashlar_check finds a structure broken.
  test(`${operations} random operations: ${kind} ${profile}`, async (context) => {
    const seed = process.env.ASHLAR_SEED ? Number(process.env.ASHLAR_SEED) : randomInt(2 ** 31);
    context.diagnostic(`ASHLAR_SEED=${seed}`);
    const result = await runCase(programs[index], 'model', { args: [seed, operations] });
    context.diagnostic(numbers(result.metrics));
    mustPass(result);
  });
}
