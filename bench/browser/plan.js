// Who races, on what, and for how long.

// `again` is dlmalloc a second time: what separates the two is noise.
export const arms = [
  { id: 'dlmalloc', name: 'dlmalloc', file: 'dlmalloc.wasm' },
  { id: 'emmalloc', name: 'emmalloc', file: 'emmalloc.wasm' },
  { id: 'ashlar', name: 'Ashlar', file: 'ashlar.wasm' },
  { id: 'again', name: 'dlmalloc again', file: 'dlmalloc.wasm' },
];

// `steps` make one call of shapes.c take about 5 ms on a desktop. Calls are short since an engine
// never swaps optimised code into one that is running.
export const shapes = [
  {
    id: 'churn',
    name: 'Churn',
    text: '10,000 live blocks of 16 B to 1 KiB; a step frees one and takes another',
    steps: 60000,
  },
  {
    id: 'strings',
    name: 'Strings',
    text: '400 strings of 16 B to 8 KiB; a step makes one longer by half (realloc)',
    steps: 40000,
  },
  {
    id: 'tree',
    name: 'Tree',
    text: 'Syntax trees of 32 to 64 B nodes; a step builds one and tears an old one down',
    steps: 90,
  },
  {
    id: 'mixed',
    name: 'Mixed',
    text: '500 live blocks of 16 B to 64 KiB; a step replaces one, or resizes it (1 in 4)',
    steps: 50000,
  },
];

// A round is one slice of time for each arm. Warm-up rounds don't count. Memory is read after a
// number of calls that is the same for all: it may creep, and the faster ones make more calls.
export const efforts = [
  { id: 'quick', name: 'quick (3 s)', warmUps: 3, rounds: 8, sliceMs: 10, heapCalls: 5 },
  { id: 'full', name: 'full (20 s)', warmUps: 5, rounds: 40, sliceMs: 20, heapCalls: 100 },
  { id: 'long', name: 'long (1 min)', warmUps: 5, rounds: 160, sliceMs: 20, heapCalls: 400 },
];
