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

// Which archive members or objects define the calls, by the map that wasm-ld or an ELF linker
// printed: {malloc: 'libc.a(dlmalloc.o)'}.
export const definersInMap = (mapText) => symbolsInMap(mapText, calls);

function symbolsInMap(mapText, pattern) {
  const definers = {};
  let input = null;
  for (const line of mapText.split('\n')) {
    const wasm = /^\s*(?:-|[0-9a-f]+)\s+[0-9a-f]+\s+[0-9a-f]+\s+(\S.*?)\s*$/.exec(line)?.[1];
    const elf = /\s0x[0-9a-f]+(?:\s+0x[0-9a-f]+)?\s+(\S+)$/.exec(line);
    const elfInput = elf && /\s0x\S+\s+0x\S+\s+\S+$/.test(line);
    const wasmInput = wasm && /^(\S.*?):\(.*\)$/.exec(wasm)?.[1];
    const symbol = wasm ?? elf?.[1];
    if (wasmInput || elfInput) input = path.basename(wasmInput || symbol);
    else if (symbol && pattern.test(symbol)) definers[symbol] = input;
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
  const map = fs.readFileSync(built.map, 'utf8');
  const definers = definersInMap(map);
  const allocators = new Set(Object.values(definers).map(ownerOf));
  const addInternals = (names) => {
    for (const name of internalsAmong(names)) {
      if (![...allocators].some((allocator) => allocator.includes(name))) allocators.add(name);
    }
  };
  addInternals(Object.keys(symbolsInMap(map, /./)));
  if (built.wasm) {
    addInternals(wasmFunctionNames(built.wasm));
    return {
      allocators: [...allocators].sort(),
      fingerprint: fingerprint(built.wasm),
      codeBytes: wasmBytes(built.wasm),
    };
  }
  const callsOf = async (file, args) =>
    (await nm(file, args)).map(({ name, type }) => ({ name: name.replace(/@.*/, ''), type }))
      .filter(({ name }) => calls.test(name));
  addInternals((await nm(built.file)).map(({ name }) => name));
  const dynamic = await callsOf(built.file, ['--dynamic']);
  const open = dynamic.filter(({ type }) => /[Uwv]/.test(type)).map(({ name }) => name);
  if (built.preload) {
    // The preloaded library comes before all others, for every call that it defines.
    const library = await callsOf(built.preload, ['--dynamic']);
    const served = library.filter(({ type }) => !/[Uwv]/.test(type)).map(({ name }) => name);
    if (served.length > 0) allocators.add('ashlar');
    if (!['malloc', 'free', ...open].every((name) => served.includes(name))) allocators.add('libc');
  } else if (open.length > 0 || !dynamic.some(({ name }) => name === 'malloc')) {
    // Left open, or defined but not exported to the shared libraries: the C library serves them.
    allocators.add('libc');
  }
  return {
    allocators: [...allocators].sort(),
    fingerprint: fingerprint(built.preload ?? built.file),
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
