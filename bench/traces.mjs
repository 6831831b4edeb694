// ./dev bench traces [--smoke] [TRACE...]: replays recorded allocation traces as WASI modules in this Node,
// with Ashlar's profiles and with the toolchain's malloc. Two figures for each: linear memory grown
// over the bytes live at the peak, and the time of the whole replay as a ratio to the toolchain's
// malloc, best of interleaved runs. The replay itself is a part of every time, so the ratios are
// nearer to 1 than the allocators are; a second arm of the toolchain's malloc shows the noise.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { WASI } from 'node:wasi';
import { buildPath, root, wasiCompile } from '../demo/toolchain.mjs';

const { values: options, positionals } = parseArgs({
  options: { smoke: { type: 'boolean', default: false }, one: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const runs = options.smoke ? 1 : 9;

const arms = [
  { name: 'toolchain' },
  { name: 'toolchain again' },
  { name: 'fast', library: buildPath('wasi', 'libashlar.a') },
  { name: 'bare', library: buildPath('wasi-bare', 'libashlar.a') },
  { name: 'small', library: buildPath('wasi-small', 'libashlar.a') },
];

const fail = (words) => {
  console.error(`bench: ${words}`);
  process.exit(1);
};

function chooseTraces() {
  const recorded = fs
    .readdirSync(path.join(root, 'tests/traces'))
    .filter((name) => name.endsWith('.mtr.xz'))
    .map((name) => name.slice(0, -'.mtr.xz'.length));
  for (const name of positionals) {
    if (!recorded.includes(name)) fail(`no trace '${name}'; there are: ${recorded.join(', ')}`);
  }
  const chosen = positionals.length > 0 ? positionals : recorded;
  return options.smoke ? chosen.slice(0, 1) : chosen;
}

async function build(arm, folder) {
  if (arm.library && !fs.existsSync(arm.library)) fail(`${path.relative(root, arm.library)} is missing: ./dev build`);
  const file = path.join(folder, `${arm.name.replace(' ', '-')}.wasm`);
  const source = path.join(root, 'tests/replay/replay.c');
  const include = `-I${path.join(root, 'include')}`;
  await wasiCompile(['-O2', include, source, ...(arm.library ? [arm.library] : []), '-o', file]);
  arm.file = file;
}

// One replay in a process of its own, which `node bench/traces.mjs --one FILE TRACE` is.
function replay(arm, trace) {
  const child = spawnSync(
    process.execPath,
    ['--no-warnings', fileURLToPath(import.meta.url), '--one', arm.file, trace],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  );
  if (child.status !== 0) fail(`${arm.name} failed on ${trace}: ${child.stdout}${child.stderr}`);
  const facts = JSON.parse(child.stdout);
  const { ms, grown } = JSON.parse(child.output[3]);
  return { ms, growth: grown / facts.peak_live_bytes, checksum: facts.checksum };
}

function replayHere(file, trace) {
  const module = new WebAssembly.Module(fs.readFileSync(file));
  const preopens = { '/t': buildPath('traces') };
  const args = ['replay', `/t/${trace}.mtr`, 'plain'];
  const wasi = new WASI({ version: 'preview1', args, preopens, returnOnExit: true });
  const instance = new WebAssembly.Instance(module, wasi.getImportObject());
  const { memory } = instance.exports;
  const before = memory.buffer.byteLength;
  const start = process.hrtime.bigint();
  process.exitCode = wasi.start(instance);
  const ms = Number(process.hrtime.bigint() - start) / 1e6;
  fs.writeSync(3, JSON.stringify({ ms, grown: memory.buffer.byteLength - before }));
}

function measure(trace) {
  for (const arm of arms) Object.assign(arm, { best: Infinity, growth: 0 });
  const checksums = new Set();
  for (let run = 0; run <= runs; run += 1) {
    for (const arm of arms) {
      const { ms, growth, checksum } = replay(arm, trace);
      // The first only warms up.
      if (run > 0) arm.best = Math.min(arm.best, ms);
      arm.growth = growth;
      checksums.add(checksum);
    }
    process.stderr.write(`\rbench: ${trace}, run ${run} of ${runs} `);
  }
  process.stderr.write('\n');
  if (checksums.size !== 1) fail(`${trace}: the allocators' replays differ`);
}

async function main() {
  const traces = chooseTraces();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-bench-'));
  try {
    for (const arm of arms) await build(arm, folder);
    const compiler = spawnSync('clang-22', ['--version']).stdout?.toString().split('\n')[0] ?? 'wasi-sdk';
    console.log(`Node ${process.version}, ${os.cpus()[0].model}, ${compiler}; best of ${runs}`);
    console.log(['trace'.padEnd(8), ...arms.map((arm) => arm.name.padStart(16))].join(''));
    for (const trace of traces) {
      measure(trace);
      const base = arms[0].best;
      const row = (label, cell) => console.log([label.padEnd(8), ...arms.map((arm) => cell(arm).padStart(16))].join(''));
      row(trace, (arm) => `${arm.growth.toFixed(2)}x memory`);
      row('', (arm) => `${(arm.best / base).toFixed(2)} of time`);
    }
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

if (options.one) {
  replayHere(...positionals);
} else {
  await main();
}
