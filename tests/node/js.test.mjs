// load() of the npm package, from a package made for this test: in all forms, with views over
// growing memory, with misuse and with bad numbers.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { buildPath, root, run } from '../../demo/toolchain.mjs';
import { profiles } from './support.mjs';

const output = buildPath('tests-js');
const made = await run(process.execPath, [path.join(root, 'npm/build.mjs'), output]);
assert.equal(made.status, 0, made.stderr);
const inPackage = (...parts) => path.join(output, 'package', ...parts);
const entry = (name) => import(pathToFileURL(inPackage('js', name)));
const { load, loadSync, AshlarError } = await entry('node.js');
const browser = await entry('index.js');

const osPage = 65536;
const newMemory = (initial = 3, maximum = 65536) => new WebAssembly.Memory({ initial, maximum });
const wasmFile = (profile, name) => inPackage('wasm', profile, name);
const bytesOf = (name = 'ashlar.wasm') => fs.readFileSync(wasmFile('fast', name));
const urlOf = (profile, name) => pathToFileURL(wasmFile(profile, name));
const imported = () => bytesOf('ashlar-imported.wasm');

function serves(heap) {
  const block = heap.malloc(100);
  heap.u8(block, 100).fill(7);
  assert.equal(heap.check(), true);
  heap.free(block);
  assert.equal(heap.stats().live_blocks, 0);
}

// ---- load

const forms = {
  'nothing at all': () => load(),
  'a profile': () => load({ profile: 'small' }),
  'a memory': () => load({ memory: newMemory() }),
  'a profile and a memory': () => load({ profile: 'bare', memory: newMemory() }),
  'a Buffer': () => load({ module: bytesOf() }),
  'an ArrayBuffer': () => load({ module: new Uint8Array(bytesOf()).buffer }),
  'bytes and a memory': () => load({ module: imported(), memory: newMemory() }),
  'a module': () => load({ module: new WebAssembly.Module(bytesOf()) }),
  'a Response': () => load({ module: new Response(bytesOf()) }),
  'a promise of a Response': () => load({ module: Promise.resolve(new Response(bytesOf())) }),
  'a URL': () => load({ module: urlOf('small', 'ashlar.wasm') }),
  'sync, nothing at all': () => loadSync(),
  'sync, a memory': () => loadSync({ profile: 'small', memory: newMemory() }),
  'sync, bytes': () => loadSync({ module: bytesOf() }),
  'sync, a module': () => loadSync({ module: new WebAssembly.Module(bytesOf()) }),
  'in a browser, a module at once': () => browser.loadSync({ module: bytesOf() }),
};

for (const [name, make] of Object.entries(forms)) {
  // Would catch: a form that isn't recognised, or that reads another file than it should.
  test(`load from ${name}`, async () => serves(await make()));
}

// Would catch: the wrong file for a profile.
test('load takes the profile that was asked for', async () => {
  for (const profile of profiles) {
    for (const memory of [undefined, newMemory()]) {
      const heap = await load({ profile, memory });
      assert.match(heap.version, new RegExp(`^ashlar \\d+\\.\\d+\\.\\d+ ${profile}$`));
      if (memory) assert.equal(heap.memory, memory);
    }
  }
});

// Would catch: a browser's load that isn't fetch, or a server's "not found" taken for wasm.
test('load in a browser fetches', async (context) => {
  const asked = [];
  let status = 200;
  context.mock.method(globalThis, 'fetch', async (url) => {
    asked.push(`${url}`);
    return new Response(status === 200 ? fs.readFileSync(url) : 'not here', { status });
  });
  serves(await browser.load({ profile: 'small', memory: newMemory() }));
  assert.deepEqual(asked, [`${urlOf('small', 'ashlar-imported.wasm')}`]);
  status = 404;
  await assert.rejects(browser.load(), /^Error: ashlar: .*404/);
});

// Would catch: a file that a bundler is told about and that isn't there.
test('each URL that is written out is a file of the package', () => {
  const text = fs.readFileSync(inPackage('js/heap.js'), 'utf8');
  const found = text.matchAll(/new URL\('([^']+)', import\.meta\.url\)/g);
  const urls = [...found].map(([, url]) => url);
  assert.equal(urls.length, 6);
  for (const url of urls) assert.ok(fs.existsSync(inPackage('js', url)), url);
});

