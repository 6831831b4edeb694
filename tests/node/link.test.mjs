// How programs link: against each toolchain's libc and C++ library, in the ways its users build.
// The programs are in link/; each prints "<name> ok".
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { fingerprint } from '../../demo/check.mjs';
import {
  buildPath,
  emcc,
  findEmscripten,
  nativeCompile,
  root,
  run,
  runEmscripten,
  runNative,
  runWasi,
  wasiCompile,
  wasmImports,
} from '../../demo/toolchain.mjs';
import { archive, profiles } from './support.mjs';

const sources = path.join(path.dirname(fileURLToPath(import.meta.url)), 'link');
const source = (name) => path.join(sources, name);
fs.mkdirSync(buildPath('tests-node'), { recursive: true });
const outputs = fs.mkdtempSync(buildPath('tests-node', 'link-'));
process.on('exit', () => fs.rmSync(outputs, { recursive: true, force: true }));

// -fno-builtin: a compiler may remove a malloc whose block is not used.
const common = ['-O2', '-fno-builtin', `-I${path.join(root, 'include')}`];
let number = 0;
const output = (extension) => path.join(outputs, `${++number}${extension}`);

// Which members of archives a link took functions from, by the linker's map.
const membersInMap = (map) =>
  new Set(
    [...map.matchAll(/([\w+-]+\.a)\(([\w.+-]+)\)/g)].map((match) => `${match[1]}(${match[2]})`),
  );
const otherMallocs = (map) =>
  [...membersInMap(map)].filter((member) => {
    const [library, name] = member.split('(');
    // libc++abi keeps some memory for exceptions when malloc has none; it is no second malloc.
    if (library.startsWith('libashlar') || name.startsWith('fallback_malloc')) return false;
    return /malloc/.test(name) || /^lib(dl|em|mi)malloc/.test(library);
  });

const languageOf = (name) => (name.endsWith('.cc') ? ['-std=c++17'] : []);

async function linkWasi(name, library, flags = [], options = {}) {
  const file = output('.wasm');
  const exceptions = name.endsWith('.cc') ? ['-fno-exceptions'] : [];
  const all = [...common, ...languageOf(name), ...exceptions, ...flags, source(name)];
  const result = await wasiCompile(
    [...all, ...(library ? [library] : []), '-Wl,--print-map', '-o', file],
    options,
  );
  return { file, map: result.stdout, ...result };
}

async function linkEmscripten(name, library, flags = [], options = {}) {
  const file = output(options.extension ?? '.js');
  const result = await emcc(
    [
      ...common,
      ...languageOf(name),
      ...flags,
      source(name),
      ...(library ? [library] : []),
      '-Wl,--print-map',
      '-o',
      file,
    ],
    options,
  );
  return { file, wasm: file.replace(/js$/, 'wasm'), map: result.stdout, ...result };
}

async function linkNative(name, library, flags = [], options = {}) {
  const file = output('');
  const result = await nativeCompile(
    [
      ...common,
      ...languageOf(name),
      ...flags,
      source(name),
      ...(library ? [library] : []),
      '-o',
      file,
      '-lpthread',
    ],
    options,
  );
  return { file, ...result };
}

const wasi = (profile) => archive('wasi', profile);
const emscripten = (profile) => archive('emscripten', profile);
const pic = () => archive('emscripten', 'fast', 'libashlar-pic.a');
const native = (profile) => archive('native', profile);

function ranWell({ status, trap, stdout, stderr }, text) {
  assert.equal(trap, null, stderr);
  assert.equal(status, 0, `${stdout}${stderr}`);
  assert.match(stdout, text);
}

// ---- WASI

const wasiNames = `malloc free calloc realloc posix_memalign aligned_alloc malloc_usable_size
  __libc_malloc __libc_free __libc_calloc memalign reallocarray valloc pvalloc`.split(/\s+/);
