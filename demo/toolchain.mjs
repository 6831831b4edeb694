// Compilers and hosts for the demo and for every test in tests/node that builds and runs a program.
// Finds the same tools as ./dev: a wasi-sdk named by WASI_SDK_PATH, an emsdk named by EMSDK or
// standing on the PATH, else Debian's clang-22 with build/toolchain/wasi-sysroot (./dev setup).
// No dependencies. Everything is asynchronous, so that independent builds and runs can overlap.
//
//   root                                 the repository; buildPath('wasi', ...) is build/wasi/...
//   wasiCompile(args, options)           clang or clang++ for wasm32-wasip1
//   emcc(args, options)                  emcc or em++; put a .js under build/ or outside the tree
//   nativeCompile(args, options)         gcc/g++, or clang with {compiler: 'clang'}
//       C++ is chosen when an input ends in .cc or .cpp, or by {cxx: true} (linking C++ objects).
//       Resolves to {status, stdout, stderr}. Throws with the compiler's own words when it fails;
//       {check: false} resolves instead, for tests that expect a link to fail. {cwd}, {env}.
//   runWasi(path, options)               a .wasm under node:wasi, in a process of its own
//   runEmscripten(path, options)         a .js made by emcc, in a process of its own
//   runNative(path, options)             an executable
//       options: args: [], stdin: text, timeoutMs: 300000,
//         env: {} the program's environment (an Emscripten program sees only its glue's own),
//         strings: ['ashlar_last_message'], numbers: ['ashlar_check']: exports without parameters
//         that are called after the program ended, also after a trap; preopens (WASI),
//         nodeArgs: ['--no-liftoff'].
//       Resolves to {status, signal, trap, stdout, stderr, memoryBytes, strings, numbers}:
//         status       exit code; null when the program died otherwise (see trap, signal)
//         trap         what the engine or the JS glue said when the program died, else null
//         memoryBytes  linear memory when the program ended (0 natively)
//         strings, numbers   by export name; null for an export that isn't there or that trapped.
//                      Emscripten needs the names in -sEXPORTED_FUNCTIONS=_ashlar_last_message,...
//   wasmImports(path), wasmExports(path) names, as 'module.name' and 'name'
//   nm(path)                             symbols of an object or archive: [{member, type, name}]
//   run(command, args, options)          any process: {status, signal, stdout, stderr}

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.dirname(here);
export const buildPath = (...parts) => path.join(root, 'build', ...parts);

// A child reads its input from an unlinked file: a pipe may answer EAGAIN to synchronous readers.
function openInput(text) {
  if (text === undefined) return 'ignore';
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-stdin-'));
  const file = path.join(folder, 'stdin');
  fs.writeFileSync(file, text);
  const descriptor = fs.openSync(file, 'r');
  fs.rmSync(folder, { recursive: true });
  return descriptor;
}

// Runs a process to its end. With {report: true} descriptor 3 is a pipe whose text comes back too.
export function run(command, args, options = {}) {
  const { cwd = root, env, stdin, timeoutMs = 300000, report = false } = options;
  return new Promise((resolve, reject) => {
    const input = openInput(stdin);
    const stdio = [input, 'pipe', 'pipe'];
    if (report) stdio.push('pipe');
    const child = spawn(command, args, { cwd, env: env ?? process.env, stdio });
    if (typeof input === 'number') fs.closeSync(input);
    const chunks = [[], [], [], []];
    for (let index = 1; index < stdio.length; index++) {
      child.stdio[index].on('data', (chunk) => chunks[index].push(chunk));
    }
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, timeoutMs);
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (status, signal) => {
      clearTimeout(timer);
      if (late) {
        reject(new Error(`${command} took longer than ${timeoutMs} ms: ${args.join(' ')}`));
        return;
      }
      const [, stdout, stderr, reported] = chunks.map((list) => Buffer.concat(list).toString());
      resolve({ status, signal, stdout, stderr, report: reported });
    });
  });
}

function onPath(name) {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(folder, name);
    if (folder && fs.existsSync(file)) return file;
  }
  return null;
}

