// The allocators that the benches compare, and how each becomes something that runs: a wasm module
// with the work in it (for times in this Node), or the allocator alone, translated to C and
// compiled by gcc into a shared object (for instruction counts; lib/runner.c brings the work).
import fs from 'node:fs';
import path from 'node:path';
import { buildPath, emcc, nativeCompile, root, run, wasiCompile } from '../../demo/toolchain.mjs';
import { build, limit } from '../../demo/programs.mjs';
import { fail } from './report.mjs';

const here = path.join(root, 'bench');
const lib = (name) => path.join(here, 'lib', name);
const work = [lib('trace.c'), path.join(here, 'shapes.c')];
const ashlar = (folder) => buildPath(folder, 'libashlar.a');
const profiles = (target) => [
  { name: 'fast', ashlar: ashlar(target) },
  { name: 'bare', ashlar: ashlar(`${target}-bare`) },
  { name: 'small', ashlar: ashlar(`${target}-small`) },
];

// The first of a target is what its ratios are to; `again` is the same once more, and shows the
// noise; `slowed` is known to be slower (lib/slowed.c), and shows what can be told apart.
const wasi = [
  { name: 'dlmalloc' },
  { name: 'again' },
  { name: 'slowed', slowed: true },
  ...profiles('wasi'),
].map((arm) => ({ ...arm, target: 'wasi' }));

// lib/floors.c
const floors = ['bump', 'list', 'classes', 'pages'].map((floor) => ({
  name: floor,
  floor,
  target: 'wasi',
}));

// Brought by ./dev bench peers.
const mimalloc = buildPath('peers/mimalloc');
const peers = fs.existsSync(path.join(mimalloc, 'VERSION'))
  ? [{ name: 'mimalloc', peer: mimalloc, target: 'wasi' }]
  : [];

const emscripten = [
  { name: 'dlmalloc', malloc: 'dlmalloc' },
  { name: 'again', malloc: 'dlmalloc' },
  { name: 'slowed', malloc: 'dlmalloc', slowed: true },
  { name: 'emmalloc', malloc: 'emmalloc' },
  ...profiles('emscripten'),
].map((arm) => ({ ...arm, target: 'emscripten' }));

export const arms = { wasi: [...wasi, ...peers], floors, emscripten };

const readVersion = () => fs.readFileSync(path.join(mimalloc, 'VERSION'), 'utf8').trim();

// Which peers were measured, or how to have them.
export const peerFacts = () =>
  peers.length > 0
    ? { mimalloc: `${readVersion()}, its WASI layer` }
    : { mimalloc: 'left out: ./dev bench peers gets its source' };

// --arms A,B
export function chooseArms(known, names) {
  if (names === undefined) return known;
  const wanted = names.split(',');
  const unknown = wanted.find((name) => !known.some((arm) => arm.name === name));
  if (unknown) fail(`no arm '${unknown}'; there are: ${known.map((arm) => arm.name).join(', ')}`);
  return known.filter((arm) => wanted.includes(arm.name));
}

const functions = ['malloc', 'free', 'calloc', 'realloc', 'aligned_alloc'];

// clang itself optimises a module that is linked with -O by whichever wasm-opt is on the PATH; so
// sources are compiled first, and linked without it.
async function compileWasi(arm, source, folder, flags) {
  const object = path.join(folder, `${arm.name}-${path.basename(source, '.c')}.o`);
  await wasiCompile(['-O2', ...flags, '-c', source, '-o', object]);
  return object;
}

function compilePeer(arm, folder) {
  const include = ['include', 'src'].map((name) => `-I${path.join(arm.peer, name)}`);
  const flags = ['-DNDEBUG', '-DMI_MALLOC_OVERRIDE', ...include, '-w'];
  return compileWasi(arm, lib('mimalloc.c'), folder, flags);
}

// The inputs of a link that make malloc the arm's.
async function wasiAllocator(arm, folder) {
  const inputs = arm.slowed ? [await compileWasi(arm, lib('slowed.c'), folder, [])] : [];
  if (arm.floor) {
    const flags = ['-fno-builtin', '-mbulk-memory', `-DFLOOR=${arm.floor}`];
    inputs.push(await compileWasi(arm, lib('floors.c'), folder, flags));
  }
  if (arm.peer) inputs.push(await compilePeer(arm, folder));
  if (arm.ashlar) inputs.push(archiveOf(arm));
  return inputs;
}

function archiveOf(arm) {
  const missing = path.relative(root, arm.ashlar);
  if (!fs.existsSync(arm.ashlar)) fail(`${missing} is missing: ./dev build`);
  return arm.ashlar;
}

function workFlags(arm) {
  const flags = arm.slowed ? ['-DHEAP_PREFIX=slowed_'] : [];
  if (arm.ashlar) flags.push('-DWORK_ASHLAR', `-I${path.join(root, 'include')}`);
  return flags;
}

async function buildWasiModule(arm, folder, file) {
  const inputs = [];
  for (const source of work) inputs.push(await compileWasi(arm, source, folder, workFlags(arm)));
  inputs.push(...(await wasiAllocator(arm, folder)));
  await wasiCompile(['-mexec-model=reactor', ...inputs, '-o', file]);
}

