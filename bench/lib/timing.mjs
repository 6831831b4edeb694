// Times the work in this Node. Every arm is compiled once, by V8's optimising compiler alone: a
// long call would otherwise stay in the baseline compiler's code. Then the arms take turns, each in
// an instance of its own, so that whatever disturbs the machine disturbs all of them; of each the
// best run counts.
import fs from 'node:fs';
import v8 from 'node:v8';
import vm from 'node:vm';
import { buildModule } from './arms.mjs';
import { fail, inParallel, progress, publish } from './report.mjs';
import { chunkRecords, recordBytes } from './traces.mjs';

v8.setFlagsFromString('--no-liftoff');
// Newer V8s inline by what the baseline compiler saw, and die where there is none.
v8.setFlagsFromString('--no-wasm-inlining');
const isNewer = parseInt(process.versions.v8, 10) >= 13;
if (isNewer) v8.setFlagsFromString('--no-wasm-inlining-call-indirect');
v8.setFlagsFromString('--expose-gc');
const collectGarbage = vm.runInNewContext('gc');

export async function compileArms(arms, folder) {
  let done = 0;
  const build = async (arm) => {
    await buildModule(arm, folder);
    arm.module = new WebAssembly.Module(fs.readFileSync(arm.file));
    progress(`${(done += 1)} of ${arms.length} built`);
  };
  await inParallel(arms.map((arm) => () => build(arm)));
  progress();
}

// The work calls nothing outside; what Emscripten's library imports is never called or may do
// nothing.
function instantiate(arm) {
  const imports = {};
  for (const { module, name } of WebAssembly.Module.imports(arm.module)) {
    imports[module] ??= {};
    imports[module][name] = () => 0;
  }
  const { exports } = new WebAssembly.Instance(arm.module, imports);
  exports._initialize?.();
  return exports;
}

function timed(call) {
  const start = process.hrtime.bigint();
  call();
  return Number(process.hrtime.bigint() - start);
}

// heap.h: struct facts
function readFacts(exports, begin) {
  const at = exports.work_facts();
  const words = new Uint32Array(exports.memory.buffer, at, 5);
  const [operations, failures, checksum, , peakLive] = words;
  const grown = (exports.work_memory_end() >>> 0) - begin;
  return { operations, failures, checksum, peakLive, grown, usedPeak: exports.work_used_peak() };
}

// For each chunk its share of the nanoseconds per call.
function runTrace(exports, trace) {
  const buffer = exports.trace_buffer();
  const chunkBytes = chunkRecords * recordBytes;
  const times = [];
  for (let at = 0; at < trace.records.length; at += chunkBytes) {
    const chunk = trace.records.subarray(at, at + chunkBytes);
    new Uint8Array(exports.memory.buffer).set(chunk, buffer);
    const ns = timed(() => exports.trace_replay(chunk.length / recordBytes));
    times.push(ns / trace.operations);
  }
  return times;
}

const rounds = 5;

// Nanoseconds per call of one round.
function timeRound(exports, index) {
  const operations = () => new Uint32Array(exports.memory.buffer, exports.work_facts(), 1)[0];
  const before = operations();
  const ns = timed(() => exports.shape_round(index));
  return ns / (operations() - before);
}

function runShape(exports, { index, seed }) {
  exports.shape_start(index, seed);
  // A heap is fresh only once.
  if (exports.shape_is_fresh(index)) return [timeRound(exports, index)];
  exports.shape_round(index);
  return Array.from({ length: rounds }, () => timeRound(exports, index) / rounds);
}

// Facts, and times: those of the work's parts, which are the same in every run.
function runOnce(arm, work) {
  const exports = instantiate(arm);
  const begin = exports.work_memory_end() >>> 0;
  try {
    const isTrace = work.kind === 'trace';
    const times = isTrace ? runTrace(exports, work.trace) : runShape(exports, work);
    const isFresh = !isTrace && exports.shape_is_fresh(work.index) !== 0;
    return { times, isFresh, ...readFacts(exports, begin) };
  } catch (error) {
    return fail(`${arm.target}'s ${arm.name} on ${work.name}: ${error.message}`);
  } finally {
    collectGarbage();
  }
}

const bestOf = (a, b) => (a ? a.map((time, index) => Math.min(time, b[index])) : b);

// What a fresh heap is asked for takes one round, so it has more runs instead.
function runWork(arm, work) {
  const result = runOnce(arm, work);
  for (let more = 0; result.isFresh && more < 4; more += 1) {
    result.times = bestOf(result.times, runOnce(arm, work).times);
  }
  return result;
}

