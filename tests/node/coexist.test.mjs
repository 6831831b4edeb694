// Two owners of one memory (field report, section F): the program's own sbrk and memory.grow, and
// the host's, before and between our own growth. The programs are in programs/coexist.c.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildAll, casesProgram, mustPass, profiles, runCase, start } from './support.mjs';

const kinds = ['wasi', 'emscripten-growth', 'emscripten-fixed', 'emscripten-standalone'];
const jobs = kinds.flatMap((kind) => profiles.map((profile) => ({ kind, profile })));
const programs = await buildAll(
  jobs.map(({ kind, profile }) => () => casesProgram(kind, profile)),
);

const grows = ['wasi', 'emscripten-growth', 'emscripten-standalone'];
const emscripten = kinds.slice(1);
const growing = emscripten.filter((kind) => grows.includes(kind));
const tests = [
  // Would catch: memory up to memory.size taken for ours before the first malloc.
  ['F64 wasi-libc#377 memory.grow before the first malloc', 'grow_before_first', grows],
  // Would catch: two growths that are taken for neighbours though a stranger's lies between.
  ['F65 wasm-tools#900 memory.grow between ours', 'grow_between', ['wasi']],
  // Would catch: a break below a stranger's memory, which the next sbrk then hands to us.
  ['F67 zig#25858 memory.grow behind the break', 'grow_between', growing],
  // Would catch: the program's own sbrk and ours handing out the same bytes.
  ['F66 wasi-libc#220 sbrk of any length between ours', 'sbrk_between', kinds],
  ['F66 wasi-libc#220 sbrk before the first malloc', 'sbrk_before_first', kinds],
  // Would catch: memory given back that others then get while we still count on it.
  ['F70 libmemalloc#3 the break never goes down by us', 'never_shrinks', kinds],
  // Would catch: our blocks handed out again after the program moved the break down.
  ['F70 libmemalloc#3 the program moves the break down', 'sbrk_down', emscripten],
  ['F66 wasi-libc#220 brk between ours', 'brk_up', emscripten],
  // Would catch: memory that grew without a taker, and that two then take.
  ['F67 zig#25858 emscripten_resize_heap between ours', 'resize_heap', growing],
];
for (const [name, caseName, kindList] of tests) {
  for (const [index, { kind, profile }] of jobs.entries()) {
    if (!kindList.includes(kind)) continue;
    test(`${name}: ${kind} ${profile}`, async () => {
      mustPass(await runCase(programs[index], caseName));
    });
  }
}

for (const [index, { kind, profile }] of jobs.entries()) {
  if (kind !== 'wasi') continue;
  // Would catch: memory behind __heap_end that is taken for ours because memory.size covers it.
  test(`F68 wasm-bindgen#5225 the host grows memory: ${kind} ${profile}`, async () => {
    const regions = [];
    const grow = (memory, pages) => {
      const begin = memory.grow(pages) * 65536;
      new Uint8Array(memory.buffer, begin, pages * 65536).fill(0x68);
      regions.push([begin, pages * 65536]);
    };
    const intact = (memory) => {
      for (const [begin, bytes] of regions) {
        assert.ok(new Uint8Array(memory.buffer, begin, bytes).every((byte) => byte === 0x68));
      }
    };
    const instance = await start(programs[index], { beforeStart: ({ memory }) => grow(memory, 5) });
    mustPass(instance.call('case_host_first'));
    intact(instance.memory);
    grow(instance.memory, 3);
    mustPass(instance.call('case_host_second'));
    grow(instance.memory, 1);
    mustPass(instance.call('case_grow_between'));
    intact(instance.memory);
  });
}
