// Counts the instructions of arms: each arm's shared object (arms.mjs) runs under callgrind, and
// what ran in that object counts.
import fs from 'node:fs';
import path from 'node:path';
import { run } from '../../demo/toolchain.mjs';
import { buildObject, runnerOf } from './arms.mjs';
import { fail, geometricMean, inParallel, progress, versionOf } from './report.mjs';
import { printTable, publish } from './report.mjs';

const flags = [
  '--tool=callgrind',
  '--collect-atstart=no',
  '--compress-strings=no',
  '--compress-pos=no',
];

// Instructions by function of one object, from callgrind's output. A line after calls= is what the
// callee cost; the callee's own lines say that again.
function functionsOf(text, object) {
  const counts = new Map();
  let [inside, skip, name] = [false, false, ''];
  for (const line of text.split('\n')) {
    if (line.startsWith('ob=')) inside = line === `ob=${object}`;
    else if (line.startsWith('fn=')) name = line.slice(3);
    else if (line.startsWith('calls=')) skip = true;
    else if (/^\d/.test(line)) {
      if (inside && !skip) counts.set(name, (counts.get(name) ?? 0) + Number(line.split(' ')[1]));
      skip = false;
    }
  }
  return counts;
}

// What runner.c is told for a work.
function commandOf(work, folder) {
  if (work.kind === 'shape') return ['shape', work.name, work.seed];
  const file = path.join(folder, `${work.name}.ops`);
  if (!fs.existsSync(file)) fs.writeFileSync(file, work.trace.records);
  return ['trace', file];
}

async function factsOf(arm, work, [command, ...args]) {
  const { status, stdout, stderr } = await run(command, args);
  const words = /bench: (.*)/.exec(stderr)?.[1] ?? stderr;
  if (status !== 0) fail(`${arm.name} on ${work.name}: ${words}`);
  return JSON.parse(stdout);
}

const runOf = (arm, work, folder) => [
  runnerOf(arm, folder),
  arm.object,
  ...commandOf(work, folder),
];

// The facts that runner.c prints, and {instructions, functions: Map of name to instructions}.
async function count(arm, work, folder) {
  const output = path.join(folder, `${arm.name}-${work.name}.out`);
  const valgrind = ['valgrind', ...flags, `--callgrind-out-file=${output}`];
  const facts = await factsOf(arm, work, [...valgrind, ...runOf(arm, work, folder)]);
  const functions = functionsOf(fs.readFileSync(output, 'utf8'), arm.object);
  fs.rmSync(output);
  const instructions = [...functions.values()].reduce((sum, value) => sum + value, 0);
  return { ...facts, instructions, functions };
}

// Those facts alone, which tell of memory: in a fiftieth of the time.
export const withoutCounting = (arm, work, folder) =>
  factsOf(arm, work, runOf(arm, work, folder));

// The same calls, the same contents, and for one and the same allocator the same instructions.
function verify(work) {
  const results = Object.values(work.counted).filter((result) => result.failures === 0);
  if (new Set(results.map((result) => result.checksum)).size > 1) {
    fail(`${work.name}: the allocators' blocks differ in their contents`);
  }
  const { dlmalloc, again } = work.counted;
  if (dlmalloc && again && dlmalloc.instructions !== again.instructions) {
    const counts = `${dlmalloc.instructions} and ${again.instructions}`;
    fail(`${work.name}: not repeatable: dlmalloc took ${counts} instructions`);
  }
}

// work.counted[arm.name] = what `measure` tells, for every work and arm.
export async function countWorks(works, arms, folder, measure = count) {
  await inParallel(arms.map((arm) => () => buildObject(arm, folder)));
  let done = 0;
  const jobs = works.flatMap((work) => {
    // In the arms' order, whichever ends first.
    work.counted = Object.fromEntries(arms.map((arm) => [arm.name, undefined]));
    return arms.map((arm) => async () => {
      work.counted[arm.name] = await measure(arm, work, folder);
      progress(`${(done += 1)} of ${works.length * arms.length} counted`);
    });
  });
  await inParallel(jobs);
  progress();
  works.forEach(verify);
}

const atLeast = 256 * 1024; // below, memory in whole pages of 64 KiB says nothing

const isSmall = ({ failures, peak_live }) => failures > 0 || peak_live < atLeast;

const figures = {
  perCall: ({ failures, instructions, operations }) => (failures ? NaN : instructions / operations),
  grown: (result) => (isSmall(result) ? NaN : result.grown / result.peak_live),
  grows: ({ failures, grows }) => (failures ? NaN : grows),
  used: (result) => (isSmall(result) ? NaN : result.used_peak / result.peak_live || NaN),
};

const counters = () => ({
  gcc: versionOf('gcc'),
  wasm2c: versionOf('wasm2c'),
  valgrind: versionOf('valgrind'),
});

function publishOne(name, title, kind, digits, { works, columns, facts }) {
  const figure = (work, column) => figures[kind](work.counted[column]);
  publish({ name, title, facts: { ...facts, ...counters() }, works, columns, figure, digits });
}

export function publishCounts(name, run) {
  publishOne(name, 'Instructions per call of the allocator', 'perCall', 1, run);
  publishOne(`${name}-grown`, 'Memory grown / bytes live at the peak', 'grown', 2, run);
  publishOne(`${name}-grows`, 'Calls of memory.grow', 'grows', 0, run);
  publishOne(`${name}-used`, 'ashlar_used_peak / bytes live at the peak', 'used', 2, run);
}

// A profile's instructions over those of the best peer on each work: what the project promises, and
// where it is worse; to be read first.
const peers = ['dlmalloc', 'mimalloc'];

function ratioToBest({ counted }, name) {
  const known = peers.map((peer) => counted[peer]).filter((result) => result?.failures === 0);
  return counted[name].instructions / Math.min(...known.map((result) => result.instructions));
}

export function printLosses(works) {
  for (const { name, counted } of works) {
    for (const [arm, { failures, operations }] of Object.entries(counted)) {
      if (failures === 0) continue;
      const share = `${failures} of ${operations} calls refused or misaligned`;
      console.log(`${arm} has no figure for ${name}: ${share}`);
    }
  }
  for (const name of ['fast', 'bare']) {
    const rated = works.filter(({ counted }) => counted.dlmalloc && counted[name]);
    if (rated.length === 0) continue;
    const ratios = rated.map((work) => ({ name: work.name, ratio: ratioToBest(work, name) }));
    const losses = ratios.filter(({ ratio }) => ratio > 1).sort((a, b) => b.ratio - a.ratio);
    const mean = geometricMean(ratios.map(({ ratio }) => ratio)).toFixed(3);
    const words = losses.map((loss) => `${loss.name} ${loss.ratio.toFixed(2)}`).join(', ');
    console.log(`${name}: ${mean} of the best peer's instructions; more on: ${words || 'none'}`);
  }
}

export function printFunctions(works, arms) {
  for (const work of works) {
    for (const arm of arms) {
      const { functions, operations } = work.counted[arm.name];
      const largest = [...functions].sort((a, b) => b[1] - a[1]).slice(0, 16);
      const cells = largest.map(([name, value]) => [name, (value / operations).toFixed(2)]);
      printTable([[`${work.name}, ${arm.name}`, 'Ir/call'], ...cells]);
      console.log();
    }
  }
}
