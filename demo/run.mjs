#!/usr/bin/env node
// The demonstration: real programs with their toolchain's malloc and with Ashlar, side by side.
//   node demo/run.mjs [--only NAME,...] [--all] [--runs N] [--jobs N] [--json]
// NAME is a program (sqlite, leveldb), a variant (wasi, emscripten-O3, native-preload) or the first
// part of some (emscripten, native). Without --only and --all: WASI and Emscripten -O2.
// Exits with 1 when a comparison fails, and says why.

import os from 'node:os';
import { compare, faults } from './check.mjs';
import { build, limit, programs, variants } from './programs.mjs';

function usage(message) {
  process.stderr.write(`demo: ${message}\nusage: node demo/run.mjs [--only NAME,...] [--all]`
    + ` [--runs N] [--jobs N] [--json]\n  programs: ${Object.keys(programs).join(' ')}\n`
    + `  variants: ${Object.keys(variants).join(' ')}\n`);
  process.exit(2);
}

function parse(args) {
  const options = { only: [], all: false, runs: 3, jobs: os.availableParallelism(), json: false };
  for (let index = 0; index < args.length; index++) {
    const [flag, attached] = args[index].split('=', 2);
    const value = () => attached ?? args[++index] ?? usage(`${flag} needs a value`);
    if (flag === '--only') options.only.push(...value().split(','));
    else if (flag === '--all') options.all = true;
    else if (flag === '--runs') options.runs = Number(value());
    else if (flag === '--jobs') options.jobs = Number(value());
    else if (flag === '--json') options.json = true;
    else usage(`unknown argument ${args[index]}`);
  }
  if (!(options.runs >= 1) || !(options.jobs >= 1)) usage('--runs and --jobs need a number');
  return options;
}

function select(options) {
  const matches = (name, word) => name === word || name.startsWith(`${word}-`);
  const names = [...Object.keys(programs), ...Object.keys(variants)];
  const unknown = options.only.find((word) => !names.some((name) => matches(name, word)));
  if (unknown !== undefined) usage(`nothing is called ${unknown}`);
  const chosen = (list, usual) => {
    const named = list.filter((name) => options.only.some((word) => matches(name, word)));
    return named.length ? named : usual;
  };
  const everyVariant = Object.keys(variants);
  return {
    programNames: chosen(Object.keys(programs), Object.keys(programs)),
    variantNames: chosen(everyVariant, options.all ? everyVariant : ['wasi', 'emscripten-O2']),
  };
}

const number = (value) => value.toLocaleString('en-US');
const mebibytes = (bytes) => (bytes / 1048576).toFixed(2);

function table(results) {
  const rows = [[
    'program', 'variant', 'malloc', 'output', 'ms', 'ratio', 'memory MiB', 'code bytes',
    'allocations',
  ]];
  for (const { program, variant, own, ashlar } of results) {
    for (const [side, facts] of Object.entries({ own, ashlar })) {
      rows.push([
        program, variant, side === 'own' ? facts.allocators.join(' ') : 'Ashlar',
        facts.hash.slice(0, 12),
        facts.milliseconds?.toFixed(0) ?? '-',
        side === 'ashlar' && own.milliseconds && facts.milliseconds
          ? (facts.milliseconds / own.milliseconds).toFixed(2) : '',
        mebibytes(facts.memoryBytes), number(facts.codeBytes),
        number(facts.report?.allocations ?? 0),
      ]);
    }
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows.map((row) => row.map((cell, column) => (
    column < 4 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])
  )).join('  ').trimEnd()).join('\n');
}

async function main() {
  const options = parse(process.argv.slice(2));
  const { programNames, variantNames } = select(options);
  const pool = limit(options.jobs);
  const begin = Date.now();
  const progress = (text) => {
    const seconds = ((Date.now() - begin) / 1000).toFixed(0).padStart(3);
    process.stderr.write(`demo ${seconds} s  ${text}\n`);
  };
  const pairs = variantNames.flatMap((variant) =>
    programNames.map((program) => ({ program, variant })));
  // Everything is built before anything is timed.
  const builds = await Promise.all(pairs.map(({ program, variant }) => Promise.all(
    ['own', 'ashlar'].map((malloc) => build(program, variant, malloc, { pool, progress })),
  )));
  const results = [];
  for (const [index, { program, variant }] of pairs.entries()) {
    progress(`${variant}: running ${program}, ${options.runs} times with each malloc`);
    const [own, ashlar] = builds[index];
    const sides = await compare(own, ashlar, { runs: options.runs });
    const found = faults(sides);
    for (const side of Object.values(sides)) delete side.stdout;
    results.push({ program, variant, ...sides, faults: found });
  }
  if (options.json) process.stdout.write(`${JSON.stringify(results, null, 2)}\n`);
  else {
    process.stdout.write(`${table(results)}\n`
      + 'output: hash of what the program printed. ms: best run. ratio: of the best runs. memory:\n'
      + 'linear memory at the end, natively the peak of resident memory. code: of the .wasm without\n'
      + 'names, natively of the executable. allocations: served by Ashlar.\n');
  }
  const failed = results.filter((result) => result.faults.length > 0);
  for (const { program, variant, faults: reasons } of failed) {
    for (const reason of reasons) process.stderr.write(`FAILED ${program} ${variant}: ${reason}\n`);
  }
  process.exitCode = failed.length ? 1 : 0;
}

main().catch((error) => {
  process.stderr.write(`demo: ${error.message}\n`);
  process.exitCode = 1;
});
