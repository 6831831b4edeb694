// ./dev bench size [--smoke]
//
// Bytes of wasm, as they are and gzipped: a module that exports malloc, free, calloc, realloc and
// aligned_alloc and nothing else, and a hello-world with that malloc; all after wasm-opt -Oz, which
// also takes the names away. The same in every run.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { root, run } from '../demo/toolchain.mjs';
import { arms, peerFacts, linkAllocator, linkProgram } from './lib/arms.mjs';
import { fail, inParallel, machineFacts, parse, progress } from './lib/report.mjs';
import { publish, scratch, versionOf } from './lib/report.mjs';

const { values: options } = parse({ smoke: { type: 'boolean', default: false } });

const folder = scratch();
const optimiser = path.join(root, 'node_modules/binaryen/bin/wasm-opt');
const strip = ['--strip-debug', '--strip-producers', '--strip-target-features'];

async function bytesOf(file) {
  const output = `${file}.opt`;
  const args = [optimiser, '-all', '-Oz', ...strip, file, '-o', output];
  const { status, stderr } = await run(process.execPath, args);
  if (status !== 0) fail(`wasm-opt refuses ${path.basename(file)}: ${stderr}`);
  const wasm = fs.readFileSync(output);
  return { raw: wasm.length, gzip: zlib.gzipSync(wasm, { level: 9 }).length };
}

async function measure(arm) {
  const alone = path.join(folder, `${arm.target}-${arm.name}.wasm`);
  const hello = path.join(folder, `${arm.target}-${arm.name}-hello.wasm`);
  await linkAllocator(arm, folder, alone);
  await linkProgram(arm, folder, hello);
  return { allocator: await bytesOf(alone), hello: await bytesOf(hello) };
}

// A second and a slowed dlmalloc would say nothing here.
const isMeasured = ({ name, target }) =>
  options.smoke ? target === 'wasi' && name === 'small' : !['again', 'slowed'].includes(name);
const measured = [...arms.wasi, ...arms.emscripten].filter(isMeasured);

await inParallel(
  measured.map((arm) => async () => {
    arm.bytes = await measure(arm);
    progress(`${arm.target}'s ${arm.name} measured`);
  }),
);
progress();
const facts = machineFacts({ part: options.smoke, ...peerFacts(), emscripten: versionOf('emcc') });
const rows = ['allocator', 'hello'].flatMap((what) =>
  ['raw', 'gzip'].map((form) => ({ name: `${what}, ${form}`, what, form })),
);
for (const target of new Set(measured.map((arm) => arm.target))) {
  const ofTarget = measured.filter((arm) => arm.target === target);
  publish({
    name: `size-${target}`,
    title: `${target}: bytes of wasm`,
    facts,
    works: rows,
    columns: ofTarget.map((arm) => arm.name),
    figure: ({ what, form }, column) =>
      ofTarget.find((arm) => arm.name === column).bytes[what][form],
    digits: 0,
  });
}
