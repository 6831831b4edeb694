// Runs the self-test, tests/selftest, as a bare WebAssembly module: no WASI, no glue, no globals
// but WebAssembly. In Node 20.10 or newer, in browsers, in any realm of its own.
//
//   selftest(bytes or module, {imports, seed, onResult})
//       {passed, failed, skipped, code, results}. `code` is that of the first check that failed, or
//       0: the exit code of a program that runs this. onResult(result) is called after each check.
//   listChecks(module, {imports})          what there is to run: [{kind, index, name, code}]
//   runCheck(module, check, {imports, seed})  one of those, in an instance of its own
//
// A result is {kind, name, code, ok, skipped, detail}. One that was skipped, since it does not
// apply to the profile, has ok: true and counts as neither passed nor failed; `detail` says why it
// failed or was skipped.

const skippedCode = -1;

// Not by TextDecoder: not every realm has one. The texts are ASCII.
function textAt({ memory }, address) {
  const bytes = new Uint8Array(memory.buffer);
  let text = '';
  for (let at = address >>> 0; bytes[at] !== 0; at++) text += String.fromCharCode(bytes[at]);
  return text;
}

const start = async (module, imports = {}) =>
  (await WebAssembly.instantiate(module, imports)).exports;

export async function listChecks(module, { imports } = {}) {
  const exports = await start(module, imports);
  const list = (kind, count, name, code) =>
    Array.from({ length: count() }, (_, index) => ({
      kind,
      index,
      name: textAt(exports, name(index)),
      code: code(index),
    }));
  return [
    ...list('check', exports.selftest_count, exports.selftest_name, exports.selftest_code),
    ...list('misuse', exports.selftest_misuse_count, exports.selftest_misuse_name,
      exports.selftest_misuse_code),
  ];
}

// Calls an export: what it returned, or what ended the instance. Its memory is there after a trap.
function attempt(call, index) {
  try {
    return { status: call(index), trap: null };
  } catch (error) {
    return { status: null, trap: `${error.name}: ${error.message}` };
  }
}

// Why the check failed, or ''.
function faultOfCheck(exports, { status, trap }) {
  if (status === 0) return '';
  if (trap === null) return textAt(exports, exports.selftest_detail());
  const message = textAt(exports, exports.ashlar_last_message());
  return message === '' ? trap : `${trap}, "${message}"`;
}

function faultOfMisuse(exports, { trap }) {
  const expected = textAt(exports, exports.selftest_misuse_expected());
  if (expected === '') return 'the misuse could not be made';
  const message = textAt(exports, exports.ashlar_last_message());
  if (trap === null) return `went on instead of "${expected}"`;
  if (message !== expected) return `"${message}" instead of "${expected}", ${trap}`;
  return exports.ashlar_check() === 0 ? '' : 'the heap was changed before the end';
}

export async function runCheck(module, { kind, index, name, code }, { imports, seed } = {}) {
  const exports = await start(module, imports);
  if (seed !== undefined) exports.selftest_set_seed(seed);
  const isCheck = kind === 'check';
  const ending = attempt(isCheck ? exports.selftest_run : exports.selftest_misuse_run, index);
  const result = { kind, name, code, ok: true, skipped: false, detail: '' };
  if (ending.status === skippedCode) {
    const detail = textAt(exports, exports.selftest_detail());
    return { ...result, skipped: true, detail };
  }
  const detail = isCheck ? faultOfCheck(exports, ending) : faultOfMisuse(exports, ending);
  return { ...result, ok: detail === '', detail };
}

export async function selftest(source, options = {}) {
  // By its tag, since a module of another realm is no instance of this one's.
  const isModule = Object.prototype.toString.call(source) === '[object WebAssembly.Module]';
  const module = isModule ? source : await WebAssembly.compile(source);
  const results = [];
  for (const check of await listChecks(module, options)) {
    const result = await runCheck(module, check, options);
    results.push(result);
    options.onResult?.(result);
  }
  const count = (test) => results.filter(test).length;
  return {
    passed: count(({ ok, skipped }) => ok && !skipped),
    failed: count(({ ok }) => !ok),
    skipped: count(({ skipped }) => skipped),
    code: results.find(({ ok }) => !ok)?.code ?? 0,
    results,
  };
}
