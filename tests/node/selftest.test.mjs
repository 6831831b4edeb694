// The self-test (tests/selftest), linked with the shipped archives: each check in an instance of
// its own, by bare WebAssembly.instantiate; the same in a node:vm context; the same source
// natively; and on an allocator that was broken on purpose. ASHLAR_SEED=n repeats a random check.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import vm from 'node:vm';
import {
  buildPath, nativeCompile, root, run, wasmExports, wasmImports,
} from '../../demo/toolchain.mjs';
import { listChecks, runCheck, selftest } from '../../js/selftest.js';
import { breaks } from '../selftest/breaks.mjs';
import { archive, buildAll, profiles } from './support.mjs';

const sources = ['selftest.c', 'calls.c', 'memory.c', 'facts.c', 'misuse.c'];
const sourcePath = (name) => path.join(root, 'tests/selftest', name);
const script = path.join(root, 'js/selftest.js');
const seed = process.env.ASHLAR_SEED ? Number(process.env.ASHLAR_SEED) >>> 0 : undefined;

fs.mkdirSync(buildPath('tests-node/selftest'), { recursive: true });
const folder = fs.mkdtempSync(buildPath('tests-node/selftest/run-'));
after(() => fs.rmSync(folder, { recursive: true }));

// ---- building

const target = '--target=wasm32-unknown-unknown';
const cFlags = [
  '-std=c11', '-O2', '-ffreestanding', '-fno-builtin',
  '-Wall', '-Wextra', '-Wconversion', '-Werror', `-I${root}/include`,
];

async function tool(command, args, cwd = folder) {
  const { status, signal, stderr } = await run(command, args, { cwd });
  assert.equal(status, 0, `${[command, ...args].join(' ')}\nended with ${signal}:\n${stderr}`);
}

const objects = sources.map((name) => path.join(folder, name.replace(/c$/, 'o')));
await tool('clang-22', [target, '-mbulk-memory', ...cFlags, '-c', ...sources.map(sourcePath)]);

// Memory ends at 256 MiB, so that a check can reach its end.
async function link(name, allocator) {
  const file = path.join(folder, `${name}.wasm`);
  const options = ['--no-entry', '--export-dynamic', '--max-memory=268435456'];
  await tool('clang-22', [
    target, '--no-wasm-opt', '-nostdlib', ...options.map((option) => `-Wl,${option}`),
    ...objects, ...allocator, '-o', file,
  ]);
  return file;
}

const modules = {};
for (const profile of profiles) {
  const file = await link(profile, [archive('freestanding', profile, 'libashlar-core.a')]);
  modules[profile] = { file, module: new WebAssembly.Module(fs.readFileSync(file)) };
}
const checks = await listChecks(modules.fast.module);
const named = (kind) => checks.filter((check) => check.kind === kind).map(({ name }) => name);

// ---- what is there

// Would catch: two checks of one code, a code that no shell can show, too few checks.
test('each check has an exit code of its own', () => {
  const codes = checks.map(({ code }) => code);
  assert.equal(new Set(codes).size, codes.length);
  assert.equal(new Set(checks.map(({ name }) => name)).size, checks.length);
  for (const code of codes) assert.ok(code > 0 && code < 126, `${code}`);
  assert.ok(named('check').length >= 28 && named('misuse').length >= 10);
});

// What does not apply, so that nothing passes by being skipped.
const pagesOnly = ['free of what was never handed out', 'free of what was in no list yet'];
const wasmOnly = [
  'own memory only', 'a stranger grows memory', 'memory ends', "free in a stranger's memory",
];
const skippedIn = {
  fast: [],
  small: pagesOnly,
  bare: named('misuse'),
};

function expectResult(result, profile) {
  const hint = seed === undefined ? '' : `, ASHLAR_SEED=${seed}`;
  assert.ok(result.ok, `code ${result.code}: ${result.detail}${hint}`);
  assert.equal(result.skipped, skippedIn[profile].includes(result.name), result.detail);
}