function required(name, remedy) {
  const file = path.isAbsolute(name) ? (fs.existsSync(name) ? name : null) : onPath(name);
  if (!file) throw new Error(`${name} is missing: ${remedy}`);
  return file;
}

// {cc, cxx, nm, flags, kind} of the WASI compiler; throws naming what is missing.
export function findWasi() {
  const sdk = process.env.WASI_SDK_PATH;
  if (sdk) {
    const remedy = `WASI_SDK_PATH is ${sdk}, which holds no wasi-sdk`;
    const sysroot = required(path.join(sdk, 'share/wasi-sysroot'), remedy);
    const modern = fs.existsSync(path.join(sysroot, 'lib/wasm32-wasip1'));
    return {
      kind: 'wasi-sdk',
      cc: required(path.join(sdk, 'bin/clang'), remedy),
      cxx: required(path.join(sdk, 'bin/clang++'), remedy),
      nm: required(path.join(sdk, 'bin/llvm-nm'), remedy),
      flags: [`--target=${modern ? 'wasm32-wasip1' : 'wasm32-wasi'}`, `--sysroot=${sysroot}`],
    };
  }
  const sysroot = required(buildPath('toolchain/wasi-sysroot'), 'run ./dev setup');
  return {
    kind: 'clang-22',
    cc: required('clang-22', 'run ./dev setup'),
    cxx: required('clang++-22', 'run ./dev setup'),
    nm: required('llvm-nm-22', 'run ./dev setup'),
    flags: ['--target=wasm32-wasip1', `--sysroot=${sysroot}`],
  };
}

// {cc, cxx, env, kind} of Emscripten; throws naming what is missing.
export function findEmscripten() {
  const sdk = process.env.EMSDK;
  const folder = sdk ? path.join(sdk, 'upstream/emscripten') : null;
  if (folder && fs.existsSync(path.join(folder, 'em++'))) {
    const [cc, cxx] = [path.join(folder, 'emcc'), path.join(folder, 'em++')];
    return { kind: 'emsdk', cc, cxx, env: process.env };
  }
  const cxx = required('em++', 'run ./dev setup, or activate an emsdk');
  const env = { ...process.env };
  // Debian keeps the JS modules that emcc's optimizer needs outside Node's search path.
  if (fs.existsSync('/usr/share/nodejs')) {
    env.NODE_PATH = ['/usr/share/nodejs', env.NODE_PATH].filter(Boolean).join(path.delimiter);
  }
  return { kind: 'emscripten', cc: required('emcc', 'run ./dev setup'), cxx, env };
}

// {cc, cxx} of a native compiler: 'gcc' or 'clang'.
export function findNative(compiler = 'gcc') {
  const [cc, cxx] = compiler === 'gcc' ? ['gcc', 'g++'] : ['clang-22', 'clang++-22'];
  return { cc: required(cc, 'run ./dev setup'), cxx: required(cxx, 'run ./dev setup') };
}

async function compile(tool, args, { cxx, check = true, cwd = root, env } = {}) {
  const plus = cxx ?? args.some((arg) => /\.(cc|cpp)$/.test(arg));
  const command = plus ? tool.cxx : tool.cc;
  const all = [...(tool.flags ?? []), ...args];
  const result = await run(command, all, {
    cwd,
    env: { ...(tool.env ?? process.env), ...env },
    // SQLite in one piece at -O3 is slow on a busy machine.
    timeoutMs: 1800000,
  });
  if (check && result.status !== 0) {
    const words = [command, ...all].join(' ');
    throw new Error(`${words}\nended with ${result.status ?? result.signal}:\n${result.stderr}`);
  }
  return result;
}

export const wasiCompile = async (args, options) => compile(findWasi(), args, options);
export async function emcc(args, options) {
  // The repository's package.json makes every .js an ES module; emcc's glue is CommonJS.
  const scope = buildPath('package.json');
  if (!fs.existsSync(scope)) {
    fs.mkdirSync(buildPath(), { recursive: true });
    fs.writeFileSync(scope, '{ "type": "commonjs" }\n');
  }
  return compile(findEmscripten(), args, options);
}
export const nativeCompile = async (args, options = {}) =>
  compile(findNative(options.compiler), args, options);

