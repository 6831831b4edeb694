// node modules.mjs own|imported LINKED OUTPUT: finishes a freestanding module that was linked.
//
// `own` is only optimised. `imported` is first made to live anywhere in a memory. It was linked from
// position-independent objects, to addresses from 0 up, with one global for the address of each
// datum. Here these globals become variable and the data passive, and a start function takes memory
// for the data and the stack, copies the data there and moves the globals: what a dynamic linker
// would do (the tool conventions' "Dynamic Linking"), without one.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import binaryen from 'binaryen';

const osPageBytes = 65536;
const addressGlobal = 'GOT.data.internal.';
const stackGlobal = '__stack_pointer';
const baseGlobal = 'ashlar_base';
// Binaryen's own name for the first memory that is imported.
const memoryName = 'mimport$0';

function fail(words) {
  console.error(`modules: ${words}`);
  process.exit(1);
}

const items = (count, at) => Array.from({ length: count }, (_, index) => at(index));

// Makes every global variable, and returns their names.
function freeGlobals(module) {
  const globals = items(module.getNumGlobals(), (index) =>
    binaryen.getGlobalInfo(module.getGlobalByIndex(index)),
  );
  for (const { name, type, init } of globals) {
    // Any other would need to be known before it is moved.
    if (name !== stackGlobal && !name.startsWith(addressGlobal)) fail(`unexpected global ${name}`);
    const { value } = binaryen.getExpressionInfo(init);
    module.removeGlobal(name);
    module.addGlobal(name, type, true, module.i32.const(value));
  }
  return globals.map(({ name }) => name);
}

function dataSegments(module) {
  const segments = items(module.getNumDataSegments(), (index) =>
    module.getDataSegmentInfo(module.getDataSegmentByIndex(index)),
  );
  for (const { name } of segments) {
    // The linker puts data that holds addresses into .data, and those are not moved here.
    if (!name.startsWith('.rodata')) fail(`unexpected data ${name}: the state must start as zero`);
  }
  return segments;
}

function addStart(module, imagePages, globals, segments) {
  const { i32, global, local, memory } = module;
  const base = () => global.get(baseGlobal, binaryen.i32);
  const moved = (name) => i32.add(global.get(name, binaryen.i32), base());
  const grown = memory.grow(i32.const(imagePages), memoryName);
  const copy = ({ name, offset, data }) => {
    const to = i32.add(base(), i32.const(offset));
    return memory.init(name, to, i32.const(0), i32.const(data.byteLength), memoryName);
  };
  const body = module.block(null, [
    local.set(0, grown),
    module.if(i32.eq(local.get(0, binaryen.i32), i32.const(-1)), module.unreachable()),
    global.set(baseGlobal, i32.mul(local.get(0, binaryen.i32), i32.const(osPageBytes))),
    ...globals.map((name) => global.set(name, moved(name))),
    ...segments.map(copy),
  ]);
  module.addGlobal(baseGlobal, binaryen.i32, true, i32.const(0));
  module.setStart(module.addFunction('place', binaryen.none, binaryen.none, [binaryen.i32], body));
}

function place(bytes) {
  const module = binaryen.readBinary(bytes);
  const memory = module.getMemoryInfo();
  const globals = freeGlobals(module);
  const segments = dataSegments(module);
  const passive = segments.map(({ name, data }) => ({
    name,
    data: new Uint8Array(data),
    passive: true,
  }));
  // Any memory will do, however small.
  module.setMemory(0, -1, null, passive, false, false, memoryName);
  module.addMemoryImport(memoryName, memory.module, memory.base);
  addStart(module, memory.initial, globals, segments);
  if (!module.validate()) fail('the module is not valid any more');
  return module.emitBinary();
}

function optimise(input, output) {
  const optimiser = fileURLToPath(import.meta.resolve('binaryen/bin/wasm-opt'));
  const features = ['bulk-memory', 'bulk-memory-opt', 'sign-ext', 'mutable-globals'];
  const strip = ['--strip-debug', '--strip-producers', '--strip-target-features'];
  const flags = ['--mvp-features', ...features.map((name) => `--enable-${name}`), '-O2', ...strip];
  const args = [optimiser, ...flags, input, '-o', output];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) fail(`wasm-opt: ${stderr}`);
}

const [kind, linked, output] = process.argv.slice(2);
if (kind === 'own') {
  optimise(linked, output);
} else if (kind === 'imported') {
  const placed = `${output}.placed`;
  fs.writeFileSync(placed, place(fs.readFileSync(linked)));
  optimise(placed, output);
  fs.rmSync(placed);
} else {
  fail('usage: modules.mjs own|imported LINKED OUTPUT');
}
