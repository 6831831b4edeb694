// What load() gives: the module's functions with numbers that are checked, addresses without a sign
// and faults as errors. index.js (browsers) and node.js say how the module's file is read.

const tagOf = (value) => Object.prototype.toString.call(value).slice('[object '.length, -1);

// Each URL is written out, since that is what bundlers look for.
const files = {
  fast: {
    own: () => new URL('../wasm/fast/ashlar.wasm', import.meta.url),
    imported: () => new URL('../wasm/fast/ashlar-imported.wasm', import.meta.url),
  },
  small: {
    own: () => new URL('../wasm/small/ashlar.wasm', import.meta.url),
    imported: () => new URL('../wasm/small/ashlar-imported.wasm', import.meta.url),
  },
  bare: {
    own: () => new URL('../wasm/bare/ashlar.wasm', import.meta.url),
    imported: () => new URL('../wasm/bare/ashlar-imported.wasm', import.meta.url),
  },
};

// The words of messages by their number, which is what the profile `small` says instead.
const faults = [
  [],
  ['double free of', 'DOUBLE_FREE'],
  ['interior pointer', 'INTERIOR_POINTER'],
  ['foreign pointer', 'FOREIGN_POINTER'],
  ['never allocated', 'NEVER_ALLOCATED'],
  ['corrupted header at', 'CORRUPTED_HEADER'],
];

export class AshlarError extends Error {
  constructor(message, code, { address = 0, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'AshlarError';
    this.code = code;
    this.address = address;
  }
}

function faultOf(message) {
  const [, said, hex] = /^ashlar: (.*) 0x([0-9a-f]+)$/.exec(message) ?? [];
  const [, code] = faults.find(([words], number) => said === words || said === `${number}`) ?? [];
  return code && new AshlarError(message, code, { address: parseInt(hex, 16) });
}

// WebAssembly would take any value modulo 2^32: malloc(-1), free('x') and malloc(2 ** 40) must not
// get that far.
function checked(value, what) {
  if (typeof value !== 'number') {
    throw new TypeError(`ashlar: ${what} must be a number, not ${tagOf(value)}`);
  }
  if (value >>> 0 !== value) {
    throw new RangeError(`ashlar: ${what} must be an integer from 0 to 4294967295, not ${value}`);
  }
  return value;
}

// ashlar_stats_t in wasm32: two 64-bit counters, then words.
const counters = ['allocations', 'frees'];
const words = ['live_blocks', 'live_bytes', 'committed_bytes', 'used_peak_bytes', 'free_bytes',
  'free_blocks', 'largest_free_bytes', 'grow_count'];
const statsBytes = 8 * counters.length + 4 * words.length;

function readStats(view) {
  const stats = {};
  counters.forEach((name, index) => {
    stats[name] = Number(view.getBigUint64(8 * index, true));
  });
  words.forEach((name, index) => {
    stats[name] = view.getUint32(8 * counters.length + 4 * index, true);
  });
  return stats;
}

class Heap {
  #stopped = null;
  #bytes = null;

  constructor(exports, memory) {
    this.exports = exports;
    this.memory = memory;
    this.version = this.#text(exports.ashlar_version());
    Object.freeze(this);
  }

  malloc(size) {
    return this.#run('ashlar_malloc', checked(size, 'size'));
  }
  calloc(count, size) {
    return this.#run('ashlar_calloc', checked(count, 'count'), checked(size, 'size'));
  }
  realloc(address, size) {
    return this.#run('ashlar_realloc', checked(address, 'address'), checked(size, 'size'));
  }
  alignedAlloc(alignment, size) {
    checked(alignment, 'alignment');
    if (alignment === 0 || (alignment & (alignment - 1)) !== 0) {
      throw new RangeError(`ashlar: alignment must be a power of two, not ${alignment}`);
    }
    return this.#run('ashlar_aligned_alloc', alignment, checked(size, 'size'));
  }
  free(address) {
    this.#run('ashlar_free', checked(address, 'address'));
  }
  usableSize(address) {
    return this.#run('ashlar_usable_size', checked(address, 'address'));
  }
  goodSize(size) {
    return this.exports.ashlar_good_size(checked(size, 'size')) >>> 0;
  }
  reserve(bytes) {
    return this.#run('ashlar_reserve', checked(bytes, 'bytes')) === 0;
  }
  setGrowth(divisor) {
    return this.#run('ashlar_set_growth', checked(divisor, 'divisor'));
  }