test('WASI: any one name alone takes all of them from Ashlar', async () => {
  // Would catch: a name in a member by itself, so that another pulls in the libc's malloc.
  for (const name of wasiNames) {
    const { map } = await linkWasi('bare.c', wasi(), [`-Wl,--export=${name}`]);
    assert.deepEqual(otherMallocs(map), [], name);
    assert.ok(
      [...membersInMap(map)].some((member) => member.startsWith('libashlar.a(override_')),
      name,
    );
  }
});

for (const profile of profiles) {
  test(`WASI: all names are one allocator: ${profile}`, async () => {
    // Would catch: a name that is not wired to the heap, or to the wrong function of it.
    const { file, map } = await linkWasi('names.c', wasi(profile));
    assert.deepEqual(otherMallocs(map), []);
    ranWell(await runWasi(file), /^names ok/m);
  });

  test(`WASI: what the libc allocates itself is Ashlar's: ${profile}`, async () => {
    // Would catch: __libc_* that are missing; then the 33rd atexit handler does not link.
    const { file, map } = await linkWasi('libc.c', wasi(profile));
    assert.deepEqual(otherMallocs(map), []);
    const result = await runWasi(file);
    ranWell(result, /^100 handlers ran/m);
    assert.match(result.stdout, /^3890 bytes of text/m);
  });

  test(`WASI: operator new, all forms: ${profile}`, async () => {
    // Would catch: a form that goes past Ashlar, or past a replaced operator new (G78).
    const plain = await linkWasi('new.cc', wasi(profile));
    ranWell(await runWasi(plain.file), /^new ok/m);
    const replaced = await linkWasi('new.cc', wasi(profile), ['-DREPLACE']);
    ranWell(await runWasi(replaced.file), /^new ok/m);
    assert.deepEqual([...otherMallocs(plain.map), ...otherMallocs(replaced.map)], []);
  });

  test(`WASI: operator new that can't be served ends with a line: ${profile}`, async () => {
    // Would catch: a null from an operator new without exceptions, which the program then uses.
    const { file } = await linkWasi('new.cc', wasi(profile), ['-DOOM']);
    const { trap, stdout, stderr } = await runWasi(file);
    assert.notEqual(trap, null);
    assert.match(stderr, /^ashlar: out of memory: operator new of 4294900000 bytes$/m);
    assert.doesNotMatch(stdout, /not reached/);
  });

  test(`WASI: no import that the program would not have anyway: ${profile}`, async () => {
    // Would catch: random_get, fd_write or an env import because of us (G81).
    for (const [name, flags] of [
      ['bare.c', ['-DMALLOC']],
      ['stdio.c', []],
      ['libc.c', []],
      ['foreign.c', ['-DSILENT']],
    ]) {
      const ours = await linkWasi(name, wasi(profile), flags);
      const theirs = await linkWasi(name, null, flags);
      assert.deepEqual(wasmImports(ours.file).sort(), wasmImports(theirs.file).sort(), name);
    }
  });

  test(`WASI: malloc(10) grows memory by at most two pages: ${profile}`, async () => {
    // Would catch: a first growth by a large minimum.
    const without = await runWasi((await linkWasi('bare.c', null)).file);
    const linked = await runWasi((await linkWasi('bare.c', wasi(profile), ['-DMALLOC'])).file);
    assert.equal(linked.status, 0);
    const pages = (linked.memoryBytes - without.memoryBytes) / 65536;
    assert.ok(pages <= 2, `${pages} pages`);
  });

  test(`the fingerprint is in every binary: ${profile}`, async () => {
    // Would catch: a string that gc-sections or wasm-opt removes because nothing refers to it.
    const expected = new RegExp(`^ashlar \\d+\\.\\d+\\.\\d+ ${profile}$`);
    const small = ['-Oz', '-Wl,--gc-sections', '-Wl,--strip-all', '-DMALLOC'];
    const { file } = await linkWasi('bare.c', wasi(profile), small);
    assert.match(fingerprint(file), expected);
    const optimized = output('.wasm');
    const optimizer = path.join(root, 'node_modules/binaryen/bin/wasm-opt');
    const { status, stderr } = await run(process.execPath, [
      optimizer,
      '-all',
      '-O4',
      '--strip-debug',
      '--strip-producers',
      '--vacuum',
      file,
      '-o',
      optimized,
    ]);
    assert.equal(status, 0, stderr);
    assert.match(fingerprint(optimized), expected);
    const glue = await linkEmscripten('bare.c', emscripten(profile), ['-Oz', '-DMALLOC']);
    assert.match(fingerprint(glue.wasm), expected);
    const elf = await linkNative('bare.c', native(profile), [
      '-DMALLOC',
      '-Os',
      '-Wl,--gc-sections',
      '-s',
    ]);
    assert.match(fingerprint(elf.file), expected);
  });
}

