// Which work a bench was asked for: {name, kind: 'trace', trace} or {name, kind: 'shape', index,
// seed}.
import fs from 'node:fs';
import { run } from '../../demo/toolchain.mjs';
import { runnerOf } from './arms.mjs';
import { fail } from './report.mjs';
import { loadTrace, traceNames } from './traces.mjs';

// shapes.c knows its shapes; runner.c (built before) lists them.
export async function shapeNames(folder) {
  const { stdout } = await run(runnerOf({}, folder), ['shapes']);
  return stdout.trim().split('\n');
}

const isFile = (name) => name.endsWith('.mtr') && fs.existsSync(name);
const isTrace = (name) => traceNames().includes(name) || isFile(name);

// `known`: the names of this bench's works. A trace of the user's own is given by its path.
export function chooseWorks(known, { names, seed = '1', shapes = [] }) {
  if (!/^\d{1,9}$/.test(seed)) fail(`--seed ${seed} is no whole number`);
  const wanted = names.length > 0 ? names : known;
  for (const name of wanted) {
    const takesTraces = known.some((one) => !shapes.includes(one));
    if (!known.includes(name) && !shapes.includes(name) && !(takesTraces && isTrace(name))) {
      const sort = shapes.length === 0 ? 'trace' : takesTraces ? 'trace or shape' : 'shape';
      const all = new Set([...(takesTraces ? traceNames() : []), ...shapes]);
      fail(`no ${sort} '${name}'; there are: ${[...all].join(', ')}`);
    }
  }
  return wanted.map((name) => {
    if (shapes.includes(name)) return { name, kind: 'shape', index: shapes.indexOf(name), seed };
    const trace = loadTrace(name);
    return { name: trace.name, kind: 'trace', trace };
  });
}
