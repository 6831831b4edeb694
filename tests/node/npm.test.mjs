// The npm package: packed, installed in an empty folder outside the tree whose path has a space,
// and used as npm/README.md says, with every command of it. Then each profile, CMake, the command
// line, and the same bytes from another folder.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import {
  buildPath, findEmscripten, root, run, runEmscripten, runNative, runWasi,
} from '../../demo/toolchain.mjs';
import { buildAll, makeWasiSdk, profiles } from './support.mjs';

const output = buildPath('tests-npm');
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar npm '));
after(() => fs.rmSync(scratch, { recursive: true, force: true }));
const app = path.join(scratch, 'app');
fs.mkdirSync(app);

// A user's environment: the toolchains by their names, nothing of a test's or of an npm's around
// it, a cache that is empty, and no network.
function makeEnvironment() {
  const { cxx, env } = findEmscripten();
  const own = Object.entries(env).filter(([name]) => !/^npm_|^NODE_TEST_CONTEXT$/.test(name));
  // Emscripten 3.1.6 takes a file name for a URL where `fetch` exists.
  const noFetch = process.allowedNodeEnvironmentFlags.has('--experimental-fetch');
  return {
    ...Object.fromEntries(own),
    PATH: [path.dirname(cxx), path.dirname(process.execPath), env.PATH].join(path.delimiter),
    NODE_OPTIONS: noFetch ? '--no-experimental-fetch' : '',
    WASI_SDK_PATH: process.env.WASI_SDK_PATH ?? makeWasiSdk(output),
    CMAKE_GENERATOR: 'Ninja',
    npm_config_cache: path.join(scratch, 'cache'),
    npm_config_offline: 'true',
  };
}

async function must(command, args, options) {
  const result = await run(command, args, options);
  const words = [command, ...args].join(' ');
  assert.equal(result.status, 0, `${words}\n${result.stdout}${result.stderr}`);
  return result.stdout;
}

fs.mkdirSync(output, { recursive: true });
const environment = makeEnvironment();
await must(process.execPath, [path.join(root, 'npm/build.mjs'), output]);
const tarballs = (folder) => fs.readdirSync(folder).filter((name) => name.endsWith('.tgz'));
const [tarball] = tarballs(output);
const inPackage = (...parts) => path.join(output, 'package', ...parts);
const { version } = JSON.parse(fs.readFileSync(inPackage('package.json'), 'utf8'));

const shell = (line, cwd = app) => run('bash', ['-c', line], { cwd, env: environment });

// ---- README.md: what stands in it is the test

const readme = fs.readFileSync(path.join(root, 'npm/README.md'), 'utf8');

// The blocks before which a line ends in a file's name and a colon: "here is `app.c`:".
function namedFiles() {
  const blocks = readme.matchAll(/`([\w.-]+)`:\n\n```\w+\n(.*?)```/gs);
  return Object.fromEntries([...blocks].map(([, name, text]) => [name, text]));
}
// A command ends where its line does, unless that ends in a backslash.
const commands = [...readme.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, text]) =>
  text.trim().split(/(?<!\\)\n/),
);

const says = (profile, yes = 'yes') => `ashlar ${version} ${profile} serves malloc: ${yes}\n`;
const name = `ashlar ${version} fast`;
// What each command prints, by its first words: one that is missing here fails.
const selftested = profiles.map((profile) => `${profile}: \\d\\d+ passed, 0 failed.*\n`).join('');
const expected = {
  'npm install ./ashlar-*.tgz': /added 1 package/,
  'npx ashlar selftest': new RegExp(`^${selftested}$`),
  'emcc ': '',
  'node app.js': says('fast'),
  '"$WASI_SDK_PATH/bin/clang" ': '',
  'node --no-warnings run.mjs ': says('fast'),
  'gcc ': '',
  './app': says('fast'),
  'LD_PRELOAD=': `${process.version}\n`,
  'strings ': `${name}\n`,
  'cmake ': /./,
  'emcmake ': /./,
  'build/native/app': says('fast'),
  'node build/emscripten/app.js': says('fast'),
  'node heap.mjs': `${name} 1\nDOUBLE_FREE ashlar: double free of 0x...\n`,
};
function mustSay(said, wanted, words) {
  if (typeof wanted === 'string') assert.equal(said, wanted, words);
  else assert.match(said, wanted, words);
}

