// ./dev bench record [-o FILE] PROGRAM ARGS...
// ./dev bench record [-o FILE] --wasm sqlite|leveldb [SCRIPT]
//
// Records an MTR1 trace of what a program asks of malloc: natively by a recorder that is preloaded
// (lib/record.c), so that any dynamically linked program will do as it is; or of a program of the
// demo as WebAssembly, with the same recorder linked into it. The program keeps its input, output
// and environment. What it starts itself is not recorded.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { nativeCompile, root, runWasi, wasiCompile } from '../demo/toolchain.mjs';
import { programs } from '../demo/programs.mjs';
import { objectsOf } from './lib/arms.mjs';
import { fail, scratch } from './lib/report.mjs';
import { loadTrace } from './lib/traces.mjs';

const usage = 'record [-o FILE] PROGRAM ARGS... | record [-o FILE] --wasm NAME [SCRIPT]';
const source = path.join(root, 'bench/lib/record.c');

// Whatever follows PROGRAM is the program's.
function parseCommand(args) {
  const options = {};
  while (args[0]?.startsWith('-')) {
    const [flag, value] = args.splice(0, 2);
    if (!['-o', '--wasm'].includes(flag) || value === undefined) fail(usage);
    options[flag] = value;
  }
  const wasm = options['--wasm'];
  if (wasm ? args.length > 1 : args.length === 0) fail(usage);
  const [program, ...rest] = wasm ? [wasm, ...args] : args;
  return { output: options['-o'], isWasm: wasm !== undefined, program, args: rest };
}

function findProgram(name) {
  const folders = name.includes('/') ? ['.'] : (process.env.PATH ?? '').split(path.delimiter);
  for (const folder of folders) {
    const file = path.resolve(folder, name);
    try {
      fs.accessSync(file, fs.constants.X_OK);
      if (fs.statSync(file).isFile()) return file;
    } catch {
      // Not here.
    }
  }
  return fail(`cannot run ${name}: ${name.includes('/') ? 'no such program' : 'not on the PATH'}`);
}

// Why nothing can be preloaded into a program, or undefined. What is no ELF file is a script, whose
// interpreter is recorded.
function obstacle(file) {
  const bytes = fs.readFileSync(file);
  const programHeaders = 56;
  const interpreter = 3;
  if (bytes.length < 64 || bytes.toString('latin1', 1, 4) !== 'ELF') return undefined;
  if (bytes[4] !== 2 || bytes.readUInt16LE(18) !== 62) return 'is no x86-64 program';
  const start = Number(bytes.readBigUInt64LE(32));
  for (let index = 0; index < bytes.readUInt16LE(56); index += 1) {
    if (bytes.readUInt32LE(start + index * programHeaders) === interpreter) return undefined;
  }
  return 'is statically linked, so nothing can be put in front of its malloc';
}

async function recordNative({ program, args }, output) {
  const file = findProgram(program);
  const reason = obstacle(file);
  if (reason) fail(`${program} ${reason}`);
  const recorder = path.join(scratch(), 'record.so');
  await nativeCompile(['-O2', '-fno-builtin', '-shared', '-fPIC', source, '-o', recorder]);
  const preload = [recorder, process.env.LD_PRELOAD].filter(Boolean).join(':');
  const { error, status, signal } = spawnSync(file, args, {
    argv0: program,
    stdio: 'inherit',
    env: {
      ...process.env,
      LD_PRELOAD: preload,
      ASHLAR_RECORD: output,
      ASHLAR_RECORD_PARENT: `${process.pid}`,
    },
  });
  if (error) fail(`cannot run ${program}: ${error.message}`);
  return signal ? `ended by ${signal}, so the last calls may be missing` : `ended with ${status}`;
}

// The demo's objects for WASI, linked once more, with the recorder between them and wasi-libc.
async function recordWasm({ program: name, args: [script] }, output) {
  if (script && !fs.existsSync(script)) fail(`no script ${script}`);
  if (!programs[name]) fail(`no program '${name}'; there are: ${Object.keys(programs).join(', ')}`);
  const objects = await objectsOf(name);
  const folder = scratch();
  const recorder = path.join(folder, 'record.o');
  const module = path.join(folder, `${name}.wasm`);
  await wasiCompile(['-O2', '-fno-builtin', '-c', source, '-o', recorder]);
  const wrapped = 'malloc calloc realloc free aligned_alloc posix_memalign'.split(' ');
  const flags = wrapped.map((symbol) => `-Wl,--wrap=${symbol}`);
  await wasiCompile([...objects, recorder, ...flags, '-Wl,-z,stack-size=1048576', '-o', module], {
    cxx: programs[name].cxx,
  });
  const { status, trap } = await runWasi(module, {
    env: { ASHLAR_RECORD: `/out/${path.basename(output)}` },
    preopens: { '/out': path.dirname(output) },
    stdin: fs.readFileSync(script ?? programs[name].script),
  });
  if (trap) fail(`${name} died: ${trap}`);
  return `ended with ${status}`;
}

const command = parseCommand(process.argv.slice(2));
const name = path.basename(command.program);
const output = path.resolve(command.output ?? `${name}.mtr`);
fs.rmSync(output, { force: true });
const end = await (command.isWasm ? recordWasm : recordNative)(command, output);
if (!fs.existsSync(output)) {
  fail(`${name} ${end}, and nothing was recorded: does it bring a malloc of its own?`);
}
const { operations, peakLive } = loadTrace(output);
const count = (value) => value.toLocaleString('en-US');
const shown = path.relative(process.cwd(), output);
console.error(
  `bench: ${name} ${end}; ${shown}: ${count(operations)} operations, at most ` +
    `${count(peakLive)} bytes live`,
);
