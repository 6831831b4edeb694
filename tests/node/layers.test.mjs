// The layers of src/README.md hold: who may include whom, and where the language's and the platform's
// rules may be left. Needs no build. Each rule is also shown to fail on a planted violation.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

// Files that may do what the others may not.
const isOsLayer = (file) => /^\w+_os\//.test(file);
const isFace = (file) => /^override\w*\.(h|cc)$/.test(file); // C's and C++'s names, per target
const mayNamePlatforms = (file) => isOsLayer(file) || isFace(file) || file === 'os.h';
const mayNameCompilers = (file) => file === 'base.h';
const mayHaveConditions = (file) =>
  isOsLayer(file) || isFace(file) || ['base.h', 'config.h', 'os.h'].includes(file);
const maySeeSystemHeader = (file, header) =>
  isOsLayer(file) || isFace(file) || ['stddef.h', 'stdint.h'].includes(header);

const platformWord =
  /\b(__wasm\w*|__wasi\w*|__EMSCRIPTEN\w*|__linux\w*|__unix\w*|__APPLE__|_WIN32|_WIN64|__x86_64__|__i386__|__aarch64__|__arm__)\b/;
const compilerWord =
  /\b(__GNUC__|__clang\w*|_MSC_VER|__has_(attribute|builtin|feature|cpp_attribute)|__INTEL_COMPILER)\b/;
const uncheckedCast =
  /\breinterpret_cast\s*<|\b(std::|__builtin_)bit_cast\b|\((const\s+)?[A-Za-z_][\w:]*(\s+const)?\s*\*+\s*\)\s*(?!noexcept\b|const\b)[\w(]/;

const sourceFiles = (src) =>
  fs
    .readdirSync(src, { recursive: true })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => /\.(h|cc)$/.test(name))
    .sort();

// Comments and texts are blanked, line for line.
const codeOf = (text) =>
  text.replace(/\/\*[^]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g, (part, at, all) => {
    if (part[0] === '"' && /#\s*include\s*$/.test(all.slice(all.lastIndexOf('\n', at) + 1, at))) return part;
    return part.replace(/[^\n]/g, ' ');
  });

const section = (text, heading) => {
  const parts = text.split(/^## +/m).filter((part) => part.startsWith(`${heading}\n`));
  return parts.length === 1 ? parts[0] : '';
};
const quoted = (text) => [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1]);
const matches = (pattern, file) =>
  new RegExp(`^${pattern.replace(/[.+]/g, '\\$&').replace(/\{(\w+),(\w+)\}/g, '($1|$2)').replace(/\*/g, '[^/]*')}$`).test(file);

// Rows of "## Layers": | number | name | `files` | ... |, and the files of "## Seams".
function readLayers(readme) {
  const rows = [];
  for (const line of section(readme, 'Layers').split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim());
    if (cells.length < 4 || !/^\d+$/.test(cells[1])) continue;
    rows.push({ number: Number(cells[1]), name: cells[2], patterns: quoted(cells[3]) });
  }
  const seams = section(readme, 'Seams')
    .split('\n')
    .filter((line) => /^[-|*] /.test(line))
    .flatMap((line) => quoted(line.split(/[:|]/).find((cell) => cell.includes('`')) ?? ''));
  return { rows, seams };
}

