// What every block and every call promises, on every target and in every profile: the cases of
// programs/semantics.c.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildAll, casesProgram, mustPass, numbers, profiles, runCase, start } from './support.mjs';

// Where memory ends at 32 MiB, 32 MiB and (STANDALONE_WASM) 128 MiB.
const kinds = ['wasi-limit', 'emscripten-growth', 'emscripten-fixed', 'emscripten-standalone'];
const limitPages = 512;

const everywhere = {
  zero_size: 'a malloc(0) that is NULL, shared or misaligned',
  refused_sizes: 'sizes that wrap, no ENOMEM, a refused realloc that changed its block',
  calloc_overflow: 'a product that wraps, or 0 elements taken for an overflow',
  alignment: 'a block of malloc, calloc or realloc below the alignment of max_align_t',
  aligned: 'a misaligned block, overlapping ones, the wrong error for a wrong alignment',
  realloc_refused: 'a refused realloc that changed the block, its contents or a count',
  realloc_same_size: 'a realloc to the same or the usable size that moves the block',
  realloc_contents: 'a realloc that loses or mixes up bytes',
  usable_size: 'usable bytes that are another block\'s or the allocator\'s',
  calloc_reused: 'a calloc that leaves old bytes in reused memory',
  out_of_memory: 'an abort, a wrong errno or a damaged heap at the end of memory',
  failure_changes_nothing: 'a failing request that allocates or grows',
  empty_pages_are_reclaimed: 'NULL although the memory is there, in empty pages',
  plateau: 'emptied memory that isn\'t reused when cycles repeat',
  plateau_size_by_size: 'memory that only its own size can use again',
  lone_block_grows_in_place: 'a last block that is copied instead of extended',
  tiny: 'a first malloc that grows memory by more than two wasm pages',
  reserve: 'a reservation that is too small, or is grown past',
  errno_is_kept: 'a free or a successful call that changes errno',
  version: 'a version or profile that the archive does not say',
  both_faces: 'malloc and ashlar_malloc that are two heaps',
};

const jobs = kinds.flatMap((kind) => profiles.map((profile) => ({ kind, profile })));
const programs = await buildAll(
  jobs.map(({ kind, profile }) => () => casesProgram(kind, profile)),
);

for (const [index, { kind, profile }] of jobs.entries()) {
  describe(`${kind} ${profile}`, () => {
    const program = programs[index];
    for (const [name, catches] of Object.entries(everywhere)) {
      test(`${name} (would catch: ${catches})`, async (context) => {
        const result = await runCase(program, name, { limitPages });
        if (Object.keys(result.metrics).length) context.diagnostic(numbers(result.metrics));
        mustPass(result);
        if (name === 'version') assert.equal(result.metrics[profile], 1);
      });
    }

    // Would catch: a calloc that clears what nobody ever wrote. The host writes into the fresh
    // memory first: what is not its byte afterwards was written by us. No program meets such
    // memory; it only makes our writes visible.
    test('calloc writes at most 64 bytes to fresh memory', async () => {
      const instance = await start(program, { limitPages });
      const reserved = instance.call('case_fresh_reserve');
      mustPass(reserved);
      // Our own structures stand at the edges.
      const begin = reserved.metrics.fresh_begin + 65536;
      const end = reserved.metrics.fresh_end - 65536;
      new Uint8Array(instance.memory.buffer, begin, end - begin).fill(0xaa);
      const result = instance.call('case_fresh_calloc');
      mustPass(result);
      const blocks = [...result.stdout.matchAll(/block=(\d+)\nblock_bytes=(\d+)/g)];
      assert.equal(blocks.length, 5);
      let covered = 0;
      for (const [, address, length] of blocks.map((match) => match.map(Number))) {
        const from = Math.max(address, begin);
        const to = Math.min(address + length, end);
        if (to <= from) continue;
        let written = 0;
        for (const byte of new Uint8Array(instance.memory.buffer, from, to - from)) {
          if (byte !== 0xaa) written++;
        }
        assert.ok(written <= 64, `${written} bytes of ${length} were written`);
        covered += to - from;
      }
      assert.ok(covered >= 7 * 2 ** 20, `only ${covered} bytes were in fresh memory`);
    });
  });
}

for (const profile of profiles) {
  for (const kind of ['wasi', 'emscripten-growth']) {
    // Would catch: a size above 2 GiB taken for negative, an end of 2^32 taken for 0.
    test(`blocks of 2 to almost 4 GiB, memory to its end: ${kind} ${profile}`, async () => {
      const program = await casesProgram(kind, profile);
      const large = ['C34_2GiB', 'C34_3GiB', 'C34_almost_4GiB', 'grow_beyond_4GiB', 'C35', 'B27'];
      for (const name of large) mustPass(await runCase(program, name));
      if (kind === 'wasi') mustPass(await runCase(program, 'C40'));
    });
  }
}
