// The demo's programs and the variants each of them is built in; builds them under build/demo/.
// An object is compiled once for each variant and linked twice, with the toolchain's own malloc and
// with Ashlar. A stamp beside each product (a digest of its inputs and its command) makes it
// incremental.

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import {
  buildPath, emcc, findEmscripten, findNative, findWasi, nativeCompile, root, wasiCompile,
} from './toolchain.mjs';

const demo = path.join(root, 'demo');
const modules = path.join(root, 'node_modules');
const sqlite = path.join(modules, 'better-sqlite3/deps/sqlite3');
const leveldb = path.join(modules, 'classic-level/deps/leveldb/leveldb-1.20');
const snappy = path.join(modules, 'classic-level/deps/snappy');
const inFolder = (folder, ending, names) =>
  names.split(' ').map((name) => path.join(folder, name + ending));

// What they share: sources, includes (also searched by report.c), flags for every language, and
// the script that they read from standard input.
export const programs = {
  sqlite: {
    package: 'better-sqlite3',
    cxx: false,
    sources: [
      path.join(sqlite, 'sqlite3.c'),
      path.join(demo, 'sqlite/main.c'),
      path.join(demo, 'report.c'),
    ],
    includes: [sqlite],
    flags: [
      '-std=gnu11', '-DSQLITE_OS_OTHER=1', '-DSQLITE_THREADSAFE=0', '-DSQLITE_TEMP_STORE=3',
      // Every small object and every page is a malloc of its own: no pools in front of it.
      '-DSQLITE_OMIT_LOOKASIDE', '-DSQLITE_DEFAULT_PCACHE_INITSZ=0',
      '-DSQLITE_DEFAULT_MEMSTATUS=0', '-DHAVE_MALLOC_H=1', '-DHAVE_MALLOC_USABLE_SIZE=1',
      '-DSQLITE_OMIT_LOAD_EXTENSION', '-DSQLITE_OMIT_WAL', '-DSQLITE_OMIT_DEPRECATED',
      '-DSQLITE_OMIT_SHARED_CACHE', '-DSQLITE_DQS=0', '-DSQLITE_ENABLE_FTS5',
    ],
    libraries: ['-lm'],
    script: path.join(demo, 'sqlite/script.sql'),
  },
  leveldb: {
    package: 'classic-level',
    cxx: true,
    sources: [
      ...inFolder(path.join(leveldb, 'db'), '.cc', 'builder db_impl db_iter dbformat filename'
        + ' log_reader log_writer memtable table_cache version_edit version_set write_batch'),
      ...inFolder(path.join(leveldb, 'table'), '.cc', 'block block_builder filter_block format'
        + ' iterator merger table table_builder two_level_iterator'),
      ...inFolder(path.join(leveldb, 'util'), '.cc', 'arena bloom cache coding comparator crc32c'
        + ' env filter_policy hash logging options status'),
      ...inFolder(path.join(snappy, 'snappy'), '.cc', 'snappy snappy-sinksource'
        + ' snappy-stubs-internal'),
      path.join(demo, 'leveldb/memory_env.cc'),
      path.join(demo, 'leveldb/main.cc'),
      path.join(demo, 'report.c'),
    ],
    includes: [
      path.join(demo, 'leveldb'), leveldb, path.join(leveldb, 'include'),
      path.join(snappy, 'linux'), path.join(snappy, 'snappy'),
    ],
    flags: ['-DNDEBUG'],
    cxxFlags: ['-std=c++17', '-fno-exceptions', '-fno-rtti'],
    libraries: [],
    script: path.join(demo, 'leveldb/script.txt'),
  },
};

const emscripten = (level) => ({
  kind: 'emscripten',
  compile: emcc,
  tools: findEmscripten,
  flags: [level],
  // A small start, so that the memory at the end is what the program needed.
  link: [
    level, '-sALLOW_MEMORY_GROWTH=1', '-sINITIAL_MEMORY=2MB', '-sTOTAL_STACK=1MB',
    '-sEXIT_RUNTIME=1', '--profiling-funcs', '-Wl,--print-map',
  ],
  archive: buildPath('emscripten/libashlar.a'),
  ending: '.js',
});

const native = (compiler) => ({
  kind: 'native',
  compile: (args, options) => nativeCompile(args, { ...options, compiler }),
  tools: () => findNative(compiler),
  flags: ['-O2'],
  link: ['-Wl,--print-map'],
  archive: buildPath('native/libashlar.a'),
  ending: '',
});

export const variants = {
  wasi: {
    kind: 'wasi',
    compile: wasiCompile,
    tools: findWasi,
    flags: ['-O2'],
    // Without -O2, which would run whichever wasm-opt is on the PATH and lose the names.
    link: ['-Wl,-z,stack-size=1048576', '-Wl,--stack-first', '-Wl,--print-map'],
    archive: buildPath('wasi/libashlar.a'),
    ending: '.wasm',
  },
  'emscripten-O0': emscripten('-O0'),
  'emscripten-O2': emscripten('-O2'),
  'emscripten-O3': emscripten('-O3'),
  native: native('gcc'),
  'native-clang': native('clang'),
  // The same executable twice, once with the library preloaded.
  'native-preload': {
    ...native('gcc'), preload: buildPath('native/libashlar.so'), objectsOf: 'native',
  },
};

const digest = (...parts) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex');
};