test('WASI: an archive after -lc never makes two allocators', async () => {
  // Would catch: weak names, and an operator new or memalign of ours beside the libc's malloc.
  const late = (name, flags) =>
    wasiCompile(
      [
        ...common,
        ...languageOf(name),
        ...flags,
        source(name),
        '-lc',
        wasi(),
        '-o',
        output('.wasm'),
      ],
      { check: false },
    );
  for (const [name, flags] of [
    ['names.c', []],
    ['new.cc', ['-fno-exceptions', '-DREPLACE']],
  ]) {
    const { status, stderr } = await late(name, flags);
    assert.notEqual(status, 0, name);
    assert.match(stderr, /duplicate symbol: (malloc|free|calloc)/);
  }
  // A program that is content with the libc's names has the libc's malloc, and no Ashlar.
  const { file, map } = await linkWasi('stdio.c', null, ['-lc', wasi()]);
  assert.equal(otherMallocs(map).length, 1);
  assert.equal(fingerprint(file), null);
});

test('LTO of the program: WASI, Emscripten, native', async () => {
  // Would catch: a calloc that the compiler calls when the archive was already looked through.
  const lto = ['-flto', '-fbuiltin'];
  const standard = await linkWasi('lto.c', wasi(), lto);
  assert.deepEqual(otherMallocs(standard.map), []);
  ranWell(await runWasi(standard.file), /^lto ok/m);
  const glue = await linkEmscripten('lto.c', emscripten(), lto);
  assert.deepEqual(otherMallocs(glue.map), []);
  ranWell(await runEmscripten(glue.file), /^lto ok/m);
  const elf = await linkNative('lto.c', native(), [...lto.slice(0, 1), '-static']);
  ranWell(await runNative(elf.file), /^lto ok/m);
});

test("WASI: a program's own malloc beside ours does not link", async () => {
  // Would catch: a program whose calloc is Ashlar's and whose free is not.
  const { status, stderr } = await linkWasi('partial.c', wasi(), [], { check: false });
  assert.notEqual(status, 0);
  assert.match(stderr, /duplicate symbol: (malloc|free)/);
});

test('WASI: a program may define what is not in the ten', async () => {
  // Would catch: a strong memalign or reallocarray beside malloc.
  const file = path.join(outputs, 'own_names.c');
  fs.writeFileSync(
    file,
    `#include <stdio.h>
#include <stdlib.h>
void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
void* reallocarray(void* block, size_t count, size_t size) { return realloc(block, 2 * count * size); }
void* pvalloc(size_t);
int main(void) {
  puts(memalign(64, 10) && reallocarray(NULL, 10, 10) && pvalloc(10) ? "own names ok" : "fail");
}
`,
  );
  await wasiCompile([...common, file, wasi(), '-o', `${file}.wasm`]);
  ranWell(await runWasi(`${file}.wasm`), /^own names ok/m);
});

// ---- the core beside the toolchain's malloc

test('the core leaves a program its malloc: WASI', async () => {
  // Would catch: the linker's heap taken by both (F64, F65).
  const { file, map } = await linkWasi('beside.c', archive('wasi', 'fast', 'libashlar-core.a'));
  assert.equal(otherMallocs(map).length, 1);
  ranWell(await runWasi(file), /^beside ok/m);
});

