// ./dev bench micro [--quick|--smoke] [--runs N] [--seed N] [--node PATH] [SHAPE...]
//
// The shapes that allocators are usually measured with (shapes.c). Instructions per call first:
// they are exact (see instructions.mjs). Then times in this Node as ratios to the target's
// dlmalloc, best of interleaved runs, with the floors beside the WASI allocators.
import { arms, buildRunners, chooseArms, peerFacts } from './lib/arms.mjs';
import { countWorks, printLosses, publishCounts } from './lib/callgrind.mjs';
import { machineFacts, parse, requireTools } from './lib/report.mjs';
import { runUnder, scratch, versionOf } from './lib/report.mjs';
import { compileArms, publishNanoseconds, publishTimes, runsOf, timeWork } from './lib/timing.mjs';
import { chooseWorks, shapeNames } from './lib/works.mjs';

const { values: options, positionals: names } = parse({
  smoke: { type: 'boolean', default: false },
  quick: { type: 'boolean', default: false },
  runs: { type: 'string' },
  node: { type: 'string' },
  seed: { type: 'string', default: '1' },
});

runUnder(options.node);
requireTools(['wasm2c', 'valgrind', 'gcc']);
const runs = runsOf(options, { smoke: 2, quick: 6, full: 20 });
const folder = scratch();
await buildRunners(folder);
const shapes = await shapeNames(folder);
const known = options.smoke ? ['pair', 'tiny'] : shapes;
const works = chooseWorks(known, { names, seed: options.seed, shapes });
const few = options.smoke ? 'dlmalloc,again,slowed,fast' : undefined;
const timed = {
  wasi: chooseArms([...arms.wasi, ...arms.floors], few),
  emscripten: chooseArms(arms.emscripten, few),
};
const part = options.smoke || names.length > 0;
const facts = machineFacts({
  part,
  ...peerFacts(),
  emscripten: versionOf('emcc'),
  runs,
  seed: options.seed,
});
const columnsOf = (target) => timed[target].map((arm) => arm.name);

await countWorks(works, timed.wasi, folder);
const all = [...timed.wasi, ...timed.emscripten];
await compileArms(all, folder);
for (const work of works) timeWork(work, all, runs);
console.log(`Node ${facts.node}, ${facts.cpu}, ${facts.commit}; best of ${runs} runs\n`);
publishCounts('micro', { works, columns: columnsOf('wasi'), facts });
printLosses(works);
console.log();
for (const target of ['wasi', 'emscripten']) {
  const run = { works, columns: columnsOf(target), facts };
  publishNanoseconds(`micro-${target}`, target, run);
  publishTimes(`micro-${target}`, target, run);
}