const isFresh = (product, stamp) =>
  fs.existsSync(product) && fs.existsSync(`${product}.stamp`)
  && fs.readFileSync(`${product}.stamp`, 'utf8') === stamp;

// What this process is making now, or has made: both builds of a program want the same objects.
const made = new Map();

// Makes a product unless it is there already, made from the same inputs.
function produce(product, stamp, pool, make) {
  const key = `${product} ${stamp}`;
  if (!made.has(key)) {
    made.set(key, isFresh(product, stamp) ? Promise.resolve() : pool(async () => {
      fs.rmSync(`${product}.stamp`, { force: true });
      await make();
      fs.writeFileSync(`${product}.stamp`, stamp);
    }));
  }
  return made.get(key);
}

// Headers that an object may depend on: our own for our own sources; for others the version of
// their package, and the port that LevelDB finds here.
function headersDigest(program, ours) {
  const headers = [
    path.join(demo, 'leveldb/port/port.h'), path.join(modules, program.package, 'package.json'),
    ...(ours ? [path.join(demo, 'report.h'), path.join(root, 'include/ashlar.h')] : []),
  ];
  return digest(...headers.map((file) => fs.readFileSync(file)));
}

function requireFile(file, remedy) {
  if (!fs.existsSync(file)) {
    throw new Error(`${path.relative(root, file)} is missing: run ${remedy}`);
  }
}

const toolsId = (tools) => digest(JSON.stringify(tools, ['cc', 'cxx', 'flags', 'kind']));

// Objects of one program in one variant, in the order of its sources. `pool` limits how many
// compilers run (see limit()).
async function compileObjects(programName, variantName, pool, progress) {
  const program = programs[programName];
  const variant = variants[variantName];
  const folder = buildPath('demo', variant.objectsOf ?? variantName, programName);
  fs.mkdirSync(folder, { recursive: true });
  const tools = toolsId(variant.tools());
  return Promise.all(program.sources.map(async (source) => {
    requireFile(source, './dev setup');
    const plus = source.endsWith('.cc');
    const ours = source.startsWith(demo);
    const flags = [
      ...variant.flags, ...program.flags, ...(plus ? program.cxxFlags : []),
      // Warnings in what we only use are not ours to fix.
      ...(ours ? ['-Wall', '-Wextra', '-Wno-unused-parameter'] : ['-w']),
      ...[...program.includes, path.join(root, 'include')].map((include) => `-I${include}`),
      '-c', source,
    ];
    const object = path.join(folder, `${path.basename(source).replace(/\.\w+$/, '')}.o`);
    const stamp = digest(tools, headersDigest(program, ours), ...flags, fs.readFileSync(source));
    await produce(object, stamp, pool, async () => {
      progress(`${variantName}: compiling ${path.basename(source)}`);
      await variant.compile([...flags, '-o', object]);
    });
    return object;
  }));
}

// Links one program with `malloc` ('own' or 'ashlar'). For the controls: {forget: true} leaves
// Ashlar out of what is then still called its build, {extra: [object, ...]} links more, and
// {name} is the folder where such a build lands. Returns what check.mjs and the hosts need:
// {kind, file, wasm, map, preload, script}.
export async function build(programName, variantName, malloc, options) {
  const { pool, progress = () => {}, forget = false, extra = [] } = options;
  const program = programs[programName];
  const variant = variants[variantName];
  const objects = await compileObjects(programName, variantName, pool, progress);
  const preloads = Boolean(variant.preload);
  const withAshlar = malloc === 'ashlar' && !forget;
  if (withAshlar) requireFile(variant.preload ?? variant.archive, `./dev build ${variant.kind}`);
  const links = withAshlar && !preloads;
  const archive = links ? [variant.archive] : [];
  // report.c's weak references don't fetch members from an archive.
  const wanted = links ? ['-Wl,-u,ashlar_stats,-u,ashlar_version'] : [];
  const name = options.name ?? (links ? 'ashlar' : 'own');
  const folder = buildPath('demo', variantName, programName, name);
  const file = path.join(folder, programName + variant.ending);
  fs.mkdirSync(folder, { recursive: true });
  const args = [
    ...objects, ...extra, ...wanted, ...archive, ...variant.link, ...program.libraries,
  ];
  const inputs = [...objects, ...extra, ...archive].map((input) => fs.readFileSync(input));
  const stamp = digest(toolsId(variant.tools()), ...args, ...inputs);
  await produce(file, stamp, pool, async () => {
    progress(`${variantName}: linking ${programName} with ${links ? 'Ashlar' : 'its own malloc'}`);
    const result = await variant.compile([...args, '-o', file], { cxx: program.cxx });
    fs.writeFileSync(`${file}.map`, result.stdout);
  });
  return {
    kind: variant.kind,
    file,
    wasm: variant.kind === 'native' ? null : file.replace(/\.js$/, '.wasm'),
    map: `${file}.map`,
    preload: preloads && withAshlar ? variant.preload : null,
    script: program.script,
  };
}

// A pool: at most `count` of the functions given to it run at once.
export function limit(count) {
  let running = 0;
  const waiting = [];
  return async (work) => {
    while (running >= count) await new Promise((resolve) => waiting.push(resolve));
    running++;
    try {
      return await work();
    } finally {
      running--;
      waiting.shift()?.();
    }
  };
}