for (const malloc of ['dlmalloc', 'emmalloc']) {
  test(`the core leaves a program its malloc: Emscripten ${malloc}`, async () => {
    // Would catch: a break of ours beside the toolchain's.
    const core = archive('emscripten', 'fast', 'libashlar-core.a');
    const { file, map } = await linkEmscripten('beside.c', core, [
      `-sMALLOC=${malloc}`,
      '-sALLOW_MEMORY_GROWTH',
    ]);
    assert.ok(otherMallocs(map).length > 0);
    ranWell(await runEmscripten(file), /^beside ok/m);
  });
}

test('the core leaves a program its malloc: native', async () => {
  const { file } = await linkNative('beside.c', archive('native', 'fast', 'libashlar-core.a'));
  ranWell(await runNative(file), /^beside ok/m);
});

// ---- Emscripten

// Without the watching host: it reads every import, and reading one makes Emscripten's dynamic
// linker look for it.
async function runMainModule(file) {
  const fetchFlag = process.allowedNodeEnvironmentFlags.has('--experimental-fetch');
  const flags = fetchFlag ? ['--no-experimental-fetch'] : [];
  const result = await run(process.execPath, [...flags, file]);
  return { ...result, trap: result.status === 7 ? 'uncaught' : null };
}

const growth = '-sALLOW_MEMORY_GROWTH';
for (const profile of profiles) {
  for (const malloc of profile === 'fast' ? ['dlmalloc', 'emmalloc', 'none'] : ['none']) {
    test(`Emscripten -sMALLOC=${malloc}: all names are one allocator: ${profile}`, async () => {
      // Would catch: a name (or sbrk) that is missing without the toolchain's malloc.
      const { file, map } = await linkEmscripten('names.c', emscripten(profile), [
        `-sMALLOC=${malloc}`,
      ]);
      assert.deepEqual(otherMallocs(map), []);
      ranWell(await runEmscripten(file), /^names ok/m);
    });
  }
}

test("Emscripten: what the libc allocates itself is Ashlar's", async () => {
  // Would catch: __libc_* or emscripten_builtin_* from the toolchain's malloc (G83).
  const { file, map } = await linkEmscripten('libc.c', emscripten(), ['-sEXIT_RUNTIME']);
  assert.deepEqual(otherMallocs(map), []);
  const result = await runEmscripten(file);
  ranWell(result, /^100 handlers ran/m);
  assert.match(result.stdout, /^3890 bytes of text/m);
});

for (const malloc of ['dlmalloc', 'emmalloc', 'none']) {
  test(`Emscripten -sMALLOC=${malloc}: the calls of dlmalloc and emmalloc`, async () => {
    // Would catch: mallinfo of an allocator that serves nobody; emmalloc_* that link emmalloc.
    const { file, map } = await linkEmscripten('extras.c', emscripten(), [
      `-sMALLOC=${malloc}`,
      growth,
    ]);
    assert.deepEqual(otherMallocs(map), []);
    const result = await runEmscripten(file);
    ranWell(result, /^extras ok/m);
    assert.match(result.stderr, /^in use bytes     = +\d+$/m);
  });
}

for (const [name, flags] of [
  ['-fno-exceptions', ['-fno-exceptions']],
  ['-fexceptions', ['-fexceptions']],
  ['-fwasm-exceptions', ['-fwasm-exceptions']],
]) {
  test(`Emscripten: operator new, all forms: ${name}`, async () => {
    // Would catch: an archive that is right for one way of exceptions only.
    const { file, map } = await linkEmscripten('new.cc', emscripten(), flags);
    ranWell(await runEmscripten(file), /^new ok/m);
    const replaced = await linkEmscripten('new.cc', emscripten(), [...flags, '-DREPLACE']);
    ranWell(await runEmscripten(replaced.file), /^new ok/m);
    assert.deepEqual([...otherMallocs(map), ...otherMallocs(replaced.map)], []);
  });
}

test("Emscripten: operator new that can't be served ends with a line", async () => {
  // Would catch: a null from an operator new without exceptions, which the program then uses.
  const { file } = await linkEmscripten('new.cc', emscripten(), ['-DOOM', '-fno-exceptions']);
  const { trap, stdout, stderr } = await runEmscripten(file);
  assert.notEqual(trap, null);
  assert.match(stderr, /^ashlar: out of memory: operator new of 4294900000 bytes$/m);
  assert.doesNotMatch(stdout, /not reached/);
});