const emptyModule = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
const refused = {
  'null for options': [null, /TypeError: ashlar: load takes an object of options, not Null$/],
  'a name for options': ['fast', /TypeError: ashlar: load takes an object of options, not String$/],
  'a symbol for a profile': [{ profile: Symbol('x') }, /fast, small or bare, not Symbol\(x\)$/],
  'an unknown option': [{ profil: 'fast' }, /TypeError: ashlar: load has no option profil$/],
  'an unknown profile': [{ profile: 'quick' }, /RangeError: ashlar: profile must .*, not quick$/],
  'a name that every object has': [{ profile: 'toString' }, /RangeError: ashlar: profile must be/],
  'a profile and a module': [{ profile: 'fast', module: emptyModule }, /TypeError: .*exclude/],
  'bytes as memory': [{ memory: new Uint8Array(8) }, /TypeError: ashlar: memory .*not Uint8Array$/],
  'a shared memory': [
    { memory: new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true }) },
    /TypeError: ashlar: a shared memory needs a build for threads/,
  ],
  'a module of a number': [{ module: 5 }, /TypeError: ashlar: module must be .*, not Number$/],
  "somebody's module": [{ module: emptyModule }, /TypeError: .*exports no ashlar_malloc$/],
  'no memory where one is needed': [{ module: imported() }, /TypeError: .*needs a memory$/],
  'a memory that is not needed': [
    { module: bytesOf(), memory: newMemory() },
    /TypeError: .*has its own memory/,
  ],
};

for (const [name, [options, error]] of Object.entries(refused)) {
  // Would catch: an option that is dropped without a word.
  test(`load refuses ${name}`, async () => {
    await assert.rejects(load(options), error);
    assert.throws(() => loadSync(options), error);
  });
}

// Would catch: a RuntimeError: unreachable that nobody can make sense of.
test('load into a memory that cannot grow', async () => {
  const error = { name: 'AshlarError', code: 'NO_MEMORY', address: 0 };
  const message = "ashlar: no memory for the allocator's own state";
  await assert.rejects(load({ memory: newMemory(2, 2) }), { ...error, message });
  assert.throws(() => loadSync({ memory: newMemory(2, 2) }), { ...error, message });
});

// ---- numbers

const badNumbers = [-1, NaN, Infinity, 0.5, 2 ** 32, 2 ** 40, 'x', '8', null, undefined, 8n, {}];
const methods = {
  malloc: 1, calloc: 2, realloc: 2, alignedAlloc: 2, free: 1, usableSize: 1, goodSize: 1,
  reserve: 1, setGrowth: 1, view: 2, u8: 2,
};

// Would catch: a number that reaches wasm modulo 2^32, or an argument that nobody looked at.
test('a number that is no size or address is refused', () => {
  const heap = loadSync();
  const before = heap.stats();
  for (const [method, count] of Object.entries(methods)) {
    for (const bad of badNumbers) {
      for (let at = 0; at < count; at++) {
        const args = Array.from({ length: count }, (_, index) => (index === at ? bad : 16));
        const error = typeof bad === 'number' ? RangeError : TypeError;
        assert.throws(() => heap[method](...args), error, `${method}(${args.map(String)})`);
      }
    }
  }
  assert.throws(() => heap.malloc(-1), /^RangeError: ashlar: size must be .*4294967295, not -1$/);
  assert.throws(() => heap.free('x'), /^TypeError: ashlar: address must be a number, not String$/);
  for (const bad of [0, 3, 48]) assert.throws(() => heap.alignedAlloc(bad, 8), RangeError);
  assert.deepEqual(heap.stats(), before);
});

// Would catch: an address of 2 GiB or more that comes out negative, or is refused coming in.
test('addresses above 2 GiB', () => {
  for (const profile of profiles) {
    const heap = loadSync({ profile, memory: newMemory(32769) });
    const block = heap.malloc(1000);
    assert.ok(block > 2 ** 31);
    heap.u32(block, 250).fill(0x12345678);
    const moved = heap.realloc(block, 100000);
    assert.ok(moved > 2 ** 31 && heap.u32(moved, 250).every((word) => word === 0x12345678));
    assert.ok(heap.usableSize(moved) >= 100000);
    assert.equal(heap.alignedAlloc(2 ** 20, 10) % 2 ** 20, 0);
    heap.free(moved);
    assert.ok(heap.usedPeak < 2 ** 31);
    assert.equal(heap.check(), true);
  }
});

// Would catch: a refusal that comes out as an address or an exception, or that changes something.
test('no memory is 0, or false', () => {
  const heap = loadSync({ memory: newMemory(1, 20) });
  const block = heap.calloc(10, 10);
  heap.u8(block, 3).set([1, 2, 3]);
  const before = heap.stats();
  assert.equal(heap.malloc(2 ** 31), 0);
  assert.equal(heap.malloc(2 ** 32 - 1), 0);
  assert.equal(heap.calloc(2 ** 16, 2 ** 16), 0);
  assert.equal(heap.alignedAlloc(2 ** 31, 8), 0);
  assert.equal(heap.realloc(block, 2 ** 24), 0);
  assert.equal(heap.reserve(2 ** 24), false);
  assert.deepEqual(heap.stats(), before);
  assert.deepEqual([...heap.u8(block, 4)], [1, 2, 3, 0]);
  assert.equal(heap.reserve(2 ** 16), true);
});

