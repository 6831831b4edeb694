// What users of WebAssembly allocators reported, one test per row of the field report (README.md
// here lists all rows, also those that are tested elsewhere). A test's name begins with the row and
// where it was reported; the programs are in programs/rows_*.c, case_ROW or case_ROW_part.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runEmscripten, wasmImports } from '../../demo/toolchain.mjs';
import {
  archive, buildAll, casesProgram, compileObject, kinds, link, makeProgram, mustPass, numbers,
  runCase, start,
} from './support.mjs';

const both = ['wasi', 'emscripten-growth'];
// Where memory ends at 32 MiB, or where the module says.
const ends = ['wasi-limit', 'emscripten-growth', 'emscripten-fixed', 'emscripten-standalone'];
const small = { limitPages: 512 };

const kindNames = ['wasi', ...ends];
const built = await buildAll(kindNames.map((name) => () => casesProgram(name)));
const cases = Object.fromEntries(kindNames.map((name, index) => [name, built[index]]));

// One test for a case on each of some kinds of program. Where the host's memory ends: limitPages,
// for all kinds or by kind.
function row(name, caseName, kindList, { limitPages } = {}) {
  for (const kind of kindList) {
    const part = /^[A-Z]\d+_(.*)/.exec(caseName)?.[1];
    test(`${name}${part ? ` (${part})` : ''}: ${kind}`, async (context) => {
      const pages = typeof limitPages === 'object' ? limitPages[kind] : limitPages;
      const result = await runCase(cases[kind], caseName, { limitPages: pages });
      if (Object.keys(result.metrics).length) context.diagnostic(numbers(result.metrics));
      mustPass(result);
    });
  }
}

// ---- A. Memory only grows

// Would catch: survivors that keep the memory of whole rounds from being used again.
row('A1 emscripten#6736 rounds with few survivors', 'A1', both);
// Would catch: freed predecessors of a growing vector that don't join, for pins between them.
row('A2 emscripten#3661 a growing vector among small blocks', 'A2', both);
// Would catch: freed memory that isn't counted as one free run, or isn't used again.
row('A3 emscripten#15591 freed memory is free in the statistics', 'A3', both);
// Would catch: an eager reservation, or a growth step that cannot be set.
row('A4 WebAssembly/design#1397 growth step', 'A4', both);
// Would catch: each growth claimed as a heap of its own instead of joining the last.
row('A6 talc#51 ratchet', 'A6_free', both);
row('A6 talc#51 ratchet', 'A6_realloc', both);
// Would catch: a trap instead of NULL when memory ends.
row('A10 lucid-evolution#728 end of memory is NULL', 'A10', ends, small);
// Would catch: a large block that is placed anew instead of where the last one was.
row('A11 emscripten#15183 100 MB again and again', 'A11', both);
// Would catch: a count that is estimated, forgets frees, or falls.
row('A12 wasm-bindgen#2241 statistics', 'A12', both);
// Would catch: growth in steps of a fixed size.
row('A13 chicory#751 number of grows', 'A13', both);
row('A13 chicory#751 number of grows', 'A13_tuned', both);
// Would catch: a large first step.
row('A15 emscripten#13258 a 10 KB program', 'A15', both);
// Would catch: memory of aligned chunks that malloc cannot use afterwards.
row('A16 dotnet#107215 chunks, then one big block', 'A16', both);
row('A16 dotnet#107215 chunks, then one big block', 'A16_mmap', ['emscripten-growth']);
// Would catch: alignment paid for every block, with heads and tails lost.
row('A17 dotnet#108509 blocks aligned to their size', 'A17', both);
// Would catch: aligned big blocks that can't shrink and grow in place; old bytes in calloc's.
row('A18 wordpress-playground#1128 big blocks in place', 'A18', both);

// ---- B. Out of memory

