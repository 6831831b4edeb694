// What the measured times say. Times are only ever compared as ratios to dlmalloc's.
import { arms, shapes } from './plan.js';

const best = (times) => Math.min(...times);
const apart = (a, b) => Math.max(a, b) / Math.min(a, b) - 1;

// Even rounds against odd ones: they run the arms in opposite orders.
function halvesApart(times) {
  const half = (parity) => best(times.filter((_, round) => round % 2 === parity));
  return apart(half(0), half(1));
}

// The share of the time that a difference must exceed to mean anything, for one shape.
function noiseOf(racers, clockShare) {
  const times = (id) => racers.find(({ arm }) => arm === id).nsPerOperation;
  return Math.max(
    apart(best(times('dlmalloc')), best(times('again'))),
    ...racers.map(({ nsPerOperation }) => halvesApart(nsPerOperation)),
    clockShare,
  );
}

function verdictOf(id, ratio, noise) {
  if (id === 'dlmalloc') return 'measure';
  if (id === 'again') return 'noise';
  if (apart(ratio, 1) <= noise) return 'cannot resolve';
  return ratio < 1 ? 'faster' : 'slower';
}

// One shape's rows, in the order of `arms`. clockShare: the clock's step over the slice's length.
export function judge(shape, racers, clockShare) {
  const noise = noiseOf(racers, clockShare);
  const base = best(racers[0].nsPerOperation);
  const rows = racers.map((racer) => {
    const ratio = best(racer.nsPerOperation) / base;
    return {
      ...racer,
      shape,
      noise,
      ratio,
      verdict: verdictOf(racer.arm, ratio, noise),
      operationsPerSecond: 1e9 / best(racer.nsPerOperation),
      heapRatio: racer.heapBytes / racer.livePeakBytes,
    };
  });
  return { shape, noise, rows };
}

export const armName = (id) => arms.find((arm) => arm.id === id).name;
export const shapeName = (id) => shapes.find((shape) => shape.id === id).name;

// 'faster on Churn, Tree; slower on Mixed': what `compare` says of Ashlar and a rival.
function groups(judged, rival, compare) {
  const found = new Map();
  for (const { shape, noise, rows } of judged) {
    const rowOf = (id) => rows.find(({ arm }) => arm === id);
    const words = compare(rowOf('ashlar'), rowOf(rival), noise);
    found.set(words, [...(found.get(words) ?? []), shapeName(shape)]);
  }
  const all = judged.length > 1 && found.size === 1 && `all ${judged.length} shapes`;
  return [...found].map(([words, names]) => `${words} on ${all || names.join(', ')}`).join('; ');
}

const unresolved = 'cannot resolve a difference';
function compareTimes(ours, theirs, noise) {
  if (apart(ours.ratio, theirs.ratio) <= noise) return unresolved;
  return ours.ratio < theirs.ratio ? 'faster' : 'slower';
}

// Memory has no noise, but comes in steps of 64 KiB.
function compareHeaps(ours, theirs) {
  if (Math.abs(ours.heapBytes - theirs.heapBytes) < 65536) return 'the same';
  return ours.heapBytes < theirs.heapBytes ? 'less' : 'more';
}

// The result in three sentences, losses too.
export const summary = (judged) => [
  `Ashlar against dlmalloc: ${groups(judged, 'dlmalloc', compareTimes)}.`,
  `Ashlar against emmalloc: ${groups(judged, 'emmalloc', compareTimes)}.`,
  `Its memory against dlmalloc’s: ${groups(judged, 'dlmalloc', compareHeaps)}.`,
];

const columns = [
  ['shape', ({ shape }) => shape],
  ['allocator', ({ arm }) => armName(arm)],
  ['time ratio to dlmalloc', ({ ratio }) => ratio.toFixed(4)],
  ['noise', ({ noise }) => noise.toFixed(4)],
  ['verdict', ({ verdict }) => verdict],
  ['heap bytes', ({ heapBytes }) => heapBytes],
  ['live peak bytes', ({ livePeakBytes }) => livePeakBytes],
  ['heap ratio to live peak', ({ heapRatio }) => heapRatio.toFixed(4)],
  ['module bytes', ({ moduleBytes }) => moduleBytes],
  ['operations per second', ({ operationsPerSecond }) => Math.round(operationsPerSecond)],
  ['checksum', ({ checksum }) => checksum],
];

// Facts about the machine come first, as comments: figures without them mean little.
export function toCsv(judged, facts) {
  const lines = facts.map(([name, value]) => `# ${name}: ${value}`);
  lines.push(columns.map(([name]) => name).join(','));
  for (const row of judged.flatMap(({ rows }) => rows)) {
    lines.push(columns.map(([, cell]) => cell(row)).join(','));
  }
  return `${lines.join('\n')}\n`;
}
