// ./dev bench peers
//
// Gets the source of the peers that no toolchain brings: Debian's mimalloc, into build/peers. The
// other benches have it as an arm once it is there. apt-get looks for it where this machine's own
// packages come from, in lists of its own, so that nothing of the system changes.
import fs from 'node:fs';
import path from 'node:path';
import { buildPath, run } from '../demo/toolchain.mjs';
import { fail, scratch } from './lib/report.mjs';

const sourceLists = '/etc/apt/sources.list.d';
const target = buildPath('peers/mimalloc');

async function mustRun(command, args, cwd) {
  const { status, stderr } = await run(command, args, { cwd });
  if (status !== 0) fail(`${command} ${args.at(-1)} failed: ${stderr.trim().split('\n').at(-1)}`);
}

function aptOptions(folder) {
  const inside = (...parts) => path.join(folder, ...parts);
  for (const name of ['parts', 'lists/partial', 'cache/archives/partial']) {
    fs.mkdirSync(inside(name), { recursive: true });
  }
  for (const name of fs.readdirSync(sourceLists).filter((file) => file.endsWith('.sources'))) {
    const text = fs.readFileSync(path.join(sourceLists, name), 'utf8');
    fs.writeFileSync(inside('parts', name), text.replace(/^Types:.*$/gm, 'Types: deb-src'));
  }
  const settings = {
    'Dir::Etc::SourceList': '/dev/null',
    'Dir::Etc::SourceParts': inside('parts'),
    'Dir::State::Lists': inside('lists'),
    'Dir::Cache': inside('cache'),
    'APT::Sandbox::User': '',
  };
  return Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
}

const folder = scratch();
const options = aptOptions(folder);
await mustRun('apt-get', ['-q', ...options, 'update']);
await mustRun('apt-get', ['-q', ...options, 'source', '--download-only', 'mimalloc'], folder);
const archive = fs.readdirSync(folder).find((name) => name.includes('.orig.tar'));
if (!archive) fail('apt-get source mimalloc brought no source');
fs.rmSync(target, { recursive: true, force: true });
fs.mkdirSync(target, { recursive: true });
await mustRun('tar', ['-xf', path.join(folder, archive), '-C', target, '--strip-components=1']);
fs.writeFileSync(path.join(target, 'VERSION'), `${/_([\d.]+)/.exec(archive)[1]}\n`);
console.log(`mimalloc ${/_([\d.]+)/.exec(archive)[1]} is in build/peers/mimalloc`);