// Would catch: a command that only works in this tree; a file that is missing from the package; a
// path with a space that falls apart; an installation that needs the network or a script.
test('every command of npm/README.md, as it stands there', async () => {
  const files = namedFiles();
  assert.deepEqual(Object.keys(files), ['app.c', 'run.mjs', 'CMakeLists.txt', 'heap.mjs']);
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(app, name), text);
  fs.copyFileSync(path.join(output, tarball), path.join(app, tarball));
  const unused = new Set(Object.keys(expected));
  for (const line of commands) {
    const words = Object.keys(expected).find((start) => line.startsWith(start));
    assert.ok(words, `what should "${line}" print?`);
    unused.delete(words);
    const { status, stdout, stderr } = await shell(line);
    assert.equal(status, 0, `${line}\n${stdout}${stderr}`);
    mustSay(stdout, expected[words], `${line}\n${stdout}${stderr}`);
  }
  assert.deepEqual([...unused], []);
});

// ---- what is in it

// Would catch: a file that nobody decided to ship, or that got lost.
test('the package holds these files', async () => {
  const inEach = (folder, ...names) =>
    profiles.flatMap((profile) => names.map((each) => `${folder}/${profile}/${each}`));
  const both = ['libashlar.a', 'libashlar-core.a'];
  const so = `libashlar.so.${version.replace(/\.\d+$/, '')}`;
  const all = [
    'LICENSE', 'README.md', 'package.json', 'cli.mjs', 'cli/flags.mjs', 'cli/selftest.mjs',
    'cmake/ashlar-config.cmake', 'cmake/ashlar-config-version.cmake', 'include/ashlar.h',
    'js/heap.js', 'js/index.d.ts', 'js/index.js', 'js/node.js',
    'js/selftest.d.ts', 'js/selftest.js',
    ...inEach('lib/wasi', ...both),
    ...inEach('lib/emscripten', ...both, 'libashlar-pic.a'),
    ...inEach('lib/linux-x86_64', ...both, so),
    ...inEach('wasm', 'ashlar.wasm', 'ashlar-imported.wasm', 'selftest.wasm'),
  ];
  const listed = await must('tar', ['-tzf', path.join(output, tarball)]);
  assert.deepEqual(
    listed.trim().split('\n').sort(),
    all.map((each) => `package/${each}`).sort(),
  );
});

// Would catch: a script at installation, a dependency, a version or an entry that isn't there.
test('package.json', () => {
  const described = JSON.parse(fs.readFileSync(inPackage('package.json'), 'utf8'));
  const header = fs.readFileSync(inPackage('include/ashlar.h'), 'utf8');
  const numbers = header.matchAll(/define ASHLAR_VERSION_\w+ (\d+)/g);
  assert.equal(version, [...numbers].map(([, number]) => number).join('.'));
  assert.equal(tarball, `ashlar-${version}.tgz`);
  assert.equal(described.license, 'MIT');
  for (const absent of ['scripts', 'dependencies', 'private']) assert.ok(!(absent in described));
  for (const [entry, value] of Object.entries(described.exports)) {
    const conditions = typeof value === 'string' ? { types: value } : value;
    assert.equal(Object.keys(conditions)[0], 'types', entry);
    for (const file of Object.values(conditions)) {
      assert.ok(fs.existsSync(inPackage(file.replace('*', ''))), file);
    }
  }
});

// Would catch: the name of a machine, of a user or of a folder, in objects most of all.
test('no file says where or by whom it was made', () => {
  const telling = [root, `${os.homedir()}/`, `${os.tmpdir()}/`];
  // A short name would be found in anything.
  if (os.hostname().length >= 8) telling.push(os.hostname());
  for (const each of fs.readdirSync(inPackage(), { recursive: true })) {
    if (!fs.statSync(inPackage(each)).isFile()) continue;
    const bytes = fs.readFileSync(inPackage(each));
    for (const word of telling) assert.ok(!bytes.includes(word), `${each} says ${word}`);
  }
});

