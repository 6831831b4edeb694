#!/usr/bin/env node
// `ashlar COMMAND`: each command is one file of cli/, with `usage`, `options` and `run(values)`.
import fs from 'node:fs';
import { parseArgs } from 'node:util';

const commands = {
  selftest: () => import('./cli/selftest.mjs'),
  flags: () => import('./cli/flags.mjs'),
};

const { version } = JSON.parse(fs.readFileSync(new URL('package.json', import.meta.url), 'utf8'));

async function usage() {
  const modules = await Promise.all(Object.values(commands).map((load) => load()));
  const lines = modules.map((command) => command.usage);
  return ['usage:', ...lines, '  ashlar --help | --version'].join('\n');
}

function parse(command, args) {
  const options = { ...command.options, help: { type: 'boolean' } };
  try {
    return parseArgs({ args, options, allowPositionals: false }).values;
  } catch (error) {
    // Node explains at length how a word could have been meant; the first sentence says all.
    const [first] = error.message.split(/\. |\n/);
    throw new Error(first[0].toLowerCase() + first.slice(1));
  }
}

async function main([name, ...args]) {
  if (name === '--version') return console.log(version);
  if (name === undefined || name === '--help') return console.log(await usage());
  if (!Object.hasOwn(commands, name)) {
    throw new Error(`no command ${name}; there are: ${Object.keys(commands).join(', ')}`);
  }
  const command = await commands[name]();
  const values = parse(command, args);
  if (values.help) return console.log(`usage:\n${command.usage}`);
  return command.run(values);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(`ashlar: ${error.message}`);
  process.exitCode = error.exitCode ?? 1;
}
