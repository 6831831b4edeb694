// ./dev bench size [--smoke]
//
// Bytes of wasm, as they are and gzipped: a module that exports malloc, free, calloc, realloc and
// aligned_alloc and nothing else, a hello-world with that malloc, and for WASI the demo's SQLite;
// all after wasm-opt -Oz, which also takes the names away. The same in every run.
import path from 'node:path';
import zlib from 'node:zlib';
import { arms, linkAllocator, linkProgram, objectsOf, optimise, peerFacts } from './lib/arms.mjs';
import { inParallel, machineFacts, parse, progress } from './lib/report.mjs';
import { publish, scratch, versionOf } from './lib/report.mjs';

const { values: options } = parse({ smoke: { type: 'boolean', default: false } });

const folder = scratch();
const sqlite = options.smoke ? [] : await objectsOf('sqlite');
async function bytesOf(file) {
  const wasm = await optimise(file);
  return { raw: wasm.length, gzip: zlib.gzipSync(wasm, { level: 9 }).length };
}

async function measure(arm) {
  const file = (what) => path.join(folder, `${arm.target}-${arm.name}-${what}.wasm`);
  await linkAllocator(arm, folder, file('alone'));
  await linkProgram(arm, folder, file('hello'));
  const bytes = { allocator: await bytesOf(file('alone')), hello: await bytesOf(file('hello')) };
  if (sqlite.length > 0 && arm.target === 'wasi') {
    await linkProgram(arm, folder, file('sqlite'), sqlite);
    bytes.sqlite = await bytesOf(file('sqlite'));
  }
  return bytes;
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
const rows = ['allocator', 'hello', 'sqlite'].flatMap((what) =>
  ['raw', 'gzip'].map((form) => ({ name: `${what}, ${form}`, what, form })),
);
for (const target of new Set(measured.map((arm) => arm.target))) {
  const ofTarget = measured.filter((arm) => arm.target === target);
  publish({
    name: `size-${target}`,
    title: `${target}: bytes of wasm`,
    facts,
    works: rows.filter(({ what }) => ofTarget[0].bytes[what]),
    columns: ofTarget.map((arm) => arm.name),
    figure: ({ what, form }, column) =>
      ofTarget.find((arm) => arm.name === column).bytes[what][form],
    digits: 0,
  });
}