async function linkEmscripten(arm, inputs, file) {
  const malloc = `-sMALLOC=${arm.malloc ?? 'none'}`;
  const settings = ['-sSTANDALONE_WASM', '-sALLOW_MEMORY_GROWTH', malloc];
  const library = arm.ashlar ? [archiveOf(arm)] : [];
  await emcc(['-O2', ...settings, ...inputs, ...library, '-o', file]);
}

async function buildEmscriptenModule(arm, file) {
  const inputs = ['--no-entry', ...workFlags(arm), ...work];
  if (arm.slowed) inputs.push(lib('slowed.c'));
  await linkEmscripten(arm, inputs, file);
}

// The arm with the work, as `arm.file`.
export async function buildModule(arm, folder) {
  const file = path.join(folder, `${arm.target}-${arm.name}.wasm`);
  if (arm.target === 'emscripten') await buildEmscriptenModule(arm, file);
  else await buildWasiModule(arm, folder, file);
  arm.file = file;
}

// The allocator alone, by no more than the linker: what the archive holds.
export async function linkAllocator(arm, folder, file, alsoExported = []) {
  if (arm.target === 'emscripten') {
    const exported = `-sEXPORTED_FUNCTIONS=${functions.map((name) => `_${name}`).join()}`;
    const empty = `${file}.c`;
    fs.writeFileSync(empty, '');
    await linkEmscripten(arm, ['--no-entry', exported, empty], file);
    return;
  }
  const prefix = arm.slowed ? 'slowed_' : '';
  const names = [...functions.map((name) => `${prefix}${name}`), ...alsoExported];
  // Otherwise the linker has every export run the constructors.
  if (arm.peer) names.push('__wasm_call_ctors');
  const exports = names.map((name) => `-Wl,--export=${name}`);
  const inputs = await wasiAllocator(arm, folder);
  if (!arm.ashlar && !arm.floor) inputs.push('-lc'); // also what a peer calls
  await wasiCompile(['-nostdlib', '-Wl,--no-entry', ...exports, ...inputs, '-o', file]);
}

const optimiser = path.join(root, 'node_modules/binaryen/bin/wasm-opt');
const strip = ['--strip-debug', '--strip-producers', '--strip-target-features'];

// The bytes of a module after wasm-opt -Oz.
export async function optimise(file) {
  const output = `${file}.opt`;
  const args = [optimiser, '-all', '-Oz', ...strip, file, '-o', output];
  const { status, stderr } = await run(process.execPath, args);
  if (status !== 0) fail(`wasm-opt refuses ${path.basename(file)}: ${stderr}`);
  return fs.readFileSync(output);
}

// The objects of one of the demo's programs for WASI, compiled unless they are there.
export async function objectsOf(program) {
  await build(program, 'wasi', 'own', { pool: limit(2) });
  const compiled = buildPath('demo', 'wasi', program);
  const names = fs.readdirSync(compiled).filter((name) => name.endsWith('.o'));
  return names.map((name) => path.join(compiled, name));
}

// A program with the arm as its malloc: lib/hello.c, or one of objects for WASI.
export async function linkProgram(arm, folder, file, objects) {
  if (arm.target === 'emscripten') {
    await linkEmscripten(arm, [lib('hello.c')], file);
    return;
  }
  const inputs = objects ?? [await compileWasi(arm, lib('hello.c'), folder, [])];
  await wasiCompile([...inputs, ...(await wasiAllocator(arm, folder)), '-o', file]);
}

// The arm as a shared object, as `arm.object`.
export async function buildObject(arm, folder) {
  const stem = path.join(folder, arm.name);
  await linkAllocator(arm, folder, `${stem}.wasm`, arm.ashlar ? ['ashlar_used_peak'] : []);
  const translated = await run('wasm2c', ['-n', 'arm', `${stem}.wasm`, '-o', `${stem}.c`]);
  if (translated.status !== 0) fail(`wasm2c refuses ${arm.name}: ${translated.stderr}`);
  const flags = ['-O2', '-shared', '-fPIC', '-fno-plt', '-fno-semantic-interposition'];
  // gcc would make calls of memmove out of memmove's own loop.
  flags.push('-fno-tree-loop-distribute-patterns', '-w', '-Wl,-Bsymbolic');
  flags.push(`-DARM_SOURCE="${stem}.c"`);
  await nativeCompile([...flags, lib('arm.c'), '-o', `${stem}.so`]);
  arm.object = `${stem}.so`;
}

// lib/runner.c with the work. slowed.c's functions have other names, so it has a runner of its own.
export const runnerOf = (arm, folder) => path.join(folder, arm.slowed ? 'runner-slowed' : 'runner');

export async function buildRunners(folder) {
  const inputs = ['-O2', '-DHEAP_PREFIX=arm_heap_', lib('runner.c'), ...work, '-ldl'];
  const slowed = '-DARM_PREFIX="slowed_"';
  await nativeCompile([...inputs, '-o', runnerOf({}, folder)]);
  await nativeCompile([...inputs, slowed, '-o', runnerOf({ slowed: true }, folder)]);
}