// Would catch: the smaller calls going to each other's functions.
test('the other calls', () => {
  const heap = loadSync();
  assert.equal(heap.setGrowth(8), 16);
  assert.equal(heap.setGrowth(16), 8);
  assert.ok(heap.goodSize(100) >= 100 && heap.goodSize(100) < 200);
  assert.equal(heap.usableSize(0), 0);
  assert.equal(heap.free(0), undefined);
  assert.equal(heap.lastMessage, '');
  const block = heap.realloc(0, 10);
  assert.equal(heap.usedPeak, heap.stats().used_peak_bytes);
  assert.equal(heap.exports.ashlar_usable_size(block), heap.usableSize(block));
});

// ---- views

// Would catch: a view that is kept over growth: it reads nothing and loses what is written.
test('views survive growth', () => {
  for (const memory of [undefined, newMemory()]) {
    const heap = loadSync({ memory });
    const block = heap.malloc(64);
    const { bytes } = heap;
    assert.equal(heap.bytes, bytes);
    const old = heap.f64(block, 8).fill(1.5);
    const large = heap.malloc(10 * osPage);
    assert.equal(old.length, 0);
    assert.notEqual(heap.bytes, bytes);
    assert.equal(heap.bytes.length, heap.memory.buffer.byteLength);
    assert.deepEqual([...heap.f64(block, 8)], Array(8).fill(1.5));
    heap.u8(large, 10 * osPage).fill(9);
    assert.deepEqual([...heap.f64(block, 8)], Array(8).fill(1.5));
  }
});

const views = {
  view: [DataView, 1], u8: [Uint8Array, 1], i8: [Int8Array, 1], u16: [Uint16Array, 2],
  i16: [Int16Array, 2], u32: [Uint32Array, 4], i32: [Int32Array, 4], f32: [Float32Array, 4],
  u64: [BigUint64Array, 8], i64: [BigInt64Array, 8], f64: [Float64Array, 8],
};

// Would catch: a view of another type, of as many bytes instead of elements, or over address 0.
test('each view is of its type, and 0 has none', () => {
  const heap = loadSync();
  const block = heap.malloc(64);
  for (const [name, [type, bytes]] of Object.entries(views)) {
    const view = heap[name](block, 3);
    assert.ok(view instanceof type, name);
    assert.deepEqual([view.byteOffset, view.byteLength], [block, 3 * bytes], name);
    assert.throws(() => heap[name](0, 3), /^RangeError: ashlar: address is 0/);
    assert.throws(() => heap[name](2 ** 32 - 8, 3), RangeError);
  }
});

// ---- statistics

// Would catch: numbers read from the wrong places, a block of our own among them, and a message
// that is lost. (If the message had less room than the statistics, what lies behind it would be
// written over while they are counted, and they would not agree.)
for (const profile of profiles) {
  test(`stats() says what ashlar_stats says, ${profile}`, () => {
    for (const memory of [undefined, newMemory()]) {
      const heap = loadSync({ profile, memory });
      if (profile !== 'bare') assert.throws(() => heap.free(24), AshlarError);
      const message = heap.lastMessage;
      heap.free(heap.malloc(50000));
      for (let count = 0; count < 500; count++) heap.malloc(40);
      const block = heap.malloc(48);
      const stats = heap.stats();
      assert.equal(heap.lastMessage, message);
      heap.exports.ashlar_stats(block);
      assert.equal(Number(heap.u64(block, 2)[0]), stats.allocations);
      assert.deepEqual([...heap.u32(block + 16, 8)], Object.values(stats).slice(2));
      assert.deepEqual([stats.allocations, stats.frees, stats.live_blocks], [502, 1, 501]);
    }
  });
}

// Would catch: a type declaration of something that isn't there, or the other way round.
test('index.d.ts names what a heap and its statistics have', () => {
  const text = fs.readFileSync(inPackage('js/index.d.ts'), 'utf8');
  const members = (name) => {
    const [, body] = new RegExp(`export interface ${name} \\{\\n(.*?)\\n\\}`, 's').exec(text);
    return [...body.matchAll(/^  (?:readonly )?(\w+)[(:]/gm)].map(([, member]) => member).sort();
  };
  const heap = loadSync();
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(heap));
  const all = [...own.filter((member) => member !== 'constructor'), ...Object.keys(heap)].sort();
  assert.deepEqual(members('Heap'), all);
  assert.deepEqual(members('Stats'), Object.keys(heap.stats()).sort());
});

// ---- misuse

