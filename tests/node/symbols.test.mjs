// What the archives define, exactly: which names share a member, and which are weak, decides how a
// program links (src/override_names.h). link.test.mjs links programs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { findEmscripten, findWasi, root, run } from '../../demo/toolchain.mjs';
import { archive, profiles } from './support.mjs';

const words = (text) => text.trim().split(/\s+/);

// ---- what is expected

const header = fs.readFileSync(path.join(root, 'include/ashlar.h'), 'utf8');
const publicNames = [...header.matchAll(/^ASHLAR_API [^;(]*?(ashlar_\w+)\(/gm)].map(
  (match) => match[1],
);

const news = words(`
  _Znwm _ZnwmRKSt9nothrow_t _ZnwmSt11align_val_t _ZnwmSt11align_val_tRKSt9nothrow_t
  _Znam _ZnamRKSt9nothrow_t _ZnamSt11align_val_t _ZnamSt11align_val_tRKSt9nothrow_t
  _ZdlPv _ZdlPvRKSt9nothrow_t _ZdlPvSt11align_val_t _ZdlPvSt11align_val_tRKSt9nothrow_t
  _ZdlPvm _ZdlPvmSt11align_val_t
  _ZdaPv _ZdaPvRKSt9nothrow_t _ZdaPvSt11align_val_t _ZdaPvSt11align_val_tRKSt9nothrow_t
  _ZdaPvm _ZdaPvmSt11align_val_t`);

// Visible names of each member, strong and weak. Members that are not named here have none.
const core = { api: { strong: publicNames } };
const expected = {
  wasi: {
    ...core,
    override_libc: {
      strong: words(`malloc free calloc realloc posix_memalign aligned_alloc malloc_usable_size
        __libc_malloc __libc_free __libc_calloc`),
    },
    override_align: { weak: words('memalign reallocarray valloc pvalloc') },
    override_new: { weak: news },
  },
  emscripten: {
    ...core,
    emscripten_standalone: { weak: ['imported__wasi_fd_write'] },
    override_libc: {
      weak: words(`malloc free calloc realloc posix_memalign aligned_alloc malloc_usable_size memalign
        __libc_malloc __libc_free __libc_calloc __libc_realloc
        emscripten_builtin_malloc emscripten_builtin_free emscripten_builtin_calloc
        emscripten_builtin_realloc emscripten_builtin_memalign`),
    },
    override_align: { weak: words('reallocarray valloc pvalloc realloc_in_place') },
    override_new: { weak: news },
    override_info: {
      weak: words(`mallinfo mallopt malloc_trim malloc_stats malloc_footprint malloc_max_footprint
        malloc_footprint_limit malloc_set_footprint_limit`),
    },
    override_bulk: { weak: words('independent_calloc independent_comalloc bulk_free') },
    override_emmalloc: {
      weak: words(`aligned_realloc
        ${words(`malloc free calloc realloc memalign posix_memalign usable_size mallinfo trim
          aligned_realloc aligned_realloc_uninitialized realloc_try realloc_uninitialized
          dump_memory_regions validate_memory_regions dynamic_heap_size free_dynamic_memory
          unclaimed_heap_memory compute_free_dynamic_memory_fragmentation_map
          blank_slate_from_orbit`)
          .map((name) => `emmalloc_${name}`)
          .join(' ')}`),
    },
    emscripten_sbrk: { weak: words('sbrk brk emscripten_get_sbrk_ptr') },
  },
  native: {
    ...core,
    override_libc: {
      strong:
        words(`malloc free calloc realloc posix_memalign aligned_alloc malloc_usable_size memalign
        cfree __libc_malloc __libc_free __libc_calloc __libc_realloc __libc_memalign`),
    },
    override_align: { weak: words('reallocarray valloc pvalloc __libc_valloc __libc_pvalloc') },
    override_new: { weak: news },
    override_info: {
      weak: words('mallinfo mallinfo2 mallopt malloc_info malloc_trim malloc_stats'),
    },
  },
  freestanding: core,
};
const coreMembers = ['api', 'emscripten_standalone'];

// What the core may ask of others. wasm: bulk memory does memcpy and memset.
const linker = ['__stack_pointer', '__indirect_function_table', '__memory_base', '__table_base'];
const systems = {
  wasi: [...linker, '__heap_base', '__heap_end', 'errno', 'write', 'writev', 'ashlar_is_malloc'],
  freestanding: [...linker, '__heap_base', '__heap_end', 'ashlar_is_malloc'],
  emscripten: [
    ...linker,
    '__errno_location',
    '_emscripten_err',
    'emscripten_get_heap_max',
    'sbrk',
    'ashlar_break',
    'ashlar_require_single_malloc',
    '__wasi_fd_write',
    'ashlar_imported_fd_write',
  ],
  native: [
    'memcpy',
    'memset',
    '_GLOBAL_OFFSET_TABLE_',
    '__errno_location',
    'abort',
    'getrlimit',
    'mmap',
    'mprotect',
    'munmap',
    'pthread_atfork',
    'pthread_mutex_lock',
    'pthread_mutex_unlock',
    'pthread_self',
    'write',
  ],
};
// References that must not link anything in or import anything.
const mustBeWeak = {
  wasi: [
    '__heap_base',
    '__heap_end',
    'errno',
    'write',
    'writev',
    'ashlar_is_malloc',
    '__cxa_begin_catch',
    '_ZSt17__throw_bad_allocv',
  ],
  freestanding: ['__heap_base', '__heap_end', 'ashlar_is_malloc'],
  emscripten: [
    '__errno_location',
    '__wasi_fd_write',
    'ashlar_require_single_malloc',
    '__cxa_begin_catch',
  ],
  native: [],
};

// ---- what is there

const objdump = () => {
  const sdk = process.env.WASI_SDK_PATH;
  return sdk ? path.join(sdk, 'bin/llvm-objdump') : 'llvm-objdump-22';
};

// {member, name, defined, weak, hidden} of every symbol that other objects see or must provide.
async function symbolsOf(file) {
  const { status, stdout, stderr } = await run(objdump(), ['--syms', file]);
  assert.equal(status, 0, stderr);
  const symbols = [];
  let member = null;
  for (const line of stdout.split('\n')) {
    const title = /\(?([\w.]+?)(?:\.cc)?\.(?:o|obj)\)?:\s+file format/.exec(line);
    if (title) member = title[1];
    const entry = /^[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+ (\.hidden )?(\S+)$/.exec(line);
    if (!entry) continue;
    const [, flags, section, hidden, name] = entry;
    const defined = section !== '*UND*';
    if (flags[0] === 'l' || flags.includes('d') || flags.includes('f')) continue;
    symbols.push({ member, name, defined, weak: flags.includes('w'), hidden: Boolean(hidden) });
  }
  assert.ok(symbols.length > 0, `no symbols in ${file}`);
  return symbols;
}

function table(symbols) {
  const members = {};
  for (const { member, name, defined, weak, hidden } of symbols) {
    if (!defined || hidden) continue;
    members[member] ??= { strong: [], weak: [] };
    members[member][weak ? 'weak' : 'strong'].push(name);
  }
  return members;
}

const sorted = (members) => {
  const result = {};
  for (const member of Object.keys(members).sort()) {
    const { strong = [], weak = [] } = members[member];
    result[member] = { strong: [...strong].sort(), weak: [...weak].sort() };
  }
  return result;
};

const only = (members, names) =>
  Object.fromEntries(Object.entries(members).filter(([member]) => names.includes(member)));

const archives = [];
for (const target of ['wasi', 'emscripten', 'native']) {
  for (const profile of profiles) archives.push({ target, profile });
}
archives.push({ target: 'freestanding', profile: 'fast' });

for (const { target, profile } of archives) {
  const folder = `${target} ${profile}`;

  if (target !== 'freestanding') {
    // Would catch: a name that is missing, strong where it must give way, or in the wrong member:
    // any of these makes programs link two allocators, or not link.
    test(`libashlar.a defines the names of malloc, and nothing else: ${folder}`, async () => {
      const symbols = await symbolsOf(archive(target, profile));
      assert.deepEqual(sorted(table(symbols)), sorted(expected[target]));
    });
  }

  // Would catch: a name of malloc in the archive for programs that keep their toolchain's malloc,
  // and a helper of ours that a program's own function could replace (F69).
  test(`libashlar-core.a defines ashlar_* only: ${folder}`, async () => {
    const symbols = await symbolsOf(archive(target, profile, 'libashlar-core.a'));
    assert.deepEqual(sorted(table(symbols)), sorted(only(expected[target], coreMembers)));
    for (const { name, hidden, defined } of symbols) {
      if (!defined) continue;
      assert.match(
        name,
        hidden ? /^(ashlar_|_ZNK?6ashlar)/ : /^(ashlar_|imported__wasi_fd_write$)/,
      );
    }
  });

  // Would catch: a libc, C++ library or host that the core needs without anybody having noticed; a
  // constructor, which would run before or after a program's own.
  test(`libashlar-core.a needs what is listed: ${folder}`, async () => {
    const symbols = await symbolsOf(archive(target, profile, 'libashlar-core.a'));
    const own = new Set(symbols.filter(({ defined }) => defined).map(({ name }) => name));
    const needed = symbols.filter(({ defined, name }) => !defined && !own.has(name));
    const surplus = needed
      .map(({ name }) => name)
      .filter((name) => !systems[target].includes(name));
    assert.deepEqual([...new Set(surplus)], []);
    for (const { name } of symbols) assert.doesNotMatch(name, /^_GLOBAL__|^__cxa_|^_ZGV|guard/);
  });

  // Would catch: a reference that drags something in: an import, the libc's errno, the C++ library.
  test(`references that must be weak are: ${folder}`, async () => {
    const files =
      target === 'freestanding' ? ['libashlar-core.a'] : ['libashlar-core.a', 'libashlar.a'];
    for (const name of files) {
      for (const symbol of await symbolsOf(archive(target, profile, name))) {
        if (symbol.defined || !mustBeWeak[target].includes(symbol.name)) continue;
        // Strong on purpose in the members that must not be linked without malloc.
        if (symbol.name === 'ashlar_is_malloc' && symbol.member.startsWith('override_')) continue;
        assert.ok(symbol.weak, `${symbol.member}: ${symbol.name}`);
      }
    }
  });
}

// Would catch: an export of the C++ internals, or a name of malloc that LD_PRELOAD leaves to libc.
for (const profile of profiles) {
  test(`libashlar.so exports the same names: native ${profile}`, async () => {
    const file = archive('native', profile, 'libashlar.so');
    const { stdout, status, stderr } = await run('llvm-nm-22', [
      '-D',
      '--defined-only',
      '-j',
      file,
    ]);
    assert.equal(status, 0, stderr);
    const all = Object.values(expected.native).flatMap(({ strong = [], weak = [] }) => [
      ...strong,
      ...weak,
    ]);
    assert.deepEqual(words(stdout).sort(), [...new Set(all)].sort());
  });
}

// Would catch: a name of the toolchain's malloc that Ashlar lacks, in this or another version: a
// program that calls it links both allocators.
const definedBy = (symbols) =>
  new Set(symbols.filter(({ defined, hidden }) => defined && !hidden).map(({ name }) => name));
async function requireAll(target, peer, isPeer = () => true) {
  const ours = definedBy(await symbolsOf(archive(target)));
  const theirs = (await symbolsOf(peer)).filter(isPeer);
  assert.ok(
    theirs.some(({ name, defined }) => defined && name === 'malloc'),
    `no malloc in ${peer}`,
  );
  const missing = [...definedBy(theirs)].filter((name) => !ours.has(name));
  assert.deepEqual(missing, []);
}

test("every name of wasi-libc's malloc is ours", async () => {
  const { cc, flags } = findWasi();
  const { stdout } = await run(cc, [...flags, '-print-file-name=libc.a']);
  const mallocs = (symbol) =>
    /malloc/.test(symbol.member) && !/^(posix_)?memalign/.test(symbol.member);
  await requireAll('wasi', stdout.trim(), mallocs);
});

const { cc: emscriptenCompiler, env } = findEmscripten();
for (const name of ['libdlmalloc.a', 'libdlmalloc-debug.a', 'libemmalloc.a']) {
  test(`every name of Emscripten's ${name} is ours`, async (context) => {
    const config = path.join(path.dirname(emscriptenCompiler), 'em-config');
    const { stdout } = await run(config, ['CACHE'], { env });
    const library = path.join(stdout.trim(), 'sysroot/lib/wasm32-emscripten', name);
    // An emsdk builds its libraries when a program first asks for them.
    if (!fs.existsSync(library)) return context.skip(`${name} is not built`);
    await requireAll('emscripten', library);
  });
}