// Would catch: a compiler or a call that brings a newer glibc than README.md says.
test('the shared library asks for no glibc after 2.14', () => {
  for (const profile of profiles) {
    const folder = inPackage('lib/linux-x86_64', profile);
    const file = fs.readdirSync(folder).find((each) => each.startsWith('libashlar.so.'));
    const found = fs.readFileSync(path.join(folder, file), 'latin1').matchAll(/GLIBC_2\.(\d+)/g);
    const minors = [...found].map(([, minor]) => Number(minor));
    assert.ok(minors.length > 0 && Math.max(...minors) <= 14, `${minors}`);
  }
});

// ---- linking

const hosts = {
  wasi: { compiler: '"$WASI_SDK_PATH/bin/clang"', program: 'x.wasm', host: runWasi },
  emscripten: { compiler: 'emcc', program: 'x.js', host: runEmscripten },
  native: { compiler: 'gcc', program: 'x', host: runNative },
};

async function linkAndRun(target, flags, expectedOutput) {
  const { compiler, program, host } = hosts[target];
  const file = `${flags.replace(/\W+/g, '')}${program}`;
  const ours = `$(npx ashlar flags --target ${target} ${flags})`;
  const line = `${compiler} -O1 -Wall -Werror app.c ${ours} -o ${file}`;
  const { status, stderr } = await shell(line);
  assert.equal(status, 0, `${line}\n${stderr}`);
  const ran = await host(path.join(app, file));
  assert.equal(ran.status, 0, ran.stderr);
  assert.equal(ran.stdout, expectedOutput);
}

for (const target of Object.keys(hosts)) {
  // Would catch: the archive of another profile or target, and a core that is malloc.
  test(`flags --target ${target} links every profile`, async () => {
    for (const profile of profiles) {
      await linkAndRun(target, `--profile ${profile}`, says(profile));
    }
    await linkAndRun(target, '--core', says('fast', 'no'));
  });
}

// Would catch: objects that aren't position-independent, or the toolchain's malloc beside ours.
test('flags --pic links a main module of Emscripten', async () => {
  const ours = '$(npx ashlar flags --target emscripten --pic)';
  const line = `emcc -O1 -sMAIN_MODULE=2 app.c ${ours} -o main.js`;
  const { status, stderr } = await shell(line);
  assert.equal(status, 0, stderr);
  assert.equal((await shell('node main.js')).stdout, says('fast'));
});

// Would catch: quotes that a shell doesn't take, from a folder that has a space between.
test('flags where a space is in the way: quoted, for eval', async () => {
  const elsewhere = path.join(scratch, 'else where');
  fs.mkdirSync(elsewhere, { recursive: true });
  fs.copyFileSync(path.join(app, 'app.c'), path.join(elsewhere, 'app.c'));
  fs.renameSync(app, path.join(scratch, "an app's"));
  try {
    const bin = `"../an app's/node_modules/.bin/ashlar"`;
    const line = `eval "gcc app.c $(${bin} flags --target native) -o app" && ./app`;
    const { stdout, stderr } = await shell(line, elsewhere);
    assert.equal(stdout, says('fast'), stderr);
  } finally {
    fs.renameSync(path.join(scratch, "an app's"), app);
  }
});

const configure = {
  native: 'cmake',
  emscripten: 'emcmake cmake',
  wasi: 'cmake --toolchain "$WASI_SDK_PATH/share/cmake/wasi-sdk.cmake"',
};
const counts = {
  with_ashlar: 'malloc 1000, ashlar_malloc 10\n',
  with_core: 'malloc 0, ashlar_malloc 10\n',
  with_shared: 'malloc 1000, ashlar_malloc 10\n',
};
const ashlarDir = '-Dashlar_DIR="$PWD/node_modules/ashlar/cmake"';

