// ./dev setup: what it installs and what it says when it can't. The system's package tools are
// replaced by ones that only write down how they were called.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { root, run } from '../../demo/toolchain.mjs';

const shellTools = ['bash', 'cat', 'cmp', 'comm', 'dirname', 'basename', 'echo', 'env',
  'grep', 'install', 'mkdir', 'mktemp', 'rm', 'sed', 'sort', 'tar', 'touch', 'xargs', 'xz'];

// A folder of commands to be the whole PATH: the shell's own tools, and `fakes` (name: script).
function commands(fakes) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-dev-'));
  for (const tool of shellTools) {
    const file = ['/usr/bin', '/bin'].map((place) => path.join(place, tool)).find(fs.existsSync);
    fs.symlinkSync(file, path.join(folder, tool));
  }
  for (const [name, script] of Object.entries({ node: `exec ${process.execPath} "$@"`, ...fakes })) {
    if (script === null) continue;
    fs.writeFileSync(path.join(folder, name), `#!/bin/bash\n${script}\n`, { mode: 0o755 });
  }
  return folder;
}

async function setup(fakes, env = {}) {
  const folder = commands(fakes);
  const calls = path.join(folder, 'calls');
  try {
    const result = await run(path.join(root, 'dev'), ['setup'], {
      env: { PATH: folder, CALLS: calls, HOME: process.env.HOME, ...env },
    });
    const lines = fs.existsSync(calls) ? fs.readFileSync(calls, 'utf8').trim().split('\n') : [];
    return { ...result, calls: lines };
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

const note = 'echo "${0##*/} $*" >>"$CALLS"';
const asRoot = { id: 'echo 0' };
const asUser = { id: 'echo 1000' };
const nothingInstalled = { 'dpkg-query': 'exit 1' };
// Says of every package that it is asked about that it is there.
const allInstalled = {
  'dpkg-query': 'for name; do [[ $name == -* || $name == *{* ]] || echo "installed $name"; done',
  'em++': '',
};
const noted = { 'apt-get': note, sudo: `${note}; exec "$@"` };

async function refuses(fakes, words, env) {
  const result = await setup(fakes, env);
  assert.equal(result.status, 1, result.stdout + result.stderr);
  assert.match(result.stderr, words);
  assert.equal(result.stderr.trim().split('\n').length, 1, result.stderr);
}

// Catches a set-up that calls a package manager, the network or sudo each time.
test('with everything there, setup says and calls nothing', async () => {
  const result = await setup({ ...asUser, ...allInstalled, ...noted, npm: note });
  assert.equal(result.status, 0, result.stderr);
  assert.equal(result.stdout + result.stderr, '');
  assert.deepEqual(result.calls, []);
});

// Catches an install that isn't announced, asks questions, or skips the update.
test('setup names what is missing, then installs it, with sudo when not root', async () => {
  for (const [who, prefix] of [[asRoot, []], [asUser, ['sudo']]]) {
    const result = await setup({ ...allInstalled, ...who, ...noted,
      'dpkg-query': `${allInstalled['dpkg-query']} | grep -v lld-22` });
    assert.equal(result.status, 0, result.stderr);
    assert.match(result.stdout, /^dev: installing with apt-get: lld-22$/m);
    const apt = result.calls.filter((line) => line.startsWith('apt-get'));
    assert.deepEqual(apt, ['apt-get -q update',
      'apt-get -q install -y --no-install-recommends lld-22']);
    const sudo = result.calls.filter((line) => line.startsWith('sudo'));
    assert.equal(sudo.length, 2 * prefix.length);
  }
});

// Each catches a missing part that ends in something else than one line that names it.
test('setup names what it cannot install', async (t) => {
  const bare = { ...asRoot, ...nothingInstalled, 'em++': '' };
  await t.test('no apt-get', () => refuses(bare, /no apt-get; missing packages: .*clang-22/));
  await t.test('no sudo', () =>
    refuses({ ...bare, ...asUser, 'apt-get': '' }, /neither root nor sudo; .*clang-22/));
  await t.test('no network', () =>
    refuses({ ...bare, 'apt-get': 'exit 100' }, /network\?.*clang-22/));
  await t.test('not Debian', () =>
    refuses({ ...asRoot, 'em++': '' }, /not a Debian system; install yourself: .*clang-22/));
  await t.test('no Node', () => refuses({ ...bare, node: null }, /Node is missing/));
  await t.test('old Node', () =>
    refuses({ ...bare, node: '[[ $1 != --version ]] || echo v18.1.0; [[ $1 != -e ]]' },
      /Node v18.1.0 is too old; version 20.10/));
  await t.test('no wasi-sdk in WASI_SDK_PATH', () =>
    refuses(bare, /WASI_SDK_PATH=\/nowhere has no/, { WASI_SDK_PATH: '/nowhere' }));
  await t.test('no emsdk in EMSDK', () =>
    refuses(bare, /EMSDK=\/nowhere has no/, { EMSDK: '/nowhere' }));
});

// Each catches words that do something else than what they say, or nothing at all.
test('wrong words are one clear line', async (t) => {
  const wrong = {
    'format --chek': /^dev: format takes --check or nothing, not '--chek'$/m,
    'setup extra': /^dev: setup takes no words, not 'extra'$/m,
    'test node [': /^dev: not a regular expression: '\['$/m,
    'test node link more': /^dev: test takes an area and a filter, not also 'more'$/m,
    'build nosuch': /^dev: no target nosuch; there are: native .* npm$/m,
    'bench nosuch': /^dev: bench: 'nosuch' is not one of: .*traces/m,
  };
  for (const [words, line] of Object.entries(wrong)) {
    await t.test(words, async () => {
      const { status, stdout, stderr } = await run(path.join(root, 'dev'), words.split(' '));
      assert.equal(status, 1, stdout);
      assert.match(stderr, line);
    });
  }
});

// Catches an install of what the user's own toolchain makes unnecessary.
test('a toolchain of the user comes before packages', async () => {
  const wanted = async (fakes, env) => {
    const result = await setup({ ...asRoot, ...nothingInstalled, ...fakes }, env);
    return /missing packages: (.*)/.exec(result.stderr)[1].split(' ');
  };
  assert.ok((await wanted({})).includes('emscripten'));
  assert.ok(!(await wanted({ 'em++': '' })).includes('emscripten'));
  assert.ok((await wanted({})).includes('libclang-rt-22-dev-wasm32'));

  const sdk = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-sdk-'));
  fs.mkdirSync(path.join(sdk, 'share/cmake'), { recursive: true });
  fs.writeFileSync(path.join(sdk, 'share/cmake/wasi-sdk.cmake'), '');
  fs.mkdirSync(path.join(sdk, 'upstream/emscripten'), { recursive: true });
  fs.writeFileSync(path.join(sdk, 'upstream/emscripten/em++'), '', { mode: 0o755 });
  const own = await wanted({}, { WASI_SDK_PATH: sdk, EMSDK: sdk });
  fs.rmSync(sdk, { recursive: true });
  assert.ok(!own.includes('libclang-rt-22-dev-wasm32'));
  assert.ok(!own.includes('emscripten'));
});

// Catches a registry's address in the tree: npm then fetches from there whatever the user has set.
test('package-lock.json names no registry, and pins what package.json pins', () => {
  const read = (name) => JSON.parse(fs.readFileSync(path.join(root, name), 'utf8'));
  const { packages } = read('package-lock.json');
  const { devDependencies } = read('package.json');
  for (const [name, entry] of Object.entries(packages)) {
    assert.equal(entry.resolved, undefined, name);
    if (name !== '') assert.ok(entry.integrity, name);
  }
  for (const [name, version] of Object.entries(devDependencies)) {
    assert.equal(packages[`node_modules/${name}`].version, version, name);
  }
});
