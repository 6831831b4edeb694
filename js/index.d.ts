/**
 * A heap of Ashlar in a WebAssembly memory. Addresses and sizes are unsigned 32-bit integers. The
 * namespace WebAssembly comes with TypeScript's libraries `dom` and `webworker`.
 */

export type Profile = 'fast' | 'small' | 'bare';

/** What `module` may be: bytes, a compiled module, where its bytes are, or what a server said. */
export type ModuleBytes = ArrayBuffer | ArrayBufferView;
export interface ModuleResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly url: string;
  arrayBuffer(): Promise<ArrayBuffer>;
}
export type ModuleSource = ModuleBytes | WebAssembly.Module | ModuleResponse | URL;

export interface LoadSyncOptions {
  /** Which module of the package is taken: `fast` (the default), `small` or `bare`. */
  profile?: Profile;
  /**
   * The memory that the heap lives in, beside whatever else is there: ashlar-imported.wasm grows
   * it and touches only what it grew itself. Not shared. Without one, the heap has its own.
   */
  memory?: WebAssembly.Memory;
  /** A module of Ashlar's instead of the package's; with `memory` one that imports it. */
  module?: ModuleBytes | WebAssembly.Module;
}
export interface LoadOptions extends Omit<LoadSyncOptions, 'module'> {
  module?: ModuleSource | Promise<ModuleSource>;
}

/** Throws AshlarError `NO_MEMORY` when `memory` cannot grow by the heap's own state (a few KiB). */
export function load(options?: LoadOptions): Promise<Heap>;
/**
 * The same at once. In Node `module` may be left out. Browsers need it, and may compile only small
 * modules at once on a page's main thread.
 */
export function loadSync(options?: LoadSyncOptions): Heap;

export interface Heap {
  /** `size` bytes, contents undefined. 0 when there is no memory for them, as with all below. */
  malloc(size: number): number;
  /** `count * size` bytes, all zero. */
  calloc(count: number, size: number): number;
  /** Resizes a block, moving it when it cannot stay; 0 as `address` allocates. It never frees. */
  realloc(address: number, size: number): number;
  /** `alignment` is a power of two; a RangeError otherwise. */
  alignedAlloc(alignment: number, size: number): number;
  /** 0 does nothing. */
  free(address: number): void;
  /** How many bytes of the block are the caller's. */
  usableSize(address: number): number;
  /** The usable size that a request of `size` would get at least. */
  goodSize(size: number): number;

  /** Grows memory now for requests of `bytes` in sum; false when refused. */
  reserve(bytes: number): boolean;
  /** Memory grows by at least 1/divisor of what is held; 0: by what is needed. The one before. */
  setGrowth(divisor: number): number;

  readonly usedPeak: number;
  /** Exact, in a heap of any state; allocates nothing. */
  stats(): Stats;
  /** true, or throws an AshlarError `CORRUPTED_HEADER` that names the first fault. */
  check(): true;
  /** The last line of misuse or failed validation; '' when there was none. */
  readonly lastMessage: string;
  /** `ashlar VERSION PROFILE` */
  readonly version: string;
  readonly memory: WebAssembly.Memory;
  /** The module's own functions (`ashlar_malloc`, ...), unchecked, with addresses as signed i32. */
  readonly exports: Readonly<Record<string, (...words: number[]) => number>>;

  /** All of memory; the same object until memory grows, then another. */
  readonly bytes: Uint8Array;
  /**
   * Views of `length` bytes (`view`) or elements (the others) from `address`: fresh on each call,
   * valid until memory grows, which any call that allocates may do. Address 0 is refused.
   */
  view(address: number, length: number): DataView;
  u8(address: number, length: number): Uint8Array;
  i8(address: number, length: number): Int8Array;
  u16(address: number, length: number): Uint16Array;
  i16(address: number, length: number): Int16Array;
  u32(address: number, length: number): Uint32Array;
  i32(address: number, length: number): Int32Array;
  u64(address: number, length: number): BigUint64Array;
  i64(address: number, length: number): BigInt64Array;
  f32(address: number, length: number): Float32Array;
  f64(address: number, length: number): Float64Array;
}

/** As ashlar_stats_t in include/ashlar.h. The two counters are exact up to 2^53. */
export interface Stats {
  allocations: number;
  frees: number;
  live_blocks: number;
  live_bytes: number;
  committed_bytes: number;
  used_peak_bytes: number;
  free_bytes: number;
  free_blocks: number;
  largest_free_bytes: number;
  grow_count: number;
}

export type FaultCode =
  | 'DOUBLE_FREE'
  | 'INTERIOR_POINTER'
  | 'FOREIGN_POINTER'
  | 'NEVER_ALLOCATED'
  | 'CORRUPTED_HEADER'
  | 'NO_MEMORY'
  | 'BROKEN';

/**
 * Misuse, by the core's own line: "ashlar: double free of 0x1a40". Nothing was changed, and the
 * heap goes on. After a `CORRUPTED_HEADER` that stopped a call, or another trap (`BROKEN`, with
 * its `cause`), it refuses all but what looks: stats, check, usedPeak, lastMessage, views.
 */
export class AshlarError extends Error {
  private constructor();
  readonly name: 'AshlarError';
  readonly code: FaultCode;
  /** The address that was misused or is corrupted; 0 when there is none. */
  readonly address: number;
}