// Would catch: an abort for a request that is too large, or a heap that is broken after it.
row('B21 emscripten#3822 out of memory', 'B21_huge', ends, small);
row('B21 emscripten#3822 out of memory', 'B21_exhaust', ends, small);
// Would catch: a failing request that allocates.
row('B25 emscripten#10089 failing changes nothing', 'B25', ends, small);
// Would catch: a last byte that is handed out wrongly; sums near SIZE_MAX that wrap.
row('B26 emscripten#13442 not a byte left', 'B26_zero_left', ends, small);
// Would catch: memory that ends early, because a whole growth step doesn't fit any more.
for (const [kind, bytes] of [['wasi-limit', 2 ** 25], ['emscripten-standalone', 2 ** 27]]) {
  test(`B26 emscripten#13442 all memory is used: ${kind}`, async () => {
    const result = await runCase(cases[kind], 'B26_zero_left', small);
    mustPass(result);
    assert.equal(result.memoryBytes, bytes);
  });
}
row('B26 emscripten#13442 malloc(-k)', 'B26_sizes', [...both, ...ends], small);
// Would catch: an end of memory that wraps to 0 at 4 GiB.
for (const kind of both) {
  test(`B27 emscripten#13258 memory grown to its end: ${kind}`, async (context) => {
    const result = await runCase(cases[kind], 'B27');
    context.diagnostic(numbers(result.metrics));
    mustPass(result);
    // Emscripten's glue stays one wasm page short of 4 GiB.
    assert.equal(result.metrics.wasm_pages, kind === 'wasi' ? 65536 : 65535);
  });
}
// Would catch: an abort where Emscripten's default heap is too small.
row('B29 emscripten#9388 more than the default heap', 'B29', ends, small);
// Would catch: a maximum that is too small for a growth step, though the request fits.
row('B30 emscripten#19144 a small maximum', 'B30', ['wasi-limit', 'emscripten-growth'], {
  limitPages: { 'wasi-limit': 17, 'emscripten-growth': 257 },
});

// ---- C. Sizes

// Would catch: a product that wraps.
row('C31 calloc overflow in emmalloc', 'C31', both);
row('C32 hcreate(-1)', 'C32', both);
row('C33 wasi-libc calloc overflow sets errno', 'C33', both);
// Would catch: sizes as signed numbers.
for (const part of ['2GiB', '3GiB', 'almost_4GiB']) {
  row('C34 emscripten#17747 one large block', `C34_${part}`, both);
}
row('C35 emscripten#11047 two of 2.5 GB', 'C35', both);
// Would catch: a break moved down by the program over memory that is ours.
row('C38 emscripten#25138 sbrk up and down', 'C38', ['emscripten-growth', 'emscripten-fixed']);
// Would catch: a mallinfo whose fields have another type than the header says.
row('C39 emscripten#23368 mallinfo', 'C39', ['emscripten-growth']);
// Would catch: the end of a block computed in 32 bits.
row('C40 wasm3#554 a block that ends where memory ends', 'C40', ['wasi']);

// ---- D. Alignment

// Would catch: any size that is aligned less than the target's max_align_t.
row('D42 emscripten#5996 max_align_t', 'D42', both);
row('D43 emscripten#14456 16 bytes for SIMD', 'D43', both);
row('D44 wasi-libc#89 16 on WASI, 8 on Emscripten', 'D44', both);
row('D45 rust#68885 16, 32, 64', 'D45', both);
// Would catch: size + alignment taken twice, or a head that is lost.
for (const part of ['1MiB', '4MiB']) {
  row('D46 emscripten#20645 memalign of 32 MiB', `D46_${part}`, both);
}
// Would catch: a memalign that cuts its head over a neighbour.
row('D48 emscripten#10363 neighbours of memalign', 'D48', both);
row('D49 zig#5737 128 KiB to 4 MiB', 'D49', both);
// Would catch: aligned_alloc that insists on multiples, EINVAL of another platform.
row('D51 emscripten#5502 aligned_alloc(16, 24)', 'D51', both);

