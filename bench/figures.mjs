// ./dev bench figures [--memory] [--pin] [--file FILE] [--arms A,B] [TRACE|SHAPE...]
//
// Compares what repeats exactly with what bench/figures.json has pinned: for each trace and shape,
// and each profile of Ashlar, instructions per call, memory, and calls of memory.grow; and the
// bytes of the modules. Ends with an error when one is worse by more than the tolerance. --pin
// writes them down instead. --memory leaves the instructions out, and takes seconds. --file takes
// another file: what was before a change, say.
import fs from 'node:fs';
import path from 'node:path';
import { root } from '../demo/toolchain.mjs';
import { arms as allArms, buildRunners, chooseArms, linkAllocator } from './lib/arms.mjs';
import { optimise } from './lib/arms.mjs';
import { countWorks, withoutCounting } from './lib/callgrind.mjs';
import { fail, inParallel, machineFacts, parse, requireTools } from './lib/report.mjs';
import { scratch, versionOf } from './lib/report.mjs';
import { traceNames } from './lib/traces.mjs';
import { chooseWorks, shapeNames } from './lib/works.mjs';

const { values: options, positionals: names } = parse({
  pin: { type: 'boolean', default: false },
  memory: { type: 'boolean', default: false },
  file: { type: 'string', default: path.join(root, 'bench/figures.json') },
  arms: { type: 'string' },
});
if (options.pin && options.memory) fail('--pin pins instructions too: leave --memory out');

const { file } = options;
const shown = path.relative(root, path.resolve(file));
const page = 65536;

// By how much a figure may be worse. Memory grows by 1/16 of itself, or by a page: a byte more may
// cost that.
const slack = {
  instructions: (pinned) => pinned * 0.01,
  used: (pinned) => pinned * 0.01,
  grown: (pinned, { peak_live }) => Math.max(pinned * 0.07, page / peak_live),
  grows: (pinned) => 1 + pinned * 0.05,
  bytes: (pinned) => pinned * 0.005,
};

const rounded = (value, digits) => Number(value.toFixed(digits));

function figuresOf({ failures, operations, instructions, peak_live, used_peak, grown, grows }) {
  if (failures > 0) fail(`${failures} of ${operations} calls were refused or misaligned`);
  const counted = instructions === undefined ? NaN : rounded(instructions / operations, 2);
  return {
    instructions: counted,
    used: rounded(used_peak / peak_live, 4),
    grown: rounded(grown / peak_live, 4),
    grows,
  };
}

// {WORK: {ARM: figures}, module: {ARM: {bytes}}}, and `facts` beside it in the same shape.
async function measure(works, arms, folder) {
  await countWorks(works, arms, folder, options.memory ? withoutCounting : undefined);
  const facts = { module: {} };
  // In the arms' order, whichever ends first.
  const figures = { module: Object.fromEntries(arms.map(({ name }) => [name, undefined])) };
  for (const { name, counted } of works) {
    facts[name] = counted;
    const entries = Object.entries(counted).map(([arm, result]) => [arm, figuresOf(result)]);
    figures[name] = Object.fromEntries(entries);
  }
  const bytesOf = async (arm) => {
    const module = path.join(folder, `${arm.name}-alone.wasm`);
    await linkAllocator(arm, folder, module);
    figures.module[arm.name] = { bytes: (await optimise(module)).length };
  };
  await inParallel(arms.map((arm) => () => bytesOf(arm)));
  return { figures, facts };
}

// The same source gives other instructions with another compiler.
const toolchain = () => ({
  wasi: machineFacts().wasi,
  gcc: versionOf('gcc'),
  wasm2c: versionOf('wasm2c'),
});

const isPinned = fs.existsSync(file);
const pinned = isPinned ? JSON.parse(fs.readFileSync(file, 'utf8')) : { figures: {} };

// A line for each arm's figures, so that a difference reads well.
function write(figures) {
  const all = { ...pinned.figures };
  for (const [name, byArm] of Object.entries(figures)) all[name] = { ...all[name], ...byArm };
  const object = (entries, indent) => `{\n${entries.join(',\n')}\n${indent}}`;
  const line = (value) => JSON.stringify(value).replaceAll(/[:,](?=["\d])/g, '$& ');
  const works = Object.entries(all).map(([name, byArm]) => {
    const rows = Object.entries(byArm).map(([arm, row]) => `      "${arm}": ${line(row)}`);
    return `    "${name}": ${object(rows, '    ')}`;
  });
  const parts = [`  "toolchain": ${JSON.stringify(toolchain(), null, 2).replaceAll('\n', '\n  ')}`];
  parts.push(`  "figures": ${object(works, '  ')}`);
  fs.writeFileSync(file, `${object(parts, '')}\n`);
  console.log(`pinned in ${shown}: ${Object.keys(figures).join(', ')}`);
}

// Every figure that differs by more than its slack: {words, worse}.
function differences(figures, facts, isComparable) {
  const found = [];
  for (const [name, byArm] of Object.entries(figures)) {
    for (const [arm, row] of Object.entries(byArm)) {
      const before = pinned.figures[name]?.[arm];
      if (!before) found.push({ words: `${name}, ${arm}: not pinned`, worse: true });
      for (const [kind, value] of Object.entries(before ? row : {})) {
        const isCode = ['instructions', 'bytes'].includes(kind);
        if (Number.isNaN(value) || (isCode && !isComparable)) continue;
        const allowed = slack[kind](before[kind], facts[name]?.[arm]);
        if (Math.abs(value - before[kind]) <= allowed) continue;
        const words = `${name}, ${arm}: ${kind} ${before[kind]} -> ${value}`;
        found.push({ words, worse: value > before[kind] });
      }
    }
  }
  return found;
}

function compare({ figures, facts }) {
  const now = toolchain();
  const others = Object.keys(now).filter((tool) => now[tool] !== pinned.toolchain[tool]);
  for (const tool of others) {
    console.log(`instructions and bytes not compared: pinned with ${pinned.toolchain[tool]}`);
  }
  const found = differences(figures, facts, others.length === 0);
  for (const { words, worse } of found) console.log(`${worse ? 'WORSE ' : 'better'} ${words}`);
  const worse = found.filter((one) => one.worse).length;
  const remedy = 'if it is to be so, ./dev bench figures --pin writes it down';
  if (worse > 0) fail(`${worse} figures are worse than ${shown} says; ${remedy}`);
  console.log(
    `${Object.keys(figures).length - 1} traces and shapes, and the modules: none is worse` +
      (found.length > 0 ? '; ./dev bench figures --pin keeps what is better' : ''),
  );
}

requireTools(options.memory ? ['wasm2c', 'gcc'] : ['wasm2c', 'valgrind', 'gcc']);
if (!options.pin && !isPinned) fail(`${shown} is missing: ./dev bench figures --pin`);
const folder = scratch();
const profiles = allArms.wasi.filter((arm) => arm.ashlar);
const arms = chooseArms(profiles, options.arms);
await buildRunners(folder);
const shapes = await shapeNames(folder);
const works = chooseWorks([...traceNames(), ...shapes], { names, shapes });
const measured = await measure(works, arms, folder);
if (options.pin) write(measured.figures);
else compare(measured);
