// The process in which runWasi (toolchain.mjs) runs one WASI program. Its only argument is the
// request as JSON; what happened goes to descriptor 3. The program owns descriptors 0 to 2, and
// process.stdout is never touched: Node would make the pipe non-blocking under the program.
import fs from 'node:fs';
import { WASI } from 'node:wasi';

const request = JSON.parse(process.argv[2]);
const facts = { trap: null, memoryBytes: 0, strings: {}, numbers: {} };
let exports;

function text(memory, address) {
  const bytes = new Uint8Array(memory.buffer);
  const end = bytes.indexOf(0, address);
  return Buffer.from(bytes.subarray(address, end)).toString();
}

function call(name) {
  try {
    return typeof exports[name] === 'function' ? exports[name]() : null;
  } catch {
    return null;
  }
}

try {
  const module = new WebAssembly.Module(fs.readFileSync(request.file));
  const wasi = new WASI({
    version: 'preview1',
    args: [request.file, ...request.args],
    env: request.env,
    preopens: request.preopens,
    returnOnExit: true,
  });
  const imports = { ...wasi.getImportObject() };
  // Emscripten's STANDALONE_WASM tells its host about growth; a host without JS views ignores it.
  const notified = WebAssembly.Module.imports(module).some(
    ({ module: from, name }) => from === 'env' && name === 'emscripten_notify_memory_growth',
  );
  if (notified) imports.env = { emscripten_notify_memory_growth() {} };
  const instance = new WebAssembly.Instance(module, imports);
  exports = instance.exports;
  if (exports._start) process.exitCode = wasi.start(instance);
  else wasi.initialize(instance);
} catch (error) {
  facts.trap = `${error.name}: ${error.message}`;
}
if (exports?.memory) {
  facts.memoryBytes = exports.memory.buffer.byteLength;
  for (const name of request.strings) {
    const address = call(name);
    facts.strings[name] = address === null ? null : text(exports.memory, address >>> 0);
  }
  for (const name of request.numbers) facts.numbers[name] = call(name);
}
fs.writeSync(3, JSON.stringify(facts));