test('Emscripten: the line of a fault is on standard error, with stdio and without', async () => {
  // Would catch: an output that is there only in programs that print (or only in those that don't).
  for (const flags of [[], ['-DSILENT']]) {
    const { file } = await linkEmscripten('foreign.c', emscripten(), flags);
    const { trap, stderr } = await runEmscripten(file);
    assert.notEqual(trap, null);
    assert.match(stderr, /^ashlar: foreign pointer 0x[0-9a-f]+$/m);
  }
});

test('Emscripten STANDALONE_WASM: runs under WASI, and says its line where it can', async () => {
  // Would catch: a link that needs JavaScript.
  const standalone = ['-sSTANDALONE_WASM', growth];
  const names = await linkEmscripten('names.c', emscripten(), standalone, { extension: '.wasm' });
  ranWell(await runWasi(names.file), /^names ok/m);
  const talks = await linkEmscripten('foreign.c', emscripten(), standalone, { extension: '.wasm' });
  const { trap, stderr } = await runWasi(talks.file);
  assert.notEqual(trap, null);
  assert.match(stderr, /^ashlar: foreign pointer 0x[0-9a-f]+$/m);
});

for (const flags of [['-sSTANDALONE_WASM'], ['-sSTANDALONE_WASM', growth]]) {
  test(`Emscripten ${flags.join(' ')}: no import that the program would not have anyway`, async () => {
    // Would catch: fd_write, or an env import, that a host outside JavaScript does not offer (G81).
    for (const [name, more] of [
      ['bare.c', ['-DMALLOC']],
      ['stdio.c', []],
      ['foreign.c', ['-DSILENT']],
    ]) {
      const all = [...flags, ...more];
      const ours = await linkEmscripten(name, emscripten(), all, { extension: '.wasm' });
      const theirs = await linkEmscripten(name, null, all, { extension: '.wasm' });
      assert.deepEqual(wasmImports(ours.file).sort(), wasmImports(theirs.file).sort(), name);
    }
  });
}

test('Emscripten: two imports more in JavaScript, which its glue provides', async () => {
  // Would catch: a third one.
  const ours = await linkEmscripten('stdio.c', emscripten(), ['-O1']);
  const theirs = await linkEmscripten('stdio.c', null, ['-O1']);
  const names = wasmImports(theirs.wasm);
  const more = wasmImports(ours.wasm).filter((name) => !names.includes(name));
  assert.deepEqual(more.sort(), ['env._emscripten_err', 'env.emscripten_get_heap_max']);
});

for (const flags of [
  ['-O0'],
  ['-O2', growth],
  ['-O0', '-sMALLOC=none', '-sASSERTIONS=2', growth],
]) {
  test(`Emscripten SAFE_HEAP ${flags.join(' ')}`, async () => {
    // Would catch: memory above the break, an unaligned access, a break that SAFE_HEAP can't read.
    const { file } = await linkEmscripten('names.c', emscripten(), ['-sSAFE_HEAP=1', ...flags]);
    ranWell(await runEmscripten(file), /^names ok/m);
  });
}

test('Emscripten: fixed memory ends in NULL, not in an abort', async () => {
  // Would catch: a request beyond the end that reaches emscripten_resize_heap.
  const { file } = await linkEmscripten('own_sbrk.c', emscripten());
  ranWell(await runEmscripten(file), /^own sbrk ok/m);
});