// Would catch: static data or a first step of several pages in a program that needs ten bytes.
test('D50 mimalloc#780 malloc(10) in an empty program: wasi', async (context) => {
  const empty = await makeProgram('empty', 'wasi', ['empty.c']);
  const instance = await start(empty);
  const pages = instance.call('start_pages').value;
  const after = instance.call('one_malloc').value;
  context.diagnostic(`pages before ${pages}, after ${after}`);
  assert.ok(after - pages <= 2, `grew from ${pages} to ${after}`);
  // The stack is one page, the data less than one: at most that and the two.
  assert.ok(after <= 4, `the program has ${after} pages`);
});
test('D50 mimalloc#780 malloc(10) in an empty program: emscripten', async () => {
  const result = await runCase(cases['emscripten-growth'], 'tiny');
  mustPass(result);
  assert.equal(result.memoryBytes, 256 * 65536);
});

// ---- operator new (programs/news.cc)

const newKinds = ['wasi-limit', 'emscripten-growth', 'emscripten-standalone'];
const newPrograms = await buildAll(
  newKinds.map((kind) => () =>
    makeProgram('news', kind, ['cases.c', 'news.cc'], { compileFlags: [], flags: [] })),
);
for (const [index, kind] of newKinds.entries()) {
  // Would catch: new that returns null without exceptions: the program then writes to address 0.
  test(`B22 emscripten#11042 new without exceptions: ${kind}`, async () => {
    const result = await runCase(newPrograms[index], 'B22_new', small);
    assert.ok(result.trap !== null && !result.metrics.survived, 'new returned');
    assert.match(`${result.stderr}${result.message}`, /\S/, 'the program died without a word');
  });
  // Would catch: new(nothrow) that ends the program.
  test(`B23 emscripten#20132 new(nothrow): ${kind}`, async () => {
    mustPass(await runCase(newPrograms[index], 'B23_nothrow', small));
  });
  // Would catch: a new handler that isn't called, is called without end, or finds a heap in use.
  test(`B25 emscripten#10089 a new handler that allocates: ${kind}`, async () => {
    mustPass(await runCase(newPrograms[index], 'B25_new_handler', small));
  });
}
// Would catch: a failure path that allocates, calls its handler again, or leaves a broken heap.
test('B25 emscripten#10089 an abort handler that allocates: emscripten', async () => {
  let calls = 0;
  const instance = await start(newPrograms[1], {
    ...small,
    onAbort({ exports }) {
      calls++;
      exports.free(exports.malloc(100000));
    },
  });
  const { exports } = instance;
  const { trap } = instance.call('case_B22_new');
  assert.ok(trap !== null);
  assert.ok(calls <= 1, `the handler was called ${calls} times`);
  assert.equal(exports.ashlar_check(), 0);
  const block = exports.malloc(100000);
  assert.ok(block > 0);
  exports.free(block);
});

// Would catch: a bad_alloc that isn't thrown where exceptions exist.
test('B22 emscripten#11042 new with exceptions: emscripten', async () => {
  const program = await makeProgram('news-throw', 'emscripten-growth', ['cases.c', 'news.cc'], {
    compileFlags: ['-fexceptions'],
    flags: ['-fexceptions'],
  });
  mustPass(await runCase(program, 'B22_bad_alloc', small));
  mustPass(await runCase(program, 'B23_nothrow', small));
  mustPass(await runCase(program, 'new_forms', small));
});

// The default settings of emcc: fixed memory, and a glue that aborts when memory cannot grow.
const abortingProgram = (name, flags) =>
  makeProgram(`aborting-${name}`, 'emscripten-fixed', ['cases.c', 'abort.c'], {
    flags: ['-sINITIAL_MEMORY=16MB', '-sTOTAL_STACK=1MB', '-sABORTING_MALLOC=1', ...flags],
  });
