// Builds and runs the programs of tests/node/programs. A program is linked once per target, profile
// and set of options (build/tests-node, named by a hash of all that goes in) and started as a fresh
// instance for every case. Hosts offer only what such a program needs: a write, and nothing else.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import {
  buildPath, emcc, findEmscripten, findWasi, root, wasiCompile,
} from '../../demo/toolchain.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const programs = path.join(here, 'programs');
const outputs = buildPath('tests-node');
// Another build tree, so that a test can be tried on a core that was broken on purpose.
const archives = process.env.ASHLAR_BUILD_DIR ?? buildPath();

export const profiles = ['fast', 'small', 'bare'];

// How a program is linked. Emscripten is linked at -O1: above, its glue renames the exports.
const exported = ['malloc', 'free', 'calloc', 'realloc', 'ashlar_last_message', 'ashlar_check'];
const glue = [
  '-O1',
  '--no-entry',
  `-sEXPORTED_FUNCTIONS=${exported.map((name) => `_${name}`).join(',')}`,
];
const javascript = [
  ...glue,
  '-sMODULARIZE',
  '-sENVIRONMENT=node',
  '-sNODEJS_CATCH_EXIT=0',
  '-sNODEJS_CATCH_REJECTION=0',
];
const reactor = ['-mexec-model=reactor', ...exported.map((name) => `-Wl,--export=${name}`)];
export const kinds = {
  // Memory made by the module, up to 4 GiB.
  wasi: { target: 'wasi', flags: reactor, output: 'wasm' },
  // Memory made by the host, which chooses where it ends.
  'wasi-limit': {
    target: 'wasi',
    flags: [...reactor, '-Wl,--import-memory', '-Wl,--initial-memory=1048576'],
    output: 'wasm',
    initialPages: 16,
  },
  // The host makes the memory here too.
  'emscripten-growth': {
    target: 'emscripten',
    flags: [
      ...javascript,
      '-sALLOW_MEMORY_GROWTH',
      '-sMAXIMUM_MEMORY=4GB',
      '-sIMPORTED_MEMORY',
    ],
    output: 'js',
    initialPages: 256,
  },
  'emscripten-fixed': {
    target: 'emscripten',
    flags: [...javascript, '-sINITIAL_MEMORY=32MB', '-sABORTING_MALLOC=0'],
    output: 'js',
  },
  'emscripten-standalone': {
    target: 'emscripten',
    flags: [...glue, '-sSTANDALONE_WASM', '-sALLOW_MEMORY_GROWTH', '-sMAXIMUM_MEMORY=128MB'],
    output: 'wasm',
  },
};

export function archive(target, profile = 'fast', name = 'libashlar.a') {
  const folder = profile === 'fast' ? target : `${target}-${profile}`;
  const file = path.join(archives, folder, name);
  if (!fs.existsSync(file)) {
    throw new Error(`${path.relative(root, file)} is missing: run ./dev build first`);
  }
  return file;
}

const digest = (parts) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex').slice(0, 12);
};

