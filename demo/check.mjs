// Judges a comparison of one program under two mallocs. Nothing here trusts how a program was
// built: what counts is what its binary holds and what its run reported.

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { nm, runEmscripten, runNative, runWasi } from './toolchain.mjs';

export const minAllocations = 100_000;
export const minLivePeakBytes = 8 * 1024 * 1024;

// Functions that only an allocator of this name has; seen in a name section or a symbol table.
const internals = {
  dlmalloc: /^(dlmalloc|dlfree|dlrealloc|dlcalloc|dlmemalign|tmalloc_(small|large)|sys_alloc|prepend_alloc|dispose_chunk|try_realloc_chunk)$/,
  emmalloc: /^(attempt_allocate|allocate_memory|claim_more_memory|link_to_free_list)$/,
  mimalloc: /^_?mi_(malloc|free|heap_malloc|page_)/,
};

// The calls by which a program allocates: who defines them is its malloc.
const calls = /^(malloc|calloc|realloc|free|posix_memalign|aligned_alloc|memalign|valloc|pvalloc|reallocarray|malloc_usable_size|__libc_(malloc|calloc|realloc|free|memalign)|emscripten_builtin_(malloc|calloc|realloc|free|memalign))$/;

function readLeb(bytes, position) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[position++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, position];
  }
}

// Sections of a module: [{id, name, start, end, size}], name for custom ones, size with its header.
function wasmSections(bytes) {
  const sections = [];
  for (let position = 8; position < bytes.length;) {
    const begin = position;
    const id = bytes[position];
    let length;
    [length, position] = readLeb(bytes, position + 1);
    const end = position + length;
    let name = null;
    let start = position;
    if (id === 0) {
      const [size, at] = readLeb(bytes, position);
      name = bytes.toString('utf8', at, at + size);
      start = at + size;
    }
    sections.push({ id, name, start, end, size: end - begin });
    position = end;
  }
  return sections;
}

// Bytes of a module without its custom sections, as it would be shipped.
export function wasmBytes(file) {
  const bytes = fs.readFileSync(file);
  const custom = wasmSections(bytes).filter(({ id }) => id === 0);
  return bytes.length - custom.reduce((sum, { size }) => sum + size, 0);
}

// Names of a module's functions, from its name section; [] when it was stripped.
export function wasmFunctionNames(file) {
  const bytes = fs.readFileSync(file);
  const section = wasmSections(bytes).find(({ name }) => name === 'name');
  const names = [];
  for (let position = section?.start ?? bytes.length; position < (section?.end ?? 0);) {
    const kind = bytes[position];
    let length;
    let count;
    [length, position] = readLeb(bytes, position + 1);
    const end = position + length;
    if (kind === 1) {
      [count, position] = readLeb(bytes, position);
      for (let index = 0; index < count; index++) {
        let size;
        [, position] = readLeb(bytes, position);
        [size, position] = readLeb(bytes, position);
        names.push(bytes.toString('utf8', position, position + size));
        position += size;
      }
    }
    position = end;
  }
  return names;
}

// Which archive members or objects define the calls, by wasm-ld's map: {malloc: 'libc.a(dlmalloc.o)'}.
export function definersInMap(mapText) {
  const definers = {};
  let input = null;
  for (const line of mapText.split('\n')) {
    const match = /^\s*(?:-|[0-9a-f]+)\s+[0-9a-f]+\s+[0-9a-f]+\s+(.*)$/.exec(line);
    if (!match) continue;
    const section = /^(\S.*?):\((.*)\)$/.exec(match[1].trim());
    if (section) input = path.basename(path.dirname(`${section[1]}/x`));
    else if (calls.test(match[1].trim())) definers[match[1].trim()] = input;
  }
  return definers;
}