for (const [name, flags, room] of [
  ['fixed', [], 16 * 2 ** 20],
  ['growing', ['-sALLOW_MEMORY_GROWTH', '-sMAXIMUM_MEMORY=24MB'], 24 * 2 ** 20],
]) {
  // Would catch: growth in advance that asks for more than there is, and so ends the program early.
  test(`B24 emscripten#24193 ABORTING_MALLOC=1 with ${name} memory`, async () => {
    const result = await runCase(await abortingProgram(name, flags), 'B24_fill');
    assert.ok(result.trap !== null || result.metrics.null === 1);
    const { served } = result.metrics;
    assert.ok(served > 0.9 * (room - 2 ** 20), `served ${served} of ${room}: ${result.trap}`);
  });
}
// Would catch: a setting that works below 2 GB only: the same answer for both maxima.
test('B24 emscripten#24193 ABORTING_MALLOC=1 with 2 GB and with 4 GB', async () => {
  const answers = [];
  for (const maximum of ['2GB', '4GB']) {
    const flags = ['-sALLOW_MEMORY_GROWTH', `-sMAXIMUM_MEMORY=${maximum}`];
    const program = await abortingProgram(maximum, flags);
    const result = await runCase(program, 'B24_large');
    answers.push({ died: result.trap !== null, blocks: result.metrics.blocks });
  }
  assert.deepEqual(answers.map(({ blocks }) => blocks), [3, 7]);
  assert.equal(answers[0].died, answers[1].died);
});

// ---- F. Two owners of one memory (coexist.test.mjs has the rest)

// Would catch: a global name of ours that a program uses for something else.
for (const kind of both) {
  test(`F69 emscripten#9337 the program's own dlmalloc, arena, heap, ...: ${kind}`, async () => {
    const program = await makeProgram('names', kind, ['cases.c', 'names.c']);
    mustPass(await runCase(program, 'F69'));
  });
}

// ---- G. Linking

// Would catch: an ashlar::core that brings malloc, or shares memory with the toolchain's.
for (const kind of both) {
  test(`G74 proxy-wasm-go-sdk#145 beside the toolchain's malloc: ${kind}`, async () => {
    const program = await makeProgram('core', kind, ['cases.c', 'core.c'], {
      library: archive(kinds[kind].target, 'fast', 'libashlar-core.a'),
    });
    mustPass(await runCase(program, 'G74'));
  });
}

// Would catch: malloc and free that JavaScript cannot call, or that leave its views stale.
test('G76 emscripten#19234 Module._malloc', async () => {
  const { createRequire } = await import('node:module');
  const file = cases['emscripten-fixed'].file;
  const wasmBinary = (await import('node:fs')).readFileSync(file.replace(/js$/, 'wasm'));
  const Module = await createRequire(import.meta.url)(file)({ wasmBinary });
  const block = Module._malloc(1000);
  assert.ok(block > 0 && block % 8 === 0);
  const other = Module._malloc(1000);
  assert.ok(Math.abs(block - other) >= 1000);
  Module._free(block);
  Module._free(other);
  assert.equal(Module._ashlar_check(), 0);
});

// Would catch: a malloc that takes the sanitizer's place: its own blocks are not watched.
test('G78 emscripten#20951 -fsanitize=address: emscripten', async () => {
  const object = await compileObject('emscripten', 'overflow.c', ['-fsanitize=address']);
  const flags = ['-O1', '-fsanitize=address', '-sALLOW_MEMORY_GROWTH', '-sENVIRONMENT=node'];
  const library = archive('emscripten');
  const file = await link('emscripten', 'overflow', [object], library, flags, 'js');
  const { stdout, stderr } = await runEmscripten(file);
  assert.match(stderr, /AddressSanitizer: heap-buffer-overflow/);
  assert.match(stderr, /0 bytes to the right of 100-byte region/);
  assert.doesNotMatch(stdout, /survived/);
});

// Would catch: an import that a WASI host doesn't know; a random seed or a clock for our sake.
test('G81 emscripten#18197 imports: an empty program has none', async () => {
  const empty = await makeProgram('empty', 'wasi', ['empty.c']);
  assert.deepEqual(wasmImports(empty.file), []);
  const names = wasmImports(cases.wasi.file);
  assert.ok(names.every((name) => name.startsWith('wasi_snapshot_preview1.')), names.join(' '));
  // STANDALONE_WASM with growth imports this one, whoever's malloc it is.
  const standalone = wasmImports(cases['emscripten-standalone'].file);
  const others = standalone.filter((name) => !name.startsWith('wasi_snapshot_preview1.'));
  assert.deepEqual(others, ['env.emscripten_notify_memory_growth']);
});

