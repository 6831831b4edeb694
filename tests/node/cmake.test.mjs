// Ashlar without ./dev: plain CMake with each toolchain, installed, found again by a user's project.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { buildPath, findEmscripten, findWasi, root, run, runEmscripten, runNative, runWasi }
  from '../../demo/toolchain.mjs';

const folder = buildPath('tests-cmake');
const environment = { ...process.env, CMAKE_GENERATOR: 'Ninja' };
delete environment.NODE_TEST_CONTEXT;

async function must(command, args, env = environment) {
  const result = await run(command, args, { env });
  assert.equal(result.status, 0, `${[command, ...args].join(' ')}\n${result.stdout}${result.stderr}`);
  return result;
}

// Builds and installs Ashlar, then a project that finds it. `configure` is the words of the user's
// configure command. Resolves to the consumer's build folder.
async function installAndConsume(name, configure, env) {
  const [build, prefix, consumer] = ['build', 'prefix', 'consumer'].map((part) =>
    path.join(folder, name, part));
  fs.rmSync(path.join(folder, name), { recursive: true, force: true });
  const [command, ...args] = configure;
  await must(command, [...args, '-S', root, '-B', build, `-DCMAKE_INSTALL_PREFIX=${prefix}`], env);
  await must('cmake', ['--build', build], env);
  await must('cmake', ['--install', build], env);
  await must(command, [...args, '-S', path.join(root, 'tests/node/consumer'), '-B', consumer,
    `-Dashlar_DIR=${path.join(prefix, 'lib/cmake/ashlar')}`], env);
  await must('cmake', ['--build', consumer], env);
  return consumer;
}

async function serves(runner, file, expected) {
  const result = await runner(file);
  assert.equal(result.status, 0, result.stderr);
  assert.equal(result.stdout, expected);
}
const everything = 'malloc 1000, ashlar_malloc 10\n';
const ownNames = 'malloc 0, ashlar_malloc 10\n';

// A tree shaped like wasi-sdk. Its toolchain file is a tree's own, so one of the same shape is made.
function makeWasiSdk() {
  const sdk = path.join(folder, 'wasi-sdk');
  fs.rmSync(sdk, { recursive: true, force: true });
  fs.mkdirSync(path.join(sdk, 'bin'), { recursive: true });
  fs.mkdirSync(path.join(sdk, 'share/cmake/Platform'), { recursive: true });
  const { cc, cxx } = findWasi();
  for (const [name, compiler] of [['clang', cc], ['clang++', cxx]]) {
    // The real one's clang knows its sysroot.
    const script = `#!/bin/sh\nexec ${compiler} --sysroot=${sdk}/share/wasi-sysroot "$@"\n`;
    fs.writeFileSync(path.join(sdk, 'bin', name), script, { mode: 0o755 });
  }
  for (const tool of ['ar', 'ranlib', 'nm']) {
    const script = `#!/bin/sh\nexec llvm-${tool}-22 "$@"\n`;
    fs.writeFileSync(path.join(sdk, 'bin', `llvm-${tool}`), script, { mode: 0o755 });
  }
  fs.symlinkSync(buildPath('toolchain/wasi-sysroot'), path.join(sdk, 'share/wasi-sysroot'));
  fs.writeFileSync(path.join(sdk, 'share/cmake/Platform/WASI.cmake'), 'set(WASI 1)\n');
  fs.writeFileSync(path.join(sdk, 'share/cmake/wasi-sdk.cmake'), `
list(APPEND CMAKE_MODULE_PATH \${CMAKE_CURRENT_LIST_DIR})
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_VERSION 1)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
get_filename_component(sdk \${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(CMAKE_C_COMPILER \${sdk}/bin/clang)
set(CMAKE_CXX_COMPILER \${sdk}/bin/clang++)
set(CMAKE_AR \${sdk}/bin/llvm-ar)
set(CMAKE_RANLIB \${sdk}/bin/llvm-ranlib)
set(CMAKE_C_COMPILER_TARGET wasm32-wasip1)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasip1)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
`);
  return sdk;
}

// Catches an install that misses a file or a dependency, and an ashlar::ashlar that isn't malloc.
test('plain cmake, native: installed, found, linked in three ways', async () => {
  const consumer = await installAndConsume('native', ['cmake']);
  await serves(runNative, path.join(consumer, 'with_ashlar'), everything);
  await serves(runNative, path.join(consumer, 'with_core'), ownNames);
  await serves(runNative, path.join(consumer, 'with_shared'), everything);
});

// Catches flags that Emscripten's own toolchain file or compiler doesn't take.
test('emcmake cmake', async () => {
  const { cxx, env } = findEmscripten();
  const emcmake = path.join(path.dirname(cxx), 'emcmake');
  const consumer = await installAndConsume('emscripten', [emcmake, 'cmake'],
    { ...env, ...environment, NODE_PATH: env.NODE_PATH });
  await serves(runEmscripten, path.join(consumer, 'with_ashlar.js'), everything);
  await serves(runEmscripten, path.join(consumer, 'with_core.js'), ownNames);
});

// Catches a build that works only with this tree's toolchain file.
test("wasi-sdk's own toolchain file, and the preset under WASI_SDK_PATH", async () => {
  const sdk = process.env.WASI_SDK_PATH ?? makeWasiSdk();
  const file = path.join(sdk, 'share/cmake/wasi-sdk.cmake');
  const consumer = await installAndConsume('wasi', ['cmake', `-DCMAKE_TOOLCHAIN_FILE=${file}`]);
  const program = (name) =>
    [name, `${name}.wasm`].map((part) => path.join(consumer, part)).find(fs.existsSync);
  await serves(runWasi, program('with_ashlar'), everything);
  await serves(runWasi, program('with_core'), ownNames);

  const preset = path.join(folder, 'wasi-preset');
  await must('cmake', ['-S', root, '--fresh', '--preset', 'wasi', '-B', preset],
    { ...environment, WASI_SDK_PATH: sdk });
  const commands = fs.readFileSync(path.join(preset, 'CMakeFiles/rules.ninja'), 'utf8');
  assert.ok(commands.includes(`${sdk}/bin/clang++ `) && commands.includes(`${sdk}/bin/llvm-ar `));
});