for (const profile of profiles) {
  const { file, module } = modules[profile];
  describe(`${profile}: bare WebAssembly.instantiate`, () => {
    // Would catch: a host that an allocator must not need; a name that is exported by chance.
    test('no imports', () => {
      assert.deepEqual(wasmImports(file), []);
      const expected = /^(memory|__stack_pointer|ashlar_\w+|selftest_\w+)$/;
      for (const name of wasmExports(file)) assert.match(name, expected);
    });

    for (const check of checks) {
      // Would catch: what the comment above the check says.
      test(`${check.code} ${check.name}`, async () =>
        expectResult(await runCheck(module, check, { seed }), profile));
    }

    // Would catch: what only a heap with a past shows.
    test('all checks in one instance', async () => {
      const { exports } = await WebAssembly.instantiate(module, {});
      if (seed !== undefined) exports.selftest_set_seed(seed);
      assert.equal(exports.selftest_all(), 0);
    });
  });
}

// ---- node:vm

// js/selftest.js as a script: a context has no modules unless Node is started for them.
const asScript = `${fs.readFileSync(script, 'utf8').replace(/^export /gm, '')}
({ listChecks, runCheck, selftest });`;

for (const profile of profiles) {
  describe(`${profile}: in a node:vm context`, () => {
    const context = vm.createContext({ bytes: fs.readFileSync(modules[profile].file) });
    const inside = vm.runInContext(asScript, context);
    let module;
    before(async () => {
      module = await vm.runInContext('WebAssembly.compile(bytes)', context);
    });

    // Would catch: a context that is not one of its own.
    test("has nothing of Node's", () => {
      const names = ['process', 'require', 'Buffer', 'queueMicrotask', 'TextDecoder', 'setTimeout'];
      const isThere = (name) => vm.runInContext(`typeof ${name}`, context) !== 'undefined';
      const found = names.filter(isThere);
      assert.deepEqual(found, []);
      assert.notEqual(vm.runInContext('WebAssembly', context), WebAssembly);
      assert.equal(vm.runInContext('WebAssembly.Module.imports', context)(module).length, 0);
    });

    for (const check of checks) {
      // Would catch: what needs a host, here or in js/selftest.js; else as above.
      test(`${check.code} ${check.name}`, async () =>
        expectResult(await inside.runCheck(module, check, { seed }), profile));
    }

    // Would catch: a total that is not the sum; bytes of another realm refused.
    test('selftest(bytes)', async () => {
      const total = await inside.selftest(context.bytes, { seed });
      const skipped = skippedIn[profile].length;
      const { passed, failed, code } = total;
      assert.deepEqual([passed, failed, code], [checks.length - skipped, 0, 0]);
      assert.equal(total.skipped, skipped);
      assert.equal(total.results.length, checks.length);
    });
  });
}

// ---- natively

const lineOf = (text) => /^(ok|skipped|FAILED) (\d+) ([^:]*)(?:: (.*))?$/.exec(text);

describe('natively', () => {
  for (const profile of profiles) {
    const library = archive('native', profile, 'libashlar-core.a');
    const file = path.join(folder, `native-${profile}`);
    const inputs = [...sources, 'main.c'].map(sourcePath);

    // Would catch: a check that holds on wasm alone; an abort without its line on standard error.
    test(`${profile}`, async (t) => {
      await nativeCompile([...cFlags, ...inputs, library, '-o', file]);
      const { status, stdout, stderr } = await run(file, []);
      const lines = stdout.split('\n').map(lineOf).filter(Boolean);
      assert.deepEqual(lines.map((line) => line[3]), checks.map(({ name }) => name));
      const skipped = new Set([...skippedIn[profile], ...wasmOnly]);
      for (const [, state, code, name, detail] of lines) {
        await t.test(`${code} ${name}`, () =>
          assert.equal(state, skipped.has(name) ? 'skipped' : 'ok', detail));
      }
      assert.deepEqual([status, stderr], [0, '']);
    });

    // Would catch: a failure that main.c does not tell, or by another's exit code. Two answers of
    // the allocator are exchanged, one of a check and one of every misuse.
    test(`${profile}, with wrong answers`, async () => {
      const answers = { ashlar_used_peak: 'ashlar_check', ashlar_last_message: 'ashlar_version' };
      const exchange = Object.entries(answers).map(([name, other]) =>
        `-Wl,--wrap=${name},--defsym=__wrap_${name}=${other}`);
      const wrong = `${file}-wrong`;
      await nativeCompile([...cFlags, ...inputs, library, ...exchange, '-o', wrong]);
      const { status, stdout } = await run(wrong, []);
      const failed = stdout.split('\n').map(lineOf).filter((line) => line?.[1] === 'FAILED');
      const aboutMessages = ['no message without a fault', 'validation sees damage'];
      const misuses = named('misuse').filter((name) =>
        ![...skippedIn[profile], ...wasmOnly].includes(name));
      assert.deepEqual(failed.map((line) => line[3]), ['used peak', ...aboutMessages, ...misuses]);
      assert.equal(status, checks.find(({ name }) => name === 'used peak').code);
    });

    // Would catch: what only a heap with a past shows.
    test(`${profile}, all checks in one process`, async () => {
      const { status, stdout } = await run(file, ['--all']);
      assert.equal(status, 0, stdout);
    });
  }
});