// Would catch: a name that only Emscripten's own malloc library has (emscripten_builtin_memalign).
test('G83 emscripten#10813 mmap with -sMALLOC=none', async () => {
  const program = await makeProgram('none', 'emscripten-growth', ['cases.c', 'rows_a.c'], {
    flags: ['-sMALLOC=none'],
  });
  mustPass(await runCase(program, 'A16_mmap'));
  mustPass(await runCase(program, 'A1'));
});

// ---- I. Semantics

// Would catch: malloc(0) that is NULL or shared; realloc(p, 0) that frees.
row('I88 emscripten#9364 zero sizes', 'I88', both);
// Would catch: type punning that -O3 breaks.
row('I89 wasi-libc#421 realloc to every power of two', 'I89', both);
// Would catch: a malloc_trim that breaks the heap.
row('I90 emscripten#23343 malloc_trim', 'I90', ['emscripten-growth']);
// Would catch: counts that miss memalign or count realloc twice.
row('I92 emscripten#6223 counts', 'I92', both);
// Would catch: an error in the smallest sizes.
row('I97 emscripten#13727 small sizes', 'I97', kindNames);

for (const kind of both) {
  // Would catch: growth although memory was reserved: JavaScript's views would be detached.
  test(`I94 emscripten#6747 views stay valid after ashlar_reserve: ${kind}`, async () => {
    const instance = await start(cases[kind]);
    mustPass(instance.call('case_I94_reserve'));
    const view = new Uint8Array(instance.memory.buffer);
    mustPass(instance.call('case_I94_use'));
    assert.equal(instance.memory.buffer, view.buffer);
    assert.ok(view.length > 0);
  });
  // Would catch: a growth that Emscripten's views don't follow: its output would be lost.
  test(`I94 emscripten#6747 output after growth: ${kind}`, async () => {
    const instance = await start(cases[kind]);
    mustPass(instance.call('case_I94_grow'));
    assert.ok(instance.memory.buffer.byteLength > 200 * 2 ** 20);
    const { metrics } = instance.call('case_version');
    assert.equal(metrics.fast, 1);
  });
}

// Would catch: state outside linear memory, or addresses that hold only in the first instance.
test('I96 emscripten#1956 memory restored in a new instance', async () => {
  const first = await start(cases.wasi);
  mustPass(first.call('case_I96_save'));
  const snapshot = new Uint8Array(first.memory.buffer).slice();
  // What the first does afterwards must not matter.
  mustPass(first.call('case_I96_go_on'));
  for (let turn = 0; turn < 3; turn++) {
    const second = await start(cases.wasi);
    second.memory.grow((snapshot.length - second.memory.buffer.byteLength) / 65536);
    new Uint8Array(second.memory.buffer).set(snapshot);
    mustPass(second.call('case_I96_go_on'));
  }
});

// Would catch: allocator state below the stack, where an overflow writes.
test('I95 wasi-libc#233 stack overflow with --stack-first', async () => {
  const program = await makeProgram('stack', 'wasi', ['cases.c', 'stack.c'], {
    flags: ['-Wl,--stack-first'],
  });
  const instance = await start(program);
  // What a trap in the middle leaves of the stack pointer is the host's to restore.
  mustPass(instance.call('case_I95_fill'));
  const { trap, metrics } = instance.call('case_I95_overflow');
  assert.match(trap, /out of bounds|stack/i);
  assert.equal(metrics.returned, undefined);
  const fresh = await start(program);
  fresh.memory.grow((instance.memory.buffer.byteLength - fresh.memory.buffer.byteLength) / 65536);
  new Uint8Array(fresh.memory.buffer).set(new Uint8Array(instance.memory.buffer));
  mustPass(fresh.call('case_I95_after'));
});
