// ./dev bench traces [--quick|--smoke] [--runs N] [--node PATH] [TRACE...]
//
// Replays recorded allocation traces in this Node, as WASI and as Emscripten modules, with Ashlar's
// profiles and with the toolchains' own mallocs. For each target: linear memory grown over the
// bytes live at the peak (the same in every run), and the time of all calls as a ratio to the
// target's dlmalloc, best of interleaved runs. The replay's own reading and writing is a part of
// every time, so the ratios are nearer to 1 than the allocators are.
import { arms, chooseArms, peerFacts } from './lib/arms.mjs';
import { machineFacts, parse, runUnder, scratch, versionOf } from './lib/report.mjs';
import { compileArms, runsOf, timeWork } from './lib/timing.mjs';
import { publishMemory, publishNanoseconds, publishTimes } from './lib/timing.mjs';
import { traceNames } from './lib/traces.mjs';
import { chooseWorks } from './lib/works.mjs';

const { values: options, positionals: names } = parse({
  smoke: { type: 'boolean', default: false },
  quick: { type: 'boolean', default: false },
  runs: { type: 'string' },
  node: { type: 'string' },
});

runUnder(options.node);
const runs = runsOf(options, { smoke: 2, quick: 30, full: 100 });
const works = chooseWorks(options.smoke ? ['sqlite'] : traceNames(), { names });
const targets = ['wasi', 'emscripten'];
const few = options.smoke ? 'dlmalloc,again,slowed,fast,bare,small' : undefined;
const armsOf = (target) => chooseArms(arms[target], few);
const all = targets.flatMap(armsOf);
await compileArms(all, scratch());
for (const work of works) timeWork(work, all, runs);
const part = options.smoke || names.length > 0;
const facts = machineFacts({ part, ...peerFacts(), emscripten: versionOf('emcc'), runs });
console.log(`Node ${facts.node}, ${facts.cpu}, ${facts.commit}; best of ${runs} runs\n`);
for (const target of targets) {
  const columns = armsOf(target).map((arm) => arm.name);
  publishMemory(`traces-${target}`, target, { works, columns, facts });
  publishNanoseconds(`traces-${target}`, target, { works, columns, facts });
  publishTimes(`traces-${target}`, target, { works, columns, facts });
}