test('Emscripten MAIN_MODULE=2: main and side module share the heap', async () => {
  // Would catch: an archive that is not position-independent; a weak reference that JavaScript
  // can't resolve; two heaps.
  const side = path.join(outputs, 'side.wasm');
  await emcc([...common, '-fPIC', '-sSIDE_MODULE=1', source('side_module.c'), '-o', side]);
  const flags = [
    '-fPIC',
    '-sMAIN_MODULE=2',
    growth,
    '--embed-file',
    `${side}@side.wasm`,
    '-sEXPORTED_FUNCTIONS=_main,_malloc,_free,_memset',
  ];
  for (const more of [[], ['-sMALLOC=none'], ['-sSAFE_HEAP=1', '-O1']]) {
    const { file } = await linkEmscripten('main_module.c', pic(), [...flags, ...more]);
    ranWell(await runMainModule(file), /^main module ok/m);
  }
});

test('Emscripten MAIN_MODULE=1: with -sMALLOC=none; otherwise it stops', async () => {
  // Would catch: the toolchain's malloc, which this mode links always, running beside ours.
  const flags = ['-fPIC', '-O1', '-sMAIN_MODULE=1', growth];
  const { file } = await linkEmscripten('stdio.c', pic(), [...flags, '-sMALLOC=none']);
  ranWell(await runMainModule(file), /^hello/m);
  const two = await linkEmscripten('stdio.c', pic(), flags);
  const { trap, stderr } = await runMainModule(two.file);
  assert.notEqual(trap, null);
  assert.match(stderr, /^ashlar: two allocators: .*-sMALLOC=none$/m);
});

test("Emscripten: a program's own malloc beside ours stops", async () => {
  // Would catch: a block of our calloc that goes to the program's free without a word.
  const { file } = await linkEmscripten('partial.c', emscripten());
  const { trap, stdout, stderr } = await runEmscripten(file);
  assert.notEqual(trap, null);
  assert.match(stderr, /^ashlar: two allocators: /m);
  assert.doesNotMatch(stdout, /two allocators/);
});

test('Emscripten -fsanitize=address: Ashlar steps aside', async () => {
  // Would catch: strong names, which a sanitizer's runtime can't replace (G78).
  const { file } = await linkEmscripten('foreign.c', emscripten(), ['-fsanitize=address', growth]);
  const { stdout, stderr } = await runEmscripten(file);
  assert.match(stdout, /^before/m);
  assert.match(stderr, /AddressSanitizer: attempting free on address which was not malloc/);
});

test('Emscripten: wasm-ld 22 links the archive too', async (context) => {
  // Would catch: an object that the newer linker takes for something else, or the other way round.
  if (findEmscripten().kind !== 'emscripten') return context.skip('an emsdk brings its own linker');
  const newer = { env: { EM_LLVM_ADD_VERSION: '22' } };
  // Emscripten 3.1.6 lays out memory as wasm-ld 14 does by default.
  const flags = ['-Wl,--no-stack-first', growth];
  for (const malloc of ['dlmalloc', 'none']) {
    const { file, map } = await linkEmscripten(
      'names.c',
      emscripten(),
      [...flags, `-sMALLOC=${malloc}`],
      newer,
    );
    assert.deepEqual(otherMallocs(map), []);
    ranWell(await runEmscripten(file), /^names ok/m);
  }
  const cxx = await linkEmscripten('new.cc', emscripten(), [...flags, '-fexceptions'], newer);
  ranWell(await runEmscripten(cxx.file), /^new ok/m);
  const alone = { ...newer, extension: '.wasm' };
  const standalone = await linkEmscripten(
    'names.c',
    emscripten(),
    [...flags, '-sSTANDALONE_WASM'],
    alone,
  );
  ranWell(await runWasi(standalone.file), /^names ok/m);
});

// ---- native