// Makes a file under its final name at once: test files run beside each other.
async function makeOnce(stem, key, extension, make) {
  const file = path.join(outputs, `${stem}-${key}.${extension}`);
  if (fs.existsSync(file)) return file;
  fs.mkdirSync(outputs, { recursive: true });
  const folder = fs.mkdtempSync(path.join(outputs, 'new-'));
  try {
    await make(path.join(folder, path.basename(file)));
    // The file that says all is there comes last.
    const last = (name) => Number(name.endsWith(`.${extension}`));
    const made = fs.readdirSync(folder).sort((a, b) => last(a) - last(b));
    for (const name of made) fs.renameSync(path.join(folder, name), path.join(outputs, name));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
  // What was made from older inputs.
  for (const name of fs.readdirSync(outputs)) {
    if (!name.startsWith(`${stem}-`)) continue;
    const madeFrom = /^([0-9a-f]{12})\./.exec(name.slice(stem.length + 1));
    if (madeFrom && madeFrom[1] !== key) fs.rmSync(path.join(outputs, name), { force: true });
  }
  return file;
}

const headers = () => [path.join(programs, 'cases.h'), path.join(root, 'include/ashlar.h')];
const compilers = {
  wasi: { compile: wasiCompile, kind: () => findWasi().kind },
  emscripten: { compile: emcc, kind: () => findEmscripten().kind },
};

// Compiles one source of tests/node/programs (or a path) to an object.
export async function compileObject(target, source, flags = []) {
  const file = path.resolve(programs, source);
  const { compile, kind } = compilers[target];
  // -fno-builtin: the compiler may otherwise remove what is to be tested.
  const warnings = ['-Wall', '-Wextra', '-Werror', '-Wno-unused-result'];
  const standard = source.endsWith('.cc') ? ['-std=c++17'] : [];
  const all = ['-c', '-O2', '-fno-builtin', ...warnings, ...standard, ...flags];
  const inputs = [file, ...headers()].map((name) => fs.readFileSync(name));
  const key = digest([kind(), ...all, ...inputs]);
  const name = `${path.basename(source)}-${target}${flags.join('')}`.replace(/[^\w+-]/g, '_');
  return makeOnce(name, key, 'o', (output) =>
    compile([...all, `-I${path.join(root, 'include')}`, `-I${programs}`, file, '-o', output]),
  );
}

// Links objects with an archive (null: none) to a .wasm, or to a .js with its .wasm beside it.
export async function link(target, stem, objects, library, flags, extension, options = {}) {
  const { compile, kind } = compilers[target];
  const inputs = [...objects, ...(library ? [library] : [])];
  const contents = inputs.map((name) => fs.readFileSync(name));
  const key = digest([kind(), extension, ...flags, ...contents]);
  return makeOnce(stem, key, extension, (output) =>
    compile([...inputs, ...flags, '-o', output], options),
  );
}

const everyCase = [
  'cases.c', 'rows_a.c', 'rows_b.c', 'rows_c.c', 'rows_d.c', 'rows_i.c',
  'semantics.c', 'misuse.c', 'model.c', 'coexist.c',
];

// A program of one kind from some sources: {file, name, and what `kinds` says}. Options: flags for
// the link, compileFlags, library: null or the path of an archive instead of the profile's.
export async function makeProgram(stem, kindName, sources, options = {}) {
  const { profile = 'fast', flags = [], compileFlags = [] } = options;
  const kind = kinds[kindName];
  const library = options.library === undefined ? archive(kind.target, profile) : options.library;
  const objects = [];
  for (const source of sources) {
    objects.push(await compileObject(kind.target, source, compileFlags));
  }
  const cxx = sources.some((source) => source.endsWith('.cc'));
  const all = [...kind.flags, ...flags];
  const name = `${stem}-${kindName}-${profile}`;
  const file = await link(kind.target, name, objects, library, all, kind.output, { cxx });
  return { file, ...kind, name: kindName };
}

// The program that holds all cases of everyCase.
export const casesProgram = (kindName, profile) =>
  makeProgram('cases', kindName, everyCase, { profile });

// Several at once, two at a time.
export async function buildAll(jobs) {
  const results = new Array(jobs.length);
  let next = 0;
  const work = async () => {
    while (next < jobs.length) {
      const index = next++;
      results[index] = await jobs[index]();
    }
  };
  await Promise.all([work(), work()]);
  return results;
}

// ---- toolchains of a user's

// A tree shaped like wasi-sdk. Its toolchain file is a tree's own, so one of the same shape is made.
export function makeWasiSdk(folder) {
  const sdk = path.join(folder, 'wasi-sdk');
  fs.rmSync(sdk, { recursive: true, force: true });
  fs.mkdirSync(path.join(sdk, 'bin'), { recursive: true });
  fs.mkdirSync(path.join(sdk, 'share/cmake/Platform'), { recursive: true });
  const { cc, cxx } = findWasi();
  for (const [name, compiler] of [['clang', cc], ['clang++', cxx]]) {
    // The real one's clang knows its target and its sysroot.
    const known = `--target=wasm32-wasip1 --sysroot=${sdk}/share/wasi-sysroot`;
    const script = `#!/bin/sh\nexec ${compiler} ${known} "$@"\n`;
    fs.writeFileSync(path.join(sdk, 'bin', name), script, { mode: 0o755 });
  }
  for (const tool of ['ar', 'ranlib', 'nm']) {
    const script = `#!/bin/sh\nexec llvm-${tool}-22 "$@"\n`;
    fs.writeFileSync(path.join(sdk, 'bin', `llvm-${tool}`), script, { mode: 0o755 });
  }
  fs.symlinkSync(buildPath('toolchain/wasi-sysroot'), path.join(sdk, 'share/wasi-sysroot'));
  fs.writeFileSync(path.join(sdk, 'share/cmake/Platform/WASI.cmake'), 'set(WASI 1)\n');
  fs.writeFileSync(path.join(sdk, 'share/cmake/wasi-sdk.cmake'), `
list(APPEND CMAKE_MODULE_PATH \${CMAKE_CURRENT_LIST_DIR})
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_VERSION 1)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
get_filename_component(sdk \${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(CMAKE_C_COMPILER \${sdk}/bin/clang)
set(CMAKE_CXX_COMPILER \${sdk}/bin/clang++)
set(CMAKE_AR \${sdk}/bin/llvm-ar)
set(CMAKE_RANLIB \${sdk}/bin/llvm-ranlib)
set(CMAKE_C_COMPILER_TARGET wasm32-wasip1)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasip1)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
`);
  return sdk;
}

// ---- running

const modules = new Map();
function compiled(file) {
  if (!modules.has(file)) modules.set(file, new WebAssembly.Module(fs.readFileSync(file)));
  return modules.get(file);
}

function wasiImports(memory, output) {
  const view = () => new DataView(memory().buffer);
  const none = () => 0;
  return {
    fd_write(descriptor, vectors, count, written) {
      let bytes = 0;
      for (let index = 0; index < count; index++) {
        const address = view().getUint32(vectors + 8 * index, true);
        const length = view().getUint32(vectors + 8 * index + 4, true);
        const bytesOut = Buffer.from(new Uint8Array(memory().buffer, address, length));
        output(descriptor, bytesOut.toString());
        bytes += length;
      }
      view().setUint32(written, bytes, true);
      return 0;
    },
    fd_close: none,
    fd_seek: () => 70,
    fd_fdstat_get: () => 8,
    environ_sizes_get(count, bytes) {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return 0;
    },
    environ_get: none,
    proc_exit(status) {
      throw new Error(`exit ${status}`);
    },
  };
}

// Starts a program: {exports, memory, text, call}. Options: limitPages, where the host makes the
// memory; beforeStart({exports, memory}), run before any code of the program; onAbort.
export async function start(program, options = {}) {
  const { limitPages = 65536, beforeStart = () => {}, onAbort } = options;
  const text = { stdout: '', stderr: '' };
  const output = (descriptor, chunk) => {
    text[descriptor === 1 ? 'stdout' : 'stderr'] += chunk;
  };
  const hostMemory = program.initialPages
    ? new WebAssembly.Memory({ initial: program.initialPages, maximum: limitPages })
    : null;
  let exports;
  let memory = hostMemory;
  const instantiate = (file, imports) => {
    const instance = new WebAssembly.Instance(compiled(file), imports);
    exports = instance.exports;
    memory ??= exports.memory;
    beforeStart({ exports, memory });
    return instance;
  };
  if (program.output === 'js') {
    const factory = createRequire(program.file)(program.file);
    await factory({
      ...(hostMemory ? { wasmMemory: hostMemory } : {}),
      print: (line) => output(1, `${line}\n`),
      printErr: (line) => output(2, `${line}\n`),
      onAbort: (reason) => onAbort?.({ exports, memory, reason }),
      instantiateWasm(imports, receive) {
        const instance = instantiate(program.file.replace(/js$/, 'wasm'), imports);
        receive(instance);
        return instance.exports;
      },
    });
  } else {
    const imports = {
      wasi_snapshot_preview1: wasiImports(() => memory, output),
      env: { memory: hostMemory, emscripten_notify_memory_growth() {} },
    };
    instantiate(program.file, imports);
    exports._initialize();
  }
  const string = (address) => {
    const bytes = new Uint8Array(memory.buffer);
    return Buffer.from(bytes.subarray(address, bytes.indexOf(0, address))).toString();
  };
  const call = (name, ...args) => {
    if (!exports[name]) throw new Error(`${path.basename(program.file)} exports no ${name}`);
    text.stdout = '';
    text.stderr = '';
    let trap = null;
    let value;
    const { error } = console;
    console.error = (...words) => output(2, `${words.join(' ')}\n`);
    try {
      value = exports[name](...args);
    } catch (thrown) {
      trap = `${thrown.name}: ${thrown.message}`;
    } finally {
      console.error = error;
    }
    const failures = [];
    const metrics = {};
    for (const line of text.stdout.split('\n')) {
      const pair = /^(\w+)=(.*)$/.exec(line);
      if (pair) metrics[pair[1]] = Number(pair[2]);
      else if (line) failures.push(line);
    }
    const lastMessage = exports.ashlar_last_message;
    const message = lastMessage ? string(lastMessage() >>> 0) : null;
    const memoryBytes = memory.buffer.byteLength;
    return { value, trap, failures, metrics, message, ...text, memoryBytes };
  };
  return { exports, memory, call, string };
}

// Runs one case in a fresh instance, in a worker that can be stopped when the case hangs. One case
// at a time.
let worker = null;
let served = 0;
let settle = null;
function startWorker() {
  worker = new Worker(new URL('./case_worker.mjs', import.meta.url));
  worker.on('message', (result) => settle?.(result));
  worker.on('error', (error) => settle?.({ error: error.stack }));
  // After the listeners, which hold the process.
  worker.unref();
}
async function stopWorker() {
  const old = worker;
  worker = null;
  served = 0;
  await old?.terminate();
}
export async function runCase(program, name, { args = [], limitPages, timeoutMs = 60000 } = {}) {
  if (!worker) startWorker();
  let timer;
  const result = await new Promise((resolve) => {
    const late = `${name} on ${path.basename(program.file)} took longer than ${timeoutMs} ms`;
    timer = setTimeout(() => resolve({ error: late }), timeoutMs);
    settle = resolve;
    worker.postMessage({ program, name: `case_${name}`, args, limitPages });
  });
  settle = null;
  clearTimeout(timer);
  // Memories are given back only when their worker ends.
  if (result.error || ++served === 100 || result.memoryBytes > 2 ** 28) await stopWorker();
  if (result.error) throw new Error(result.error);
  return result;
}

// Throws unless the case ran to its end without a failed check.
export function mustPass(result) {
  const { trap, failures, message, stderr } = result;
  if (trap === null && failures.length === 0) return;
  throw new Error(
    [...failures, trap && `died: ${trap}`, message && `message: ${message}`, stderr]
      .filter(Boolean)
      .join('\n'),
  );
}

export const numbers = (metrics) =>
  Object.entries(metrics)
    .map(([name, value]) => `${name} ${Math.round(value * 1000) / 1000}`)
    .join(', ');