const ownerOf = (definer) => (/^libashlar(-core)?\.a\(/.test(definer) ? 'ashlar' : definer);

function internalsAmong(names) {
  const found = Object.entries(internals)
    .filter(([, pattern]) => names.some((name) => pattern.test(name)));
  return found.map(([allocator]) => allocator);
}

// The fingerprint that a file holds, 'ashlar VERSION PROFILE', or null.
export function fingerprint(file) {
  return /ashlar \d+\.\d+\.\d+ [a-z]+/.exec(fs.readFileSync(file, 'latin1'))?.[0] ?? null;
}

// What a built program (programs.mjs, build) holds:
//   allocators: who serves its calls: 'ashlar', or the object or library that defines them
//   fingerprint, codeBytes (of the .wasm without custom sections, of the executable natively)
export async function inspect(built) {
  if (built.wasm) {
    const definers = definersInMap(fs.readFileSync(built.map, 'utf8'));
    const allocators = new Set(Object.values(definers).map(ownerOf));
    for (const name of internalsAmong(wasmFunctionNames(built.wasm))) {
      if (![...allocators].some((allocator) => allocator.includes(name))) allocators.add(name);
    }
    return {
      allocators: [...allocators].sort(),
      fingerprint: fingerprint(built.wasm),
      codeBytes: wasmBytes(built.wasm),
    };
  }
  const holder = built.preload ?? built.file;
  const allocators = new Set();
  const symbols = await nm(built.file);
  const callsOf = (list) => list.filter(({ name }) => calls.test(name.replace(/@.*/, '')));
  const ours = symbols.some(({ name, type }) => name === 'ashlar_malloc' && type !== 'U');
  for (const { type } of callsOf(symbols)) {
    // What the executable leaves open is served by the first library that has it.
    if (/[UwV]/.test(type)) allocators.add('libc');
    else allocators.add(ours ? 'ashlar' : built.file);
  }
  internalsAmong(symbols.map(({ name }) => name)).forEach((name) => allocators.add(name));
  const open = callsOf(await nm(built.file, ['--dynamic']));
  if (built.preload) {
    const library = callsOf(await nm(built.preload, ['--dynamic']));
    const served = new Set(library.filter(({ type }) => type !== 'U').map(({ name }) => name));
    const plain = open.map(({ name }) => name.replace(/@.*/, ''));
    if (plain.every((name) => served.has(name))) allocators.delete('libc');
    allocators.add('ashlar');
  } else if (ours && !open.some(({ name, type }) => name === 'malloc' && type !== 'U')) {
    // Defined, but not exported: the C library and libstdc++ would keep using another one.
    allocators.add('libc');
  }
  return {
    allocators: [...allocators].sort(),
    fingerprint: fingerprint(holder),
    codeBytes: fs.statSync(built.file).size,
  };
}

function parseReport(stderr) {
  const line = /^ashlar-demo: (.*) version=(.*)$/m.exec(stderr);
  if (!line) return null;
  const fields = Object.fromEntries(line[1].split(' ').map((field) => field.split('=')));
  return {
    allocations: Number(fields.allocations),
    livePeakBytes: Number(fields.live_peak),
    usedPeakBytes: Number(fields.used_peak),
    rssBytes: Number(fields.rss),
    milliseconds: Number(fields.us) / 1000,
    version: line[2],
  };
}

// One run of a built program: {failure, hash, outputBytes, stdout, memoryBytes, report}.
export async function execute(built) {
  const options = { stdin: fs.readFileSync(built.script) };
  const env = built.preload ? { LD_PRELOAD: built.preload } : {};
  const hosts = { wasi: runWasi, emscripten: runEmscripten, native: runNative };
  const result = await hosts[built.kind](built.file, { ...options, env });
  const report = parseReport(result.stderr);
  let failure = null;
  if (result.trap) failure = `died: ${result.trap}`;
  else if (result.signal) failure = `died by ${result.signal}`;
  else if (result.status !== 0) failure = `exit code ${result.status}`;
  else if (!report) failure = 'printed no report line';
  const spoken = failure ? result.stderr.trim().split('\n').slice(0, 4).join(' / ') : '';
  return {
    failure: spoken ? `${failure} (${spoken})` : failure,
    stdout: result.stdout,
    hash: createHash('sha256').update(result.stdout).digest('hex'),
    outputBytes: Buffer.byteLength(result.stdout),
    memoryBytes: result.memoryBytes || (report?.rssBytes ?? 0),
    report,
  };
}

// Runs both builds `runs` times each, in turns, and returns {own, ashlar}: each what inspect() and
// the first execute() say, with the best time of all runs. A run that differs from the first of its
// build counts as a failure.
export async function compare(builtOwn, builtAshlar, { runs = 1 } = {}) {
  const sides = { own: builtOwn, ashlar: builtAshlar };
  const result = {};
  for (const [side, built] of Object.entries(sides)) result[side] = await inspect(built);
  for (let round = 0; round < runs; round++) {
    for (const [side, built] of Object.entries(sides)) {
      const run = await execute(built);
      const facts = result[side];
      if (round === 0) Object.assign(facts, run, { milliseconds: run.report?.milliseconds ?? null });
      else if (!run.failure && run.hash !== facts.hash) run.failure = 'two runs print differently';
      facts.failure ??= run.failure;
      if (run.report) facts.milliseconds = Math.min(facts.milliseconds, run.report.milliseconds);
    }
  }
  return result;
}

// Why a comparison does not show that Ashlar replaced malloc; [] when it does.
export function faults({ own, ashlar }) {
  const found = [];
  const fault = (condition, text) => condition && found.push(text);
  fault(own.failure, `with its own malloc: ${own.failure}`);
  fault(ashlar.failure, `with Ashlar: ${ashlar.failure}`);
  fault(own.outputBytes === 0 || ashlar.outputBytes === 0, 'no output to compare');
  fault(own.hash !== ashlar.hash, `outputs differ: ${own.hash} and ${ashlar.hash}`);
  const allocations = ashlar.report?.allocations ?? 0;
  fault(allocations < minAllocations, `Ashlar counted ${allocations} allocations, too few`);
  const peak = ashlar.report?.livePeakBytes ?? 0;
  fault(peak < minLivePeakBytes, `at most ${peak} bytes were live, too few`);
  fault(!ashlar.allocators.includes('ashlar'), 'Ashlar is not in the binary');
  const others = ashlar.allocators.filter((name) => name !== 'ashlar');
  fault(others.length > 0, `a second allocator is in the binary: ${others.join(', ')}`);
  fault(ashlar.fingerprint === null, 'no fingerprint in the binary');
  fault(
    ashlar.report && ashlar.fingerprint && ashlar.report.version !== ashlar.fingerprint,
    `the run says ${ashlar.report?.version}, the binary ${ashlar.fingerprint}`,
  );
  // The other side shows that the checks can see: it must hold another allocator, and no Ashlar.
  fault(own.allocators.length === 0, 'no allocator was found in the build without Ashlar');
  fault(own.allocators.includes('ashlar'), 'Ashlar is in the build that should not have it');
  fault((own.report?.allocations ?? 0) !== 0, 'Ashlar counted in the build without it');
  return found;
}