// ---- broken on purpose

const read = (name) => fs.readFileSync(path.join(root, 'src', name), 'utf8');
const list = (name) =>
  new RegExp(`set\\(${name}([^)]*)\\)`).exec(read('sources.cmake'))[1].trim().split(/\s+/);
const coreSources = [...list('ASHLAR_CORE_SOURCES'), ...list('ASHLAR_OS_SOURCES_freestanding')];

// As cmake/flags.cmake has it for the freestanding target.
const coreFlags = (profile) => [
  target, '-mbulk-memory', '-std=c++20', `-DASHLAR_PROFILE=${profile}`, '-fvisibility=hidden',
  '-ffreestanding', '-fno-exceptions', '-fno-rtti', '-nostdinc++', '-fno-threadsafe-statics',
  '-ffunction-sections', '-fdata-sections', '-fno-lto', profile === 'small' ? '-Oz' : '-O2',
];

// The self-test with the core of a copy of src in which `change` (or null) was made.
async function linkChanged(name, profile, change) {
  const copy = path.join(folder, name);
  fs.cpSync(path.join(root, 'src'), path.join(copy, 'src'), { recursive: true });
  if (change) {
    const text = read(change.file);
    const places = text.split(change.find);
    assert.equal(places.length, 2, `${change.file}: '${change.find}' must stand there once`);
    fs.writeFileSync(path.join(copy, 'src', change.file), places.join(change.replace));
  }
  const files = coreSources.map((file) => path.join('src', file));
  const includes = [`-I${copy}/src`, `-I${root}/include`];
  await tool('clang++-22', [...coreFlags(profile), ...includes, '-c', ...files], copy);
  const made = coreSources.map((file) => path.join(copy, path.basename(file, '.cc') + '.o'));
  return link(name, made);
}

// In a process of its own that can be ended: a broken allocator may not return.
async function failuresOf(file) {
  const program = `
    import fs from 'node:fs';
    import { selftest } from ${JSON.stringify(script)};
    const { code, results } = await selftest(fs.readFileSync(${JSON.stringify(file)}));
    console.log(JSON.stringify({ code, failed: results.filter(({ ok }) => !ok) }));`;
  const { status, stdout, stderr } = await run(
    process.execPath, ['--input-type=module', '--eval', program], { timeoutMs: 60000 },
  );
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

async function runChanged(name, profile, change) {
  return failuresOf(await linkChanged(name, profile, change));
}

describe('broken on purpose', () => {
  // Two at a time, before the tests look at them.
  const outcomes = buildAll([
    ...profiles.map((profile) => async () => runChanged(`whole-${profile}`, profile, null)),
    ...breaks.map((change, index) => async () =>
      runChanged(`broken-${index}`, change.profile ?? 'fast', change)
        .catch((error) => ({ error }))),
  ]);

  for (const [index, profile] of profiles.entries()) {
    // Would catch: a check that fails for how the copies are compiled.
    test(`nothing broken: ${profile}`, async () =>
      assert.deepEqual((await outcomes)[index], { code: 0, failed: [] }));
  }

  for (const [index, { part, what, fails }] of breaks.entries()) {
    // Would catch: a check that does not check, or one that fails for another's reason.
    test(`${part}: ${what}`, async () => {
      const { error, code, failed } = (await outcomes)[profiles.length + index];
      if (error) throw error;
      const details = failed.map(({ name, detail }) => `${name}: ${detail}`).join('\n');
      assert.deepEqual(failed.map(({ name }) => name), fails, details);
      assert.equal(code, checks.find(({ name }) => name === fails[0])?.code);
    });
  }

  // Would catch: a part of the allocator that none of these breaks.
  test('every part is broken', () => {
    const parts = ['arena', 'block', 'page', 'page map', 'heap', 'OS layer', 'fault', 'C API'];
    for (const part of parts) assert.ok(breaks.some((change) => change.part === part), part);
  });
});
