// Compiled, never run: what a TypeScript user writes with load(), and what must not pass.
import { load, loadSync, AshlarError, type Heap } from 'ashlar';
import { selftest } from 'ashlar/selftest';

const heap: Heap = await load({ profile: 'small' });
const block: number = heap.malloc(100);
heap.u8(block, 100).fill(7);
const live: number = heap.stats().live_bytes;
const shared: Heap = loadSync({ memory: new WebAssembly.Memory({ initial: 1 }) });
try {
  shared.free(block + live);
} catch (error) {
  if (error instanceof AshlarError) console.log(error.code, error.address, error.message);
}
const { passed }: { passed: number } = await selftest(new Uint8Array());
console.log(passed);

// @ts-expect-error: addresses and sizes are numbers
heap.malloc('x');
// @ts-expect-error: there is no such profile
await load({ profile: 'quick' });
// @ts-expect-error: there is no such function
heap.mallok(1);
