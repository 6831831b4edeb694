// ashlar flags: what a compiler must be told to link Ashlar, for `$(...)` in a shell.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

// By target: the folder in lib, and what must stand beside the archive.
const targets = {
  wasi: { folder: 'wasi', beside: [] },
  // No other allocator can be linked then, whichever part of ours a program leaves out.
  emscripten: { folder: 'emscripten', beside: ['-sMALLOC=none'] },
  native: { folder: 'linux-x86_64', beside: [] },
};
const profiles = ['fast', 'small', 'bare'];

export const usage = `  ashlar flags --target wasi|emscripten|native [--profile fast|small|bare]
               [--pic | --core] [--cflags | --libs]
      Prints what the compiler must be told: where ashlar.h is (--cflags) and what to link (--libs),
      both when neither is asked for. --pic: Emscripten's -sMAIN_MODULE. --core: the ashlar_*
      functions beside the toolchain's own malloc.`;

export const options = {
  target: { type: 'string' },
  profile: { type: 'string', default: 'fast' },
  pic: { type: 'boolean', default: false },
  core: { type: 'boolean', default: false },
  cflags: { type: 'boolean', default: false },
  libs: { type: 'boolean', default: false },
};

function choose(what, value, all) {
  const names = `there are: ${all.join(', ')}`;
  if (value === undefined) throw new Error(`which --${what}? ${names}`);
  if (!all.includes(value)) throw new Error(`no ${what} ${value}; ${names}`);
}

// From here, since $(...) splits at spaces: those in the path to here don't matter then. Where one
// is left the word is quoted, for `eval`.
function shellPath(...parts) {
  const file = path.relative('.', path.join(root, ...parts));
  return /^[\w@%+=:,./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
}

function libs({ target, profile, pic, core }) {
  const { folder, beside } = targets[target];
  const name = core ? 'libashlar-core.a' : pic ? 'libashlar-pic.a' : 'libashlar.a';
  if (!fs.existsSync(path.join(root, 'lib', folder, profile, name))) {
    throw new Error(`--pic is for --target emscripten, not ${target}`);
  }
  return [shellPath('lib', folder, profile, name), ...(core ? [] : beside)];
}

export function run(values) {
  choose('target', values.target, Object.keys(targets));
  choose('profile', values.profile, profiles);
  if (values.pic && values.core) throw new Error('--pic and --core exclude each other');
  const both = values.cflags === values.libs;
  const words = [
    ...(both || values.cflags ? ['-I', shellPath('include')] : []),
    ...(both || values.libs ? libs(values) : []),
  ];
  console.log(words.join(' '));
}