// Two blocks exactly as far apart as a page's are: the page is new then, and ten blocks on nothing
// was handed out yet.
function beyondHandedOut(heap) {
  let before = heap.malloc(256);
  for (let count = 0; count < 300; count++) {
    const block = heap.malloc(256);
    if (block === before + 256) return before + 10 * 256;
    before = block;
  }
  throw new Error('no page was made');
}

const misuses = {
  DOUBLE_FREE: (heap) => {
    const block = heap.malloc(100);
    heap.free(block);
    return block;
  },
  INTERIOR_POINTER: (heap) => heap.malloc(5000) + 16,
  FOREIGN_POINTER: (heap) => heap.malloc(10) && 16,
  NEVER_ALLOCATED: beyondHandedOut,
};
const words = {
  DOUBLE_FREE: ['double free of', 1], INTERIOR_POINTER: ['interior pointer', 2],
  FOREIGN_POINTER: ['foreign pointer', 3], NEVER_ALLOCATED: ['never allocated', 4],
};

for (const [code, make] of Object.entries(misuses)) {
  // Would catch: a fault of another name, a trap without one, a heap that is useless after it.
  test(`${code} is an AshlarError, and the heap goes on`, () => {
    for (const profile of ['fast', 'small']) {
      // `small` has no pages.
      if (profile === 'small' && code === 'NEVER_ALLOCATED') continue;
      for (const memory of [undefined, newMemory()]) {
        const heap = loadSync({ profile, memory });
        const address = make(heap);
        const said = words[code][profile === 'fast' ? 0 : 1];
        const message = `ashlar: ${said} 0x${address.toString(16)}`;
        const error = { name: 'AshlarError', code, address, message };
        const before = heap.stats();
        // As often as would use up the 4 KiB of the module's stack, if each call left some of it.
        for (let round = 0; round < 1000; round++) {
          assert.throws(() => heap.free(address), error);
          assert.throws(() => heap.realloc(address, 3000), error);
          assert.throws(() => heap.usableSize(address), error);
        }
        assert.equal(heap.lastMessage, message);
        assert.deepEqual(heap.stats(), before);
        assert.equal(heap.check(), true);
        assert.notEqual(heap.malloc(100), 0);
      }
    }
  });
}

// Would catch: a heap with a broken header that goes on handing out memory.
test('CORRUPTED_HEADER: check() names it, and the heap refuses', () => {
  const heap = loadSync();
  const [before, block] = [heap.malloc(5000), heap.malloc(5000)];
  assert.equal(heap.check(), true);
  heap.u8(before, heap.usableSize(before) + 4).fill(0xff);
  const corrupted = { name: 'AshlarError', code: 'CORRUPTED_HEADER' };
  assert.throws(() => heap.check(), { ...corrupted, message: /^ashlar: corrupted header at 0x/ });
  assert.throws(() => heap.free(block), corrupted);
  const broken = { code: 'BROKEN', message: /corrupted header at 0x.*; this heap is broken$/ };
  assert.throws(() => heap.malloc(10), broken);
  assert.throws(() => heap.free(block), broken);
  assert.throws(() => heap.check(), corrupted);
  assert.match(heap.lastMessage, /corrupted header/);
});

// Would catch: an engine's own trap that is taken for misuse, with an old message.
test('BROKEN: a trap that is none of ours', () => {
  const heap = loadSync({ profile: 'bare' });
  const block = heap.malloc(100000);
  heap.view(block - 4, 4).setUint32(0, 0x7fffff0, true);
  heap.bytes.fill(0xf0, block - 8, block);
  assert.throws(() => heap.free(block), (error) => {
    assert.ok(error instanceof AshlarError && error.cause instanceof WebAssembly.RuntimeError);
    return error.code === 'BROKEN';
  });
  assert.throws(() => heap.malloc(10), { code: 'BROKEN', message: /this heap is broken$/ });
});

// Would catch: types that a compiler refuses, or that let everything pass.
test('the types compile, and refuse what is wrong', async () => {
  const folder = path.join(output, 'types');
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(path.join(folder, 'node_modules'), { recursive: true });
  fs.symlinkSync(inPackage(), path.join(folder, 'node_modules/ashlar'));
  fs.copyFileSync(path.join(root, 'tests/node/types/user.ts'), path.join(folder, 'user.mts'));
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  const strict = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom'];
  for (const resolution of ['nodenext', 'bundler']) {
    const module = resolution === 'nodenext' ? 'nodenext' : 'es2022';
    const how = ['--module', module, '--moduleResolution', resolution];
    const args = [compiler, ...strict, ...how, path.join(folder, 'user.mts')];
    const { status, stdout } = await run(process.execPath, args, { cwd: folder });
    assert.equal(status, 0, `${resolution}: ${stdout}`);
  }
});