  get usedPeak() {
    return this.exports.ashlar_used_peak() >>> 0;
  }
  get lastMessage() {
    return this.#text(this.exports.ashlar_last_message());
  }

  // The numbers are written over the last message, whose text is put back: a block for them would
  // be counted, and a heap that is full has none.
  stats() {
    const scratch = this.exports.ashlar_last_message() >>> 0;
    const bytes = this.u8(scratch, statsBytes);
    const message = bytes.slice();
    try {
      this.exports.ashlar_stats(scratch);
      return readStats(this.view(scratch, statsBytes));
    } finally {
      bytes.set(message);
    }
  }

  check() {
    if (this.exports.ashlar_check() === 0) return true;
    throw faultOf(this.lastMessage);
  }

  get bytes() {
    const { buffer } = this.memory;
    if (this.#bytes?.buffer !== buffer) this.#bytes = new Uint8Array(buffer);
    return this.#bytes;
  }
  view(address, length) {
    return this.#over(DataView, address, length);
  }
  u8(address, length) {
    return this.#over(Uint8Array, address, length);
  }
  i8(address, length) {
    return this.#over(Int8Array, address, length);
  }
  u16(address, length) {
    return this.#over(Uint16Array, address, length);
  }
  i16(address, length) {
    return this.#over(Int16Array, address, length);
  }
  u32(address, length) {
    return this.#over(Uint32Array, address, length);
  }
  i32(address, length) {
    return this.#over(Int32Array, address, length);
  }
  u64(address, length) {
    return this.#over(BigUint64Array, address, length);
  }
  i64(address, length) {
    return this.#over(BigInt64Array, address, length);
  }
  f32(address, length) {
    return this.#over(Float32Array, address, length);
  }
  f64(address, length) {
    return this.#over(Float64Array, address, length);
  }

  // The memory's buffer is another one after each growth, so it is asked for each time.
  #over(View, address, length) {
    // What a malloc that found no memory returned: writing there would hit whatever lies at 0.
    if (address === 0) throw new RangeError('ashlar: address is 0, where no block is');
    return new View(this.memory.buffer, checked(address, 'address'), checked(length, 'length'));
  }

  // Not by TextDecoder, which worklets lack. The texts are ASCII.
  #text(address) {
    const { bytes } = this;
    let text = '';
    for (let at = address >>> 0; bytes[at] !== 0; at++) text += String.fromCharCode(bytes[at]);
    return text;
  }

  #run(name, first, second) {
    if (this.#stopped) {
      const why = `${this.#stopped.message}; this heap is broken`;
      throw new AshlarError(why, 'BROKEN', { cause: this.#stopped });
    }
    try {
      return this.exports[name](first, second) >>> 0;
    } catch (trap) {
      throw this.#explained(trap, name);
    }
  }

  // The core finds misuse before it has changed anything: the heap goes on. A header that was
  // overwritten, or a trap that is not the core's own, may have left it half changed.
  #explained(trap, name) {
    const isOurs = trap instanceof WebAssembly.RuntimeError && /unreachable/i.test(trap.message);
    const fault = isOurs ? faultOf(this.lastMessage) : null;
    if (fault && fault.code !== 'CORRUPTED_HEADER') return fault;
    const words = `ashlar: ${name.replace('ashlar_', '')} died: ${trap.message}`;
    this.#stopped = fault ?? new AshlarError(words, 'BROKEN', { cause: trap });
    return this.#stopped;
  }
}

// ---- load

const optionNames = ['profile', 'memory', 'module'];

function acceptOptions(options) {
  if (tagOf(options) !== 'Object') {
    throw new TypeError(`ashlar: load takes an object of options, not ${tagOf(options)}`);
  }
  const unknown = Object.keys(options).find((name) => !optionNames.includes(name));
  if (unknown !== undefined) throw new TypeError(`ashlar: load has no option ${unknown}`);
  const { profile, memory, module } = options;
  if (profile !== undefined && !Object.hasOwn(files, profile)) {
    throw new RangeError(`ashlar: profile must be fast, small or bare, not ${String(profile)}`);
  }
  if (profile !== undefined && module !== undefined) {
    throw new TypeError('ashlar: profile and module exclude each other: a module has its profile');
  }
  if (memory !== undefined) checkMemory(memory);
}

