// Misuse stops the program: a trap, one line on its error output, the same line left in
// ashlar_last_message. Each state of a block x each fault of a pointer x each call, on WASI and
// Emscripten, in the profiles that check.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildAll, casesProgram, makeProgram, mustPass, runCase, start } from './support.mjs';

// The order is that of the enums in programs/misuse.c.
const states = ['alone', 'neighbours', 'full page', 'after realloc', 'cold', 'large', 'large last'];
const calls = ['free', 'realloc', 'realloc to 0', 'usable_size'];

const [doubleFree, interior, foreign, never] = [1, 2, 3, 4];
const words = {
  [doubleFree]: 'double free of',
  [interior]: 'interior pointer',
  [foreign]: 'foreign pointer',
  [never]: 'never allocated',
};
// A block that was merged with its neighbours, or whose page was given away, is no block any more.
const merged = [doubleFree, interior, foreign, never];
const afterFree = (state) => (['alone', 'large last'].includes(state) ? merged : [doubleFree]);
// Only a page knows which of its blocks were never handed out; in the arena that is free memory.
const unused = (state, profile) =>
  profile === 'fast' && ['neighbours', 'full page'].includes(state) ? [never] : merged;

const faults = [
  { name: 'freed', expected: afterFree },
  { name: 'freed before another', expected: afterFree },
  { name: 'inside', expected: () => [interior] },
  { name: 'inside, odd', expected: () => [interior] },
  { name: 'last byte', expected: () => [interior] },
  { name: 'static array', expected: () => [foreign] },
  { name: 'stack array', expected: () => [foreign] },
  { name: 'address 16', expected: () => [foreign] },
  { name: 'beyond memory', expected: () => [foreign] },
  { name: "the program's own memory", expected: () => [foreign] },
  { name: 'never handed out', expected: unused },
];

const targets = ['wasi', 'emscripten-growth', 'emscripten-standalone'];
const jobs = [];
for (const target of targets) {
  for (const profile of ['fast', 'small', 'bare']) jobs.push({ target, profile });
}
const programs = await buildAll(
  jobs.map(({ target, profile }) => () => casesProgram(target, profile)),
);
const program = (target, profile) =>
  programs[jobs.findIndex((job) => job.target === target && job.profile === profile)];

function expectDeath(result, expected, profile) {
  const { address } = result.metrics;
  assert.ok(address !== undefined, `the case got no pointer: ${result.failures} ${result.trap}`);
  const hex = `0x${address.toString(16)}`;
  const texts = expected.map((kind) =>
    profile === 'small' ? `ashlar: ${kind} ${hex}` : `ashlar: ${words[kind]} ${hex}`,
  );
  assert.ok(result.trap !== null, `survived, instead of: ${texts[0]}`);
  // Reading beyond memory would also trap, without a message.
  assert.ok(texts.includes(result.message), `message '${result.message}' instead of: ${texts[0]}`);
  const lines = result.stderr.split('\n').filter((line) => line.includes('ashlar'));
  assert.deepEqual(lines, [result.message]);
}

for (const { target, profile } of jobs) {
  if (profile === 'bare') continue;
  describe(`${target} ${profile}`, () => {
    for (const [fault, { name, expected }] of faults.entries()) {
      // Would catch: a pointer for which a call works on as if a block began there, a fault with
      // the wrong name or address, a message that is lost, a check that reads what isn't memory.
      test(`${name}`, async () => {
        const wrong = [];
        for (const [state, stateName] of states.entries()) {
          for (const [call, callName] of calls.entries()) {
            const result = await runCase(program(target, profile), 'misuse', {
              args: [state, fault, call],
            });
            try {
              expectDeath(result, expected(stateName, profile), profile);
            } catch (error) {
              wrong.push(`${callName}, ${stateName}: ${error.message}`);
            }
          }
        }
        assert.equal(wrong.length, 0, wrong.join('\n'));
      });
    }
  });
}

for (const target of targets) {
  // Would catch: tests above that pass whatever the library does: without checks nothing is named.
  test(`control: ${target} bare names nothing`, async () => {
    for (let fault = 0; fault < faults.length; fault++) {
      const result = await runCase(program(target, 'bare'), 'misuse', { args: [1, fault, 0] });
      assert.equal(result.message, '');
      assert.ok(!result.stderr.includes('ashlar'), result.stderr);
    }
  });

  for (const profile of ['fast', 'small', 'bare']) {
    // Would catch: a free block's mark that is taken for proof, so that a program dies which only
    // kept the bytes that it found in a block.
    test(`no false alarm: ${target} ${profile}`, async () => {
      mustPass(await runCase(program(target, profile), 'no_false_alarm'));
      mustPass(await runCase(program(target, profile), 'no_suspicious_value'));
    });

    // Would catch: an ashlar_check that sees nothing, or stops the program.
    test(`ashlar_check finds a header that was overwritten: ${target} ${profile}`, async () => {
      mustPass(await runCase(program(target, profile), 'check_returns'));
    });
  }
}

// Would catch: a message that needs stdio, or an import that is there only for messages.
test('a program without output: the message is in memory, and nothing is imported', async () => {
  const empty = await makeProgram('empty', 'wasi', ['empty.c']);
  const instance = await start(empty);
  assert.ok(instance.call('one_malloc').value > 0);
  assert.equal(instance.call('free_it').trap, null);
  const { trap, stderr } = instance.call('free_it');
  assert.match(trap, /unreachable/);
  assert.equal(stderr, '');
  assert.match(instance.string(instance.exports.message()), /^ashlar: double free of 0x[0-9a-f]+$/);
});