for (const [target, command] of Object.entries(configure)) {
  // Would catch: a target that the CMake package doesn't know, or links with another archive.
  test(`the CMake package, ${target}: each of its targets, another profile`, async () => {
    const folder = `cmake-${target}`;
    const source = path.join(root, 'tests/node/consumer');
    const line = `${command} -S ${source} -B ${folder} ${ashlarDir} -DASHLAR_PROFILE=small`;
    const { status, stdout, stderr } = await shell(`${line} && cmake --build ${folder}`);
    assert.equal(status, 0, stdout + stderr);
    for (const [way, count] of Object.entries(counts)) {
      const stem = path.join(app, folder, way);
      const file = [`${stem}.js`, `${stem}.wasm`, stem].find(fs.existsSync);
      if (way === 'with_shared' && target !== 'native') {
        assert.equal(file, undefined);
        continue;
      }
      assert.equal((await hosts[target].host(file)).stdout, count);
      if (way === 'with_shared') continue;
      const bytes = fs.readFileSync(file.replace(/js$/, 'wasm'));
      assert.ok(bytes.includes(`ashlar ${version} small\0`), file);
    }
  });
}

const refusals = {
  'another processor': [
    '-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=riscv64',
    /no archive for Linux riscv64/,
  ],
  'threads on WASI': ['-DCMAKE_CXX_COMPILER_TARGET=wasm32-wasi-threads', /no archive for/],
  'an unknown profile': [
    '-DCMAKE_SYSTEM_NAME=WASI -DASHLAR_PROFILE=quick',
    /ASHLAR_PROFILE=quick: not one of fast, small, bare/,
  ],
  'another minor version': ['-Dwanted=0.0', /compatible with requested version "0\.0"/],
};

// Would catch: an archive of another machine in the link, or an error far from its reason.
test('the CMake package refuses what it has nothing for', async () => {
  const source = path.join(scratch, 'refused');
  fs.mkdirSync(source, { recursive: true });
  fs.writeFileSync(path.join(source, 'CMakeLists.txt'), `
cmake_minimum_required(VERSION 3.16)
project(refused LANGUAGES NONE)
set(CMAKE_SIZEOF_VOID_P 8)
find_package(ashlar \${wanted} REQUIRED CONFIG)
`);
  for (const [what, [flags, words]] of Object.entries(refusals)) {
    const line = `cmake -S ../refused -B ../refused/build --fresh ${ashlarDir} ${flags}`;
    const { status, stderr } = await shell(line);
    assert.notEqual(status, 0, what);
    // CMake breaks lines.
    assert.match(stderr.replace(/\s+/g, ' '), words, what);
  }
});

// ---- the command line

const complaints = {
  'slef': /^ashlar: no command slef; there are: selftest, flags$/,
  'flags': /^ashlar: which --target\? there are: wasi, emscripten, native$/,
  'flags --target windows': /^ashlar: no target windows; there are: /,
  'flags --target wasi --profile quick': /^ashlar: no profile quick; there are: fast, small, bare$/,
  'flags --target wasi --pic': /^ashlar: --pic is for --target emscripten, not wasi$/,
  'flags --target emscripten --pic --core': /^ashlar: --pic and --core exclude each other$/,
  'flags --Tagret wasi': /^ashlar: unknown option '--Tagret'$/,
  'flags wasi': /^ashlar: unexpected argument 'wasi'$/,
  'flags --target': /^ashlar: option '--target <value>' argument missing$/,
  'selftest --profile quick': /^ashlar: no profile quick; there are: fast, small, bare$/,
  'selftest fast': /^ashlar: unexpected argument 'fast'/,
};

// Would catch: a stack trace, an error on the standard output, or a 0 for what was not done.
test('what the command line cannot do it says in one line', async () => {
  await Promise.all(Object.entries(complaints).map(async ([words, line]) => {
    const { status, stdout, stderr } = await shell(`npx ashlar ${words}`);
    assert.equal(status, 1, words);
    assert.equal(stdout, '', words);
    assert.match(stderr.replace(/\n$/, ''), line, words);
  }));
});

// Would catch: help that isn't there, or leaves out a command.
test('--help and --version', async () => {
  assert.equal((await shell('npx ashlar --version')).stdout, `${version}\n`);
  for (const words of ['', '--help']) {
    const { stdout } = await shell(`npx ashlar ${words}`);
    assert.match(stdout, /^usage:\n  ashlar selftest.*  ashlar flags/s);
  }
  const help = await shell('npx ashlar flags --help');
  assert.match(help.stdout, /^usage:\n  ashlar flags.*--target wasi/);
  const cflags = await shell('npx ashlar flags --target wasi --cflags');
  assert.equal(cflags.stdout, '-I node_modules/ashlar/include\n');
  const libs = await shell('npx ashlar flags --target wasi --libs');
  assert.equal(libs.stdout, 'node_modules/ashlar/lib/wasi/fast/libashlar.a\n');
});