function finished(result, request) {
  let facts = {};
  try {
    facts = JSON.parse(result.report);
  } catch {
    // The process was killed before it could report; status and signal say so.
  }
  const none = (names = []) => Object.fromEntries(names.map((name) => [name, null]));
  const trap = facts.trap ?? null;
  return {
    status: trap === null ? result.status : null,
    signal: result.signal,
    trap,
    stdout: result.stdout,
    // Node shows the source line of an uncaught error: for minified glue, all of it.
    stderr: result.stderr.replace(/^.{2000,}$/gm, (line) => `${line.slice(0, 200)}...`),
    memoryBytes: facts.memoryBytes ?? 0,
    strings: { ...none(request.strings), ...facts.strings },
    numbers: { ...none(request.numbers), ...facts.numbers },
  };
}

export async function runWasi(file, options = {}) {
  const { args = [], env = {}, strings = [], numbers = [], preopens = {}, nodeArgs = [] } = options;
  const request = { file: path.resolve(file), args, env, strings, numbers, preopens };
  const result = await run(
    process.execPath,
    ['--no-warnings', ...nodeArgs, path.join(here, 'host_wasi.mjs'), JSON.stringify(request)],
    { stdin: options.stdin, timeoutMs: options.timeoutMs, report: true },
  );
  return finished(result, request);
}

export async function runEmscripten(file, options = {}) {
  const { args = [], env = {}, strings = [], numbers = [], nodeArgs = [] } = options;
  const request = { strings, numbers };
  // Emscripten 3.1.6 takes a file name for a URL where `fetch` exists.
  const fetchFlag = process.allowedNodeEnvironmentFlags.has('--experimental-fetch');
  const flags = fetchFlag ? ['--no-experimental-fetch'] : [];
  const result = await run(
    process.execPath,
    [...flags, ...nodeArgs, '--require', path.join(here, 'host_emscripten.cjs'),
      path.resolve(file), ...args],
    {
      stdin: options.stdin,
      timeoutMs: options.timeoutMs,
      report: true,
      env: {
        ...process.env,
        // Workers of a pthread build get their flags from here.
        NODE_OPTIONS: [process.env.NODE_OPTIONS, ...flags].filter(Boolean).join(' '),
        ...env,
        ASHLAR_HOST_REQUEST: JSON.stringify(request),
      },
    },
  );
  return finished(result, request);
}

export async function runNative(file, options = {}) {
  const { args = [], env = {}, stdin, timeoutMs } = options;
  const result = await run(path.resolve(file), args, {
    stdin,
    timeoutMs,
    env: { ...process.env, ...env },
  });
  return finished({ ...result, report: '' }, {});
}

const wasmModule = (file) => new WebAssembly.Module(fs.readFileSync(file));
export const wasmImports = (file) =>
  WebAssembly.Module.imports(wasmModule(file)).map(({ module, name }) => `${module}.${name}`);
export const wasmExports = (file) =>
  WebAssembly.Module.exports(wasmModule(file)).map(({ name }) => name);

export async function nm(file, args = []) {
  const candidates = ['llvm-nm-22', 'llvm-nm', 'nm'].map(onPath).filter(Boolean);
  const wasiNm = process.env.WASI_SDK_PATH ? findWasi().nm : null;
  const tool = wasiNm ?? candidates[0] ?? required('llvm-nm-22', 'run ./dev setup');
  const result = await run(tool, [...args, '--print-file-name', path.resolve(file)]);
  if (result.status !== 0) throw new Error(`nm ${file}: ${result.stderr}`);
  const symbols = [];
  for (const line of result.stdout.split('\n')) {
    const match = /^(.*):\s+(?:[0-9a-f]+\s+|-+\s+)?([A-Za-z?])\s+(\S+)/.exec(line);
    if (match) {
      const member = /(?:\(|:)([^:()]+\.(?:o|obj))\)?$/.exec(match[1])?.[1] ?? null;
      symbols.push({ member, type: match[2], name: match[3] });
    }
  }
  return symbols;
}