for (const compiler of ['gcc', 'clang']) {
  for (const profile of compiler === 'gcc' ? profiles : ['fast']) {
    test(`native ${compiler}: all names are one allocator: ${profile}`, async () => {
      // Would catch: a name that glibc serves.
      for (const flags of profile === 'fast' ? [[], ['-static']] : [[]]) {
        const names = await linkNative('names.c', native(profile), flags, { compiler });
        ranWell(await runNative(names.file), /^names ok/m);
        ranWell(
          await runNative((await linkNative('libc.c', native(profile), flags, { compiler })).file),
          /^100 handlers ran/m,
        );
        const cxx = await linkNative('new.cc', native(profile), flags, { compiler });
        ranWell(await runNative(cxx.file), /^new ok/m);
        const replaced = await linkNative(
          'new.cc',
          native(profile),
          [...flags, '-DREPLACE', '-DTHROWS_THROUGH'],
          { compiler },
        );
        ranWell(await runNative(replaced.file), /^new ok/m);
      }
      const extras = await linkNative('extras.c', native(profile), [], { compiler });
      ranWell(await runNative(extras.file), /^extras ok/m);
    });
  }

  test(`native ${compiler} -fsanitize=address: Ashlar steps aside`, async () => {
    // Would catch: an archive that takes malloc from the sanitizer, which then sees nothing.
    const { file } = await linkNative('foreign.c', native(), ['-fsanitize=address'], { compiler });
    const { stdout, stderr } = await runNative(file);
    assert.match(stdout, /^before/m);
    assert.match(stderr, /AddressSanitizer: attempting free on address which was not malloc/);
  });

  test(`native ${compiler}: a program's own malloc beside ours does not link`, async () => {
    // Would catch: a program whose calloc is Ashlar's and whose free is not.
    const { status, stderr } = await linkNative('partial.c', native(), [], {
      compiler,
      check: false,
    });
    assert.notEqual(status, 0);
    assert.match(stderr, /multiple definition of .(malloc|free)|duplicate symbol: (malloc|free)/);
  });
}

for (const profile of profiles) {
  test(`native: linked to libashlar.so, and LD_PRELOAD: ${profile}`, async () => {
    // Would catch: a name that the shared library does not export, and with it glibc's malloc.
    const shared = archive('native', profile, 'libashlar.so');
    const linked = await linkNative('names.c', shared, [`-Wl,-rpath,${path.dirname(shared)}`]);
    ranWell(await runNative(linked.file), /^names ok/m);
    const { file } = await linkNative('libc.c', null);
    ranWell(await runNative(file, { env: { LD_PRELOAD: shared } }), /^100 handlers ran/m);
    const misuse = await linkNative('foreign.c', null);
    const { signal, stderr } = await runNative(misuse.file, { env: { LD_PRELOAD: shared } });
    if (profile === 'bare') return;
    assert.equal(signal, 'SIGABRT');
    assert.match(stderr, profile === 'small' ? /^ashlar: 3 0x/m : /^ashlar: foreign pointer 0x/m);
  });
}

test('native: fork while others allocate', async () => {
  // Would catch: a lock that a thread held when the process was copied, and that nobody lets go; or
  // that is taken before those of others, whose holders wait for it.
  const linked = await linkNative('fork.c', native());
  ranWell(await runNative(linked.file, { timeoutMs: 120000 }), /^fork ok/m);
  const preloaded = await linkNative('fork.c', null);
  const env = { LD_PRELOAD: archive('native', 'fast', 'libashlar.so') };
  ranWell(await runNative(preloaded.file, { timeoutMs: 120000, env }), /^fork ok/m);
});

test('native: the names of glibc that nobody should call', async () => {
  // Would catch: a block of glibc's that our free takes for a foreign pointer.
  const linked = await linkNative('glibc_names.c', native());
  ranWell(await runNative(linked.file), /^glibc names ok/m);
  const preloaded = await linkNative('glibc_names.c', null);
  const env = { LD_PRELOAD: archive('native', 'fast', 'libashlar.so') };
  ranWell(await runNative(preloaded.file, { env }), /^glibc names ok/m);
});

test('native: under a limit on address space', async () => {
  // Would catch: a reserved range of addresses that the limit refuses or that uses it up.
  for (const [name, flags, text] of [
    ['names.c', [], /^names ok/m],
    ['new.cc', [], /^new ok/m],
  ]) {
    const { file } = await linkNative(name, native(), flags);
    const { status, stdout, stderr } = await run('bash', [
      '-c',
      'ulimit -v 300000; exec "$0"',
      file,
    ]);
    assert.equal(status, 0, `${stdout}${stderr}`);
    assert.match(stdout, text);
  }
});