function checkMemory(memory) {
  // By their tags, since those of another realm are no instances of this one's classes.
  if (tagOf(memory) !== 'WebAssembly.Memory') {
    throw new TypeError(`ashlar: memory must be a WebAssembly.Memory, not ${tagOf(memory)}`);
  }
  if (tagOf(memory.buffer) === 'SharedArrayBuffer') {
    throw new TypeError('ashlar: a shared memory needs a build for threads; this one has none');
  }
}

const fileOf = ({ profile = 'fast', memory }) => files[profile][memory ? 'imported' : 'own']();

const isModule = (source) => tagOf(source) === 'WebAssembly.Module';
const isBytes = (source) => ArrayBuffer.isView(source) || tagOf(source) === 'ArrayBuffer';

function checkImports(module, memory) {
  const imports = WebAssembly.Module.imports(module);
  const wanted = imports.map((each) => `${each.module}.${each.name}`);
  if (wanted.some((name) => name !== 'env.memory')) {
    throw new TypeError(`ashlar: this module is none of Ashlar's: it imports ${wanted.join(', ')}`);
  }
  if (wanted.length > 0 && !memory) throw new TypeError('ashlar: this module needs a memory');
  if (wanted.length === 0 && memory) {
    throw new TypeError('ashlar: this module has its own memory; ashlar-imported.wasm takes one');
  }
}

function makeHeap({ exports }, memory) {
  if (typeof exports.ashlar_malloc !== 'function') {
    throw new TypeError("ashlar: this module is none of Ashlar's: it exports no ashlar_malloc");
  }
  return new Heap(exports, memory ?? exports.memory);
}

// ashlar-imported.wasm grows the memory for its own state when it starts, or traps.
function explainedStart(error) {
  if (!(error instanceof WebAssembly.RuntimeError)) return error;
  return new AshlarError("ashlar: no memory for the allocator's own state", 'NO_MEMORY', {
    cause: error,
  });
}

async function bytesOf(given, read) {
  const source = tagOf(given) === 'URL' ? await read(given) : given;
  if (isBytes(source)) return source;
  if (tagOf(source) !== 'Response') {
    const kinds = 'bytes, a WebAssembly.Module, a Response or a URL';
    throw new TypeError(`ashlar: module must be ${kinds}, not ${tagOf(source)}`);
  }
  // Not compiled while it streams: that fails when a server calls it another type.
  if (!source.ok) throw new Error(`ashlar: ${source.url}: ${source.status} ${source.statusText}`);
  return source.arrayBuffer();
}

// `read` resolves to the bytes at a URL, or to the Response.
export const makeLoad = (read) =>
  async function load(options = {}) {
    acceptOptions(options);
    const { memory } = options;
    const source = (await options.module) ?? fileOf(options);
    const compile = async () => WebAssembly.compile(await bytesOf(source, read));
    const module = isModule(source) ? source : await compile();
    checkImports(module, memory);
    const start = WebAssembly.instantiate(module, { env: { memory } });
    const instance = await start.catch((error) => Promise.reject(explainedStart(error)));
    return makeHeap(instance, memory);
  };

// `readSync` returns the bytes at a URL, or throws where that is not possible.
export const makeLoadSync = (readSync) =>
  function loadSync(options = {}) {
    acceptOptions(options);
    const { memory, module: source = readSync(fileOf(options)) } = options;
    if (!isModule(source) && !isBytes(source)) {
      throw new TypeError(
        `ashlar: module must be bytes or a WebAssembly.Module here, not ${tagOf(source)}`,
      );
    }
    const module = isModule(source) ? source : new WebAssembly.Module(source);
    checkImports(module, memory);
    try {
      return makeHeap(new WebAssembly.Instance(module, { env: { memory } }), memory);
    } catch (error) {
      throw explainedStart(error);
    }
  };
