// Ashlar without ./dev: plain CMake with each toolchain, installed, found again by a user's project.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { buildPath, findEmscripten, root, run, runEmscripten, runNative, runWasi }
  from '../../demo/toolchain.mjs';
import { makeWasiSdk } from './support.mjs';

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
  const sdk = process.env.WASI_SDK_PATH ?? makeWasiSdk(folder);
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