// work[arm.target][arm.name] = the facts of a run, with best: the best times of all runs, of the
// even ones, of the odd ones. A disturbance lasts longer than a part of the work, so the best of
// each part is soon found.
export function timeWork(work, arms, runs) {
  for (let run = 0; run < runs; run += 1) {
    // There and back, so that no arm always follows the same one.
    for (const arm of run % 2 === 0 ? arms : arms.toReversed()) {
      const result = runWork(arm, work);
      work[arm.target] ??= {};
      const best = work[arm.target][arm.name]?.best ?? [];
      for (const half of [0, 1 + (run % 2)]) best[half] = bestOf(best[half], result.times);
      work[arm.target][arm.name] = { ...result, best };
    }
    progress(`${work.name}, run ${run + 1} of ${runs}`);
  }
  progress();
  verify(work);
}

// The work reads back what it wrote, whoever's blocks it wrote to.
function verify({ name, wasi, emscripten }) {
  const all = [...Object.values(wasi), ...Object.values(emscripten)];
  const results = all.filter((result) => result.failures === 0);
  if (new Set(results.map((result) => result.checksum)).size > 1) {
    fail(`${name}: the allocators' blocks differ in their contents`);
  }
}

const nanoseconds = ({ best }, half = 0) => best[half].reduce((sum, time) => sum + time, 0);

const ratio = (results, name, half = 0) =>
  nanoseconds(results[name], half) / nanoseconds(results.dlmalloc, half);

// How far apart the same allocator's own times lie, in all runs or in half of them.
export function noiseOf(results) {
  const halves = [0, 1, 2].filter((half) => results.again.best[half]);
  return Math.max(...halves.map((half) => Math.abs(ratio(results, 'again', half) - 1)));
}

// The arms whose difference from dlmalloc is lost in the noise; all when even `slowed` is.
export function unresolved(results) {
  const noise = noiseOf(results);
  const lost = (name) => Math.abs(ratio(results, name) - 1) <= noise;
  const others = Object.keys(results).filter((name) => !['dlmalloc', 'again'].includes(name));
  return lost('slowed') || ratio(results, 'slowed') < 1 ? others : others.filter(lost);
}

// How many runs: --runs N, or what --smoke, --quick or neither means.
export function runsOf(options, { smoke, quick, full }) {
  if (options.runs === undefined) return options.smoke ? smoke : options.quick ? quick : full;
  if (!/^[1-9]\d{0,3}$/.test(options.runs)) fail(`--runs ${options.runs} is no count of runs`);
  return Number(options.runs);
}

const percent = (share) => `${(share * 100).toFixed(1)} %`;

export function publishTimes(name, target, { works, columns, facts }) {
  const lost = new Map(works.map((work) => [work, unresolved(work[target])]));
  publish({
    name: `${name}-time`,
    title: `${target}: time, as a ratio to dlmalloc's (? cannot resolve)`,
    facts,
    works,
    columns,
    figure: (work, column) => (work[target][column].failures ? NaN : ratio(work[target], column)),
    digits: 2,
    mark: (work, column) => (lost.get(work).includes(column) ? '?' : ' '),
  });
  for (const [work, names] of lost) {
    const noise = `dlmalloc differs from itself by ${percent(noiseOf(work[target]))}`;
    if (names.length > 0) console.log(`${work.name}: cannot resolve ${names.join(', ')}: ${noise}`);
  }
  console.log();
}

export function publishNanoseconds(name, target, { works, columns, facts }) {
  publish({
    name: `${name}-ns`,
    title: `${target}: nanoseconds per call, the work's own included`,
    facts,
    works,
    columns,
    figure: (work, column) =>
      work[target][column].failures ? NaN : nanoseconds(work[target][column]),
    digits: 1,
  });
}

export function publishMemory(name, target, { works, columns, facts }) {
  const common = { facts, works, columns, digits: 2 };
  publish({
    ...common,
    name: `${name}-grown`,
    title: `${target}: memory grown / bytes live at the peak`,
    figure: (work, column) => work[target][column].grown / work[target][column].peakLive,
  });
  publish({
    ...common,
    name: `${name}-used`,
    title: `${target}: ashlar_used_peak / bytes live at the peak`,
    figure: (work, column) => work[target][column].usedPeak / work[target][column].peakLive || NaN,
  });
}