// Would catch: a self-test that always passes.
test('selftest fails on a broken module', async () => {
  const copy = path.join(scratch, 'broken');
  fs.cpSync(inPackage(), copy, { recursive: true });
  const file = path.join(copy, 'wasm/fast/selftest.wasm');
  const bytes = fs.readFileSync(file);
  // The allocator's own words, not those that they are compared with.
  const at = bytes.toString('latin1').search(/double free of \0+interior pointer /);
  assert.notEqual(at, -1);
  bytes.write('trouble', at);
  fs.writeFileSync(file, bytes);
  const args = [path.join(copy, 'cli.mjs'), 'selftest', '--profile', 'fast'];
  const { status, stdout, stderr } = await run(process.execPath, args, { env: environment });
  const [, code] = /^fast: (\d+) .*double free.*trouble/m.exec(stdout);
  assert.equal(status, Number(code));
  assert.match(stderr, /^ashlar: \d+ checks failed$/m);
});

// Would catch: an import by name that the exports map does not allow.
test('imports by name', async () => {
  fs.writeFileSync(path.join(app, 'names.mjs'), `
import { load, loadSync, AshlarError } from 'ashlar';
import { selftest } from 'ashlar/selftest';
import fs from 'node:fs';
const url = import.meta.resolve('ashlar/wasm/small/ashlar.wasm');
const heap = await load({ module: fs.readFileSync(new URL(url)) });
console.log(heap.version, typeof selftest, typeof loadSync, typeof AshlarError);
`);
  const { stdout, stderr } = await shell('node names.mjs');
  assert.equal(stdout, `ashlar ${version} small function function function\n`, stderr);
});

// ---- the same bytes

// {file: sha256} of the package and of what is in it, so that a difference has a name.
function digests(folder) {
  const files = fs.readdirSync(path.join(folder, 'package'), { recursive: true });
  const all = [...tarballs(folder), ...files.map((file) => path.join('package', file)).sort()];
  const isFile = (file) => fs.statSync(path.join(folder, file)).isFile();
  const digest = (file) =>
    createHash('sha256').update(fs.readFileSync(path.join(folder, file))).digest('hex');
  return Object.fromEntries(all.filter(isFile).map((file) => [file, digest(file)]));
}

// What git has and what it would add: the tree as it is, without what was built in it.
async function copyTree(folder) {
  const listed = await must('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root });
  const exists = (file) => file !== '' && fs.existsSync(path.join(root, file));
  for (const file of listed.split('\0').filter(exists)) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    fs.copyFileSync(path.join(root, file), path.join(folder, file));
  }
  fs.mkdirSync(path.join(folder, 'build'), { recursive: true });
  for (const file of ['node_modules', 'build/toolchain', 'build/traces']) {
    fs.symlinkSync(path.join(root, file), path.join(folder, file));
  }
}

function libraryPresets() {
  const text = fs.readFileSync(path.join(root, 'CMakePresets.json'), 'utf8');
  const presets = JSON.parse(text).configurePresets.filter(({ hidden }) => !hidden);
  return presets.map((preset) => preset.name).filter((preset) => !preset.startsWith('test-'));
}

// Would catch: a path, a date, an order of files or a mode that gets into the package. All of the
// libraries are built again from a copy of this tree elsewhere, and packed under another umask.
test('the same bytes from another folder', async () => {
  const elsewhere = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-copy-'));
  after(() => fs.rmSync(elsewhere, { recursive: true, force: true }));
  const cwd = path.join(elsewhere, 'the/same/tree');
  await copyTree(cwd);
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT;
  const build = (preset) => () => must('./dev', ['build', preset], { cwd, env });
  await buildAll(libraryPresets().map(build));
  await must('bash', ['-c', 'umask 077; node npm/build.mjs'], { cwd, env });
  const again = digests(path.join(cwd, 'build/npm'));
  assert.deepEqual(again, digests(output), 'other bytes; is all of build/ up to date? ./dev build');
});
