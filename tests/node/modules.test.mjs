// The freestanding modules, read with Binaryen and run: what they import and export, where they keep
// their state, and that a neighbour in the same memory is left alone.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import binaryen from 'binaryen';
import { root } from '../../demo/toolchain.mjs';
import { archive, profiles } from './support.mjs';

const osPage = 65536;
const listed = JSON.parse(fs.readFileSync(path.join(root, 'tests/node/modules.json'), 'utf8'));
const kinds = ['ashlar.wasm', 'ashlar-imported.wasm'];
const everyModule = profiles.flatMap((profile) => kinds.map((kind) => ({ profile, kind })));

const bytesOf = (profile, name) => fs.readFileSync(archive('freestanding', profile, name));
const linkedName = (kind) => `${kind.replace('.wasm', '').replace('-', '_')}_linked.wasm`;
const compile = (profile, kind) => new WebAssembly.Module(bytesOf(profile, kind));

// Pairs of a function's name and how often memory.grow stands in it.
function memoryGrows(module) {
  const [, ...functions] = module.emitText().split('\n (func $');
  return functions
    .map((text) => [/^"([^"]*)"|^\S+/.exec(text).findLast(Boolean), text.split('(memory.grow').length - 1])
    .filter(([, grows]) => grows > 0);
}

// Is the module valid with no feature but those that every engine has?
function isPlain(module) {
  const { BulkMemory, BulkMemoryOpt, SignExt, MutableGlobals } = binaryen.Features;
  module.setFeatures(BulkMemory | BulkMemoryOpt | SignExt | MutableGlobals);
  const { error, warn } = console;
  Object.assign(console, { error() {}, warn() {} });
  const valid = module.validate();
  Object.assign(console, { error, warn });
  return valid === 1 || valid === true;
}

for (const { profile, kind } of everyModule) {
  // Would catch: an import that some host lacks, an export lost to the optimiser or nobody's business.
  test(`${kind}, ${profile}: imports and exports are those of modules.json`, () => {
    const module = compile(profile, kind);
    const exports = listed[kind].exports.flatMap((entry) =>
      entry === 'functions' ? listed.functions.map((name) => `${name}: function`) : [entry],
    );
    const shown = WebAssembly.Module.exports(module).map((entry) => `${entry.name}: ${entry.kind}`);
    assert.deepEqual(shown.sort(), exports.sort());
    const imports = WebAssembly.Module.imports(module);
    assert.deepEqual(imports.map((entry) => `${entry.module}.${entry.name}: ${entry.kind}`), listed[kind].imports);
  });

  // Would catch: a build with -matomics or -pthread among the single-threaded ones, and any feature
  // that older engines lack: the module is valid without it.
  test(`${kind}, ${profile}: no atomics, nothing newer than bulk memory`, () => {
    const module = binaryen.readBinary(bytesOf(profile, kind));
    assert.ok(isPlain(module), 'the module needs another feature');
    assert.equal(module.getMemoryInfo().shared, false);
  });

  // Would catch: a layer above os.h that grows memory behind its back.
  test(`${kind}, ${profile}: memory.grow stands in the OS layer alone`, () => {
    const named = binaryen.readBinary(bytesOf(profile, linkedName(kind)));
    assert.deepEqual(memoryGrows(named), [['ashlar::os::take_memory(unsigned long)', 1]]);
    // One more in the start function, which takes the memory for the state.
    const grows = memoryGrows(binaryen.readBinary(bytesOf(profile, kind)));
    const total = grows.reduce((sum, [, each]) => sum + each, 0);
    assert.equal(total, kind === 'ashlar.wasm' ? 1 : 2);
  });
}

// Would catch: tests above that could not fail, on a module that breaks each rule.
test('a module with atomics and a stray memory.grow is seen', () => {
  const module = binaryen.parseText(`(module (memory 1 1 shared)
    (func $stray (drop (memory.grow (i32.const 1))) (drop (i32.atomic.load (i32.const 0)))))`);
  assert.deepEqual(memoryGrows(module), [['stray', 1]]);
  assert.ok(!isPlain(module));
  assert.ok(isPlain(binaryen.parseText('(module (memory 1))')));
});

// ---- ashlar-imported.wasm in somebody's memory

function instantiate(profile, memory) {
  const { exports } = new WebAssembly.Instance(compile(profile, 'ashlar-imported.wasm'), { env: { memory } });
  return exports;
}

// A memory of `pages` in which every byte is somebody's.
function neighbours(pages, maximum = 65536) {
  const memory = new WebAssembly.Memory({ initial: pages, maximum });
  new Uint8Array(memory.buffer).forEach((_, index, bytes) => {
    bytes[index] = (index * 151 + (index >> 8)) & 255;
  });
  return memory;
}
const isUntouched = (memory, pages) => {
  const bytes = new Uint8Array(memory.buffer, 0, pages * osPage);
  return bytes.every((byte, index) => byte === ((index * 151 + (index >> 8)) & 255));
};

