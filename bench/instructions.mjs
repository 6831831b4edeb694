// ./dev bench instructions [--smoke] [--seed N] [--arms A,B] [--functions] [TRACE|SHAPE...]
//
// Machine instructions per call of the allocator, the same in every run. The allocator's WASI
// archive is translated by wasm2c, compiled by gcc -O2 into a shared object of its own, and given
// the work under callgrind. What ran in that object is the allocator's work; the work's own
// instructions are in another. So nothing is estimated or subtracted. `again` is dlmalloc once
// more, built and run anew: a difference of one instruction ends the bench. --functions shows where
// they went.
import { arms as allArms, buildRunners, chooseArms, peerFacts } from './lib/arms.mjs';
import { countWorks, printFunctions, printLosses, publishCounts } from './lib/callgrind.mjs';
import { machineFacts, parse, requireTools, scratch } from './lib/report.mjs';
import { traceNames } from './lib/traces.mjs';
import { chooseWorks, shapeNames } from './lib/works.mjs';

const { values: options, positionals: names } = parse({
  smoke: { type: 'boolean', default: false },
  seed: { type: 'string', default: '1' },
  arms: { type: 'string' },
  functions: { type: 'boolean', default: false },
});

requireTools(['wasm2c', 'valgrind', 'gcc']);
const folder = scratch();
const few = 'dlmalloc,again,slowed,fast,bare,bump,pages';
const arms = chooseArms(
  [...allArms.wasi, ...allArms.floors],
  options.arms ?? (options.smoke ? few : undefined),
);
await buildRunners(folder);
const shapes = await shapeNames(folder);
const known = options.smoke ? ['sqlite', 'pair'] : [...traceNames(), ...shapes];
const works = chooseWorks(known, { names, seed: options.seed, shapes });
await countWorks(works, arms, folder);
if (options.functions) printFunctions(works, arms);
const part = options.smoke || names.length > 0 || options.arms !== undefined;
const facts = machineFacts({ part, ...peerFacts(), seed: options.seed });
publishCounts('instructions', { works, columns: arms.map((arm) => arm.name), facts });
printLosses(works);
