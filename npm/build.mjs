// node npm/build.mjs [FOLDER]: makes FOLDER/package, which is what the npm package holds, and packs
// it as FOLDER/ashlar-VERSION.tgz. FOLDER is build/npm by default. The libraries are those of
// build/, made before (`./dev build npm` does both). The same sources give the same bytes.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

const header = fs.readFileSync(path.join(root, 'include/ashlar.h'), 'utf8');
const [major, minor, patch] = ['MAJOR', 'MINOR', 'PATCH'].map(
  (part) => new RegExp(`define ASHLAR_VERSION_${part} (\\d+)`).exec(header)[1],
);
const version = `${major}.${minor}.${patch}`;
// The shared library is named as programs ask for it, since a package cannot hold links.
const soVersion = `${major}.${minor}`;
const sharedLibrary = `libashlar.so.${soVersion}`;

const profiles = ['fast', 'small', 'bare'];
const archives = ['libashlar.a', 'libashlar-core.a'];
// By folder in build: where its files go, and which.
const libraries = {
  wasi: { to: 'lib/wasi', files: archives },
  emscripten: { to: 'lib/emscripten', files: [...archives, 'libashlar-pic.a'] },
  native: { to: 'lib/linux-x86_64', files: [...archives, sharedLibrary] },
  freestanding: { to: 'wasm', files: ['ashlar.wasm', 'ashlar-imported.wasm', 'selftest.wasm'] },
};
const sources = {
  LICENSE: 'LICENSE',
  'README.md': 'npm/README.md',
  'cli.mjs': 'npm/cli.mjs',
  ...inFolder('cli', 'npm/cli'),
  ...inFolder('cmake', 'npm/cmake'),
  ...inFolder('include', 'include'),
  ...inFolder('js', 'js'),
};

function inFolder(to, from) {
  const names = fs.readdirSync(path.join(root, from));
  return Object.fromEntries(names.map((name) => [`${to}/${name}`, `${from}/${name}`]));
}

// {file in the package: file in the tree}
function listFiles() {
  const files = { ...sources };
  for (const [target, { to, files: names }] of Object.entries(libraries)) {
    for (const profile of profiles) {
      const from = profile === 'fast' ? target : `${target}-${profile}`;
      for (const name of names) files[`${to}/${profile}/${name}`] = `build/${from}/${name}`;
    }
  }
  return files;
}

function put(folder, name, bytes) {
  const file = path.join(folder, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, bytes);
  // Whatever the umask is.
  fs.chmodSync(file, name === 'cli.mjs' ? 0o755 : 0o644);
}

function packageJson() {
  const text = fs.readFileSync(path.join(root, 'npm/package.json'), 'utf8');
  const { name, ...rest } = JSON.parse(text);
  return `${JSON.stringify({ name, version, ...rest }, null, 2)}\n`;
}

function assemble(folder) {
  fs.rmSync(folder, { recursive: true, force: true });
  for (const [name, from] of Object.entries(listFiles())) {
    const file = path.join(root, from);
    if (!fs.existsSync(file)) throw new Error(`${from} is missing: run ./dev build npm`);
    const bytes = fs.readFileSync(file);
    if (bytes.includes(root)) throw new Error(`${from} names ${root}, the folder it was built in`);
    const isTemplate = name.startsWith('cmake/');
    put(folder, name, isTemplate ? fillIn(bytes.toString()) : bytes);
  }
  put(folder, 'package.json', packageJson());
}

const fillIn = (text) => text.replaceAll('@VERSION@', version).replaceAll('@SOVERSION@', soVersion);

// npm sorts the files and gives them all one date of its own.
function pack(folder, output) {
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', output];
  const name = execFileSync('npm', args, { cwd: folder, encoding: 'utf8' }).trim();
  return path.join(output, name);
}

const output = path.resolve(process.argv[2] ?? path.join(root, 'build/npm'));
try {
  assemble(path.join(output, 'package'));
  const file = pack(path.join(output, 'package'), output);
  console.log(`${path.relative('.', file)}, ${fs.statSync(file).size} bytes`);
} catch (error) {
  console.error(`npm/build.mjs: ${error.message}`);
  process.exitCode = 1;
}