// Random calls of all kinds; each block is filled with a byte of its own. Returns the live blocks.
function churn(exports, memory, { seed, steps }) {
  let state = seed;
  const random = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const live = [];
  const fill = ({ address, size, mark }) => new Uint8Array(memory.buffer, address, size).fill(mark);
  const isWhole = ({ address, size, mark }) =>
    new Uint8Array(memory.buffer, address, size).every((byte) => byte === mark);
  for (let step = 0; step < steps; step += 1) {
    const size = 1 + random(random(10) === 0 ? 200000 : 600);
    const mark = random(256);
    if (live.length > 300 || (live.length > 0 && random(3) === 0)) {
      const block = live.splice(random(live.length), 1)[0];
      assert.ok(isWhole(block), `step ${step}: a block of ${block.size} bytes has changed`);
      if (random(2) === 0) {
        exports.ashlar_free(block.address);
        continue;
      }
      const kept = Math.min(size, block.size);
      const address = exports.ashlar_realloc(block.address, size) >>> 0;
      assert.ok(isWhole({ address, size: kept, mark: block.mark }), `step ${step}: realloc lost bytes`);
      live.push({ address, size, mark });
    } else if (random(8) === 0) {
      const alignment = 16 << random(8);
      const address = exports.ashlar_aligned_alloc(alignment, size) >>> 0;
      assert.equal(address % alignment, 0);
      live.push({ address, size, mark });
    } else {
      live.push({ address: exports.ashlar_malloc(size) >>> 0, size, mark });
    }
    assert.notEqual(live.at(-1).address, 0);
    fill(live.at(-1));
  }
  return live;
}

const seed = Number(process.env.ASHLAR_SEED ?? Math.floor(Math.random() * 2 ** 32));

for (const profile of profiles) {
  // Would catch: an address that stayed fixed - data, stack or heap - or memory that it did not grow;
  // two instances that share state; a host's growth taken for its own.
  test(`two instances and a host share one memory, ${profile}`, (context) => {
    context.diagnostic(`ASHLAR_SEED=${seed}`);
    const memory = neighbours(10);
    const first = instantiate(profile, memory);
    const second = instantiate(profile, memory);
    const blocks = new Set();
    for (let round = 0; round < 4; round += 1) {
      const hosts = memory.grow(1);
      new Uint8Array(memory.buffer, hosts * osPage, osPage).fill(0xa5);
      for (const exports of [first, second]) {
        const live = churn(exports, memory, { seed: seed + round, steps: 2000 });
        live.forEach(({ address }) => blocks.add(address));
        assert.equal(exports.ashlar_check(), 0);
        live.forEach(({ address }) => exports.ashlar_free(address));
      }
      const bytes = new Uint8Array(memory.buffer, hosts * osPage, osPage);
      assert.ok(bytes.every((byte) => byte === 0xa5), "the host's page was written");
    }
    assert.ok(isUntouched(memory, 10), 'memory that is not ours was written');
    assert.ok(Math.min(...blocks) >= 10 * osPage);
  });

  // Would catch: a static address in the data (message, version) or a state that is not all zero.
  test(`messages are where the state is, ${profile}`, () => {
    const memory = neighbours(3);
    const exports = instantiate(profile, memory);
    const text = (address) => {
      const bytes = new Uint8Array(memory.buffer);
      return Buffer.from(bytes.subarray(address, bytes.indexOf(0, address))).toString();
    };
    assert.match(text(exports.ashlar_version() >>> 0), new RegExp(`^ashlar \\d+\\.\\d+\\.\\d+ ${profile}$`));
    if (profile === 'bare') return;
    assert.throws(() => exports.ashlar_free(16), WebAssembly.RuntimeError);
    assert.equal(text(exports.ashlar_last_message() >>> 0), profile === 'fast' ? 'ashlar: foreign pointer 0x10' : 'ashlar: 3 0x10');
    assert.ok(isUntouched(memory, 3));
  });

  // Would catch: a start that writes to memory that it was refused.
  test(`a full memory refuses the instance and stays as it was, ${profile}`, () => {
    const memory = neighbours(2, 2);
    assert.throws(() => instantiate(profile, memory), WebAssembly.RuntimeError);
    assert.ok(isUntouched(memory, 2));
  });

  // Would catch: a shadow stack that is nearly too small (4 KiB; at most a half may be used), and a
  // first page of memory that is thrown away: everything small fits in it.
  test(`the stack of ashlar.wasm, and its first page, ${profile}`, (context) => {
    const { exports } = new WebAssembly.Instance(compile(profile, 'ashlar.wasm'));
    const { memory } = exports;
    const stack = () => new Uint8Array(memory.buffer, 0, 4096);
    assert.equal(memory.buffer.byteLength, osPage);
    const block = exports.ashlar_malloc(40000);
    assert.notEqual(block, 0);
    assert.equal(memory.buffer.byteLength, osPage);
    exports.ashlar_free(block);
    stack().fill(0xa5);
    churn(exports, memory, { seed, steps: 3000 });
    assert.equal(exports.ashlar_reserve(10 * osPage), 0);
    exports.ashlar_stats(exports.ashlar_calloc(1, 200));
    assert.equal(exports.ashlar_check(), 0);
    const used = 4096 - stack().findIndex((byte) => byte !== 0xa5);
    context.diagnostic(`${used} bytes of stack`);
    assert.ok(used > 0 && used <= 2048, `${used} bytes of stack`);
  });
}