// Every violation in the tree under `base`, as texts.
function violationsIn(base) {
  const src = path.join(base, 'src');
  const found = [];
  const readmeFile = path.join(src, 'README.md');
  if (!fs.existsSync(readmeFile)) return ['src/README.md is missing'];
  const { rows, seams } = readLayers(fs.readFileSync(readmeFile, 'utf8'));
  if (rows.length < 5) found.push('README: no table of layers');
  if (seams.length === 0) found.push('README: no list of seams');

  const files = sourceFiles(src);
  for (const row of rows) {
    for (const pattern of row.patterns) {
      if (!files.some((file) => matches(pattern, file))) found.push(`README: ${pattern} matches no file`);
    }
  }
  for (const pattern of seams) {
    if (!files.some((file) => matches(pattern, file))) found.push(`README: seam ${pattern} matches no file`);
  }
  const layerOf = new Map();
  for (const file of files) {
    const its = rows.filter((row) => row.patterns.some((pattern) => matches(pattern, file)));
    if (its.length === 0) found.push(`${file}: in no layer`);
    if (its.length > 1) found.push(`${file}: in several layers`);
    if (its.length > 0) layerOf.set(file, its[0].number);
  }

  for (const file of files) {
    const lines = codeOf(fs.readFileSync(path.join(src, file), 'utf8')).split('\n');
    lines.forEach((line, index) => {
      const report = (what) => found.push(`${file}:${index + 1}: ${what}`);
      const include = line.match(/^\s*#\s*include\s*([<"])([^">]+)[">]/);
      if (include?.[1] === '<' && !maySeeSystemHeader(file, include[2])) report(`includes <${include[2]}>`);
      if (include?.[1] === '"') {
        const beside = path.posix.join(path.posix.dirname(file), include[2]);
        const target = files.includes(beside) ? beside : include[2];
        if (files.includes(target)) {
          const own = target.replace(/\.h$/, '') === file.replace(/\.cc$/, '');
          if (!own && layerOf.get(target) > layerOf.get(file)) report(`includes upward: ${target}`);
        } else if (
          !fs.existsSync(path.join(base, 'include', target)) &&
          !(file === 'os.h' && target.startsWith('fake_os/'))
        ) {
          report(`includes an unknown file: ${target}`);
        }
        return;
      }
      if (uncheckedCast.test(line) && !seams.some((seam) => matches(seam, file))) report('unchecked cast outside a seam');
      if (platformWord.test(line) && !mayNamePlatforms(file)) report('names a platform');
      if (compilerWord.test(line) && !mayNameCompilers(file)) report('names a compiler');
      if (/^\s*#\s*(if|ifdef|ifndef|elif)\b/.test(line) && !mayHaveConditions(file)) report('a preprocessor condition');
    });
  }
  return found;
}

// Catches any violation in the tree as it is.
test('the layers of src/README.md hold', () => {
  assert.ok(sourceFiles(path.join(root, 'src')).length > 20);
  assert.deepEqual(violationsIn(root), []);
});

// A copy of the tree, in which `change` plants one violation.
function violationsAfter(change) {
  const base = fs.mkdtempSync(path.join(os.tmpdir(), 'ashlar-layers-'));
  try {
    for (const folder of ['src', 'include']) {
      fs.cpSync(path.join(root, folder), path.join(base, folder), { recursive: true });
    }
    const before = new Set(violationsIn(base));
    change({
      append: (file, text) => fs.appendFileSync(path.join(base, 'src', file), `\n${text}\n`),
      write: (file, text) => fs.writeFileSync(path.join(base, 'src', file), text),
      read: (file) => fs.readFileSync(path.join(base, 'src', file), 'utf8'),
      remove: (file) => fs.rmSync(path.join(base, 'src', file)),
    });
    return violationsIn(base).filter((violation) => !before.has(violation));
  } finally {
    fs.rmSync(base, { recursive: true });
  }
}

const plants = [
  ['an upward include', (t) => t.append('arena.h', '#include "heap.h"'), /^arena\.h:\d+: includes upward: heap\.h$/],
  ['an upward include of a layer that is new', (t) => t.append('base.h', '#include "api.h"'), /includes upward/],
  ['a file that no layer lists', (t) => t.write('slabs.h', '#pragma once\n'), /^slabs\.h: in no layer$/],
  ['a layer whose file is gone', (t) => t.remove('raw.h'), /matches no file$/],
  ['an include of an unknown file', (t) => t.append('page.h', '#include "nowhere.h"'), /unknown file: nowhere\.h$/],
  ['a system header in the core', (t) => t.append('page.cc', '#include <string.h>'), /^page\.cc:\d+: includes <string\.h>$/],
  ['a cast outside a seam', (t) => t.append('heap.cc', 'int* f(size_t x) { return reinterpret_cast<int*>(x); }'), /^heap\.cc:\d+: unchecked cast/],
  ['a C cast outside a seam', (t) => t.append('heap.cc', 'int* f(size_t x) { return (int*)x; }'), /^heap\.cc:\d+: unchecked cast/],
  ['a platform in the core', (t) => t.append('arena.cc', 'static const int wasm = __wasm__;'), /^arena\.cc:\d+: names a platform$/],
  ['a compiler outside base.h', (t) => t.append('os.h', 'static const int gcc = __GNUC__;'), /^os\.h:\d+: names a compiler$/],
  ['a condition in the core', (t) => t.append('page.cc', '#ifdef SLOW\n#endif'), /^page\.cc:\d+: a preprocessor condition$/],
  ['a table that is gone', (t) => t.write('README.md', '# Nothing\n'), /no table of layers$/],
];
for (const [name, change, expected] of plants) {
  // Catches a rule that finds nothing.
  test(`the test of layers sees ${name}`, () => {
    const found = violationsAfter(change);
    assert.ok(found.some((violation) => expected.test(violation)), `found only:\n${found.join('\n')}`);
  });
}

// Catches a rule that takes words in comments and texts for code.
test('comments and texts are no violations', () => {
  const found = violationsAfter((t) =>
    t.append('page.cc', '// reinterpret_cast<int*>(x) on __wasm__\n/*\n#if 0\n*/\nstatic const char text[] = "__linux__";'));
  assert.deepEqual(found, []);
});
