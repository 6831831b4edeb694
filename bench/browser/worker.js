// The race itself, in a worker, so that drawing doesn't take the time of what is measured.
// In: {arms, shapes, effort} of plan.js. Out: {type: 'round'} after each round with the operations
// done so far; {type: 'shape'} with the figures of a shape; then 'done', or 'failed' with one line.

async function load(file) {
  const response = await fetch(file).catch(() => ({ ok: false, status: 'no answer' }));
  if (!response.ok) throw new Error(`${file} did not load (${response.status}).`);
  const bytes = await response.arrayBuffer();
  try {
    return { bytes: bytes.byteLength, module: await WebAssembly.compile(bytes) };
  } catch {
    throw new Error(`${file} did not load: it is not a WebAssembly module that can run here.`);
  }
}

// A fresh instance for each shape, so that its memory is what this shape needed.
async function enter(arm, loaded, shape, heapCalls) {
  const imports = { env: { emscripten_notify_memory_growth() {} } };
  const { exports } = await WebAssembly.instantiate(loaded.module, imports);
  exports._initialize();
  const none = { calls: 0, operations: 0, nsPerOperation: [] };
  return { arm, shape, exports, moduleBytes: loaded.bytes, heapCalls, ...none };
}

function call(racer) {
  const { arm, shape, exports } = racer;
  try {
    racer.checksum = exports[`run_${shape.id}`](shape.steps) >>> 0;
  } catch (error) {
    throw new Error(`${arm.name} failed on ${shape.name}: ${error.message}`);
  }
  racer.calls += 1;
  if (racer.calls === racer.heapCalls) {
    racer.heapBytes = exports.memory.buffer.byteLength - exports.heap_base();
  }
  return exports.operations();
}

function runSlice(racer, sliceMs) {
  const start = performance.now();
  let operations = 0;
  let passed = 0;
  while (passed < sliceMs) {
    operations += call(racer);
    passed = performance.now() - start;
  }
  return { operations, nsPerOperation: (passed * 1e6) / operations };
}

// Every arm stands at every place equally often, and runs after different ones.
function orderOf(round, racers) {
  const first = (round >> 1) % racers.length;
  const turned = [...racers.slice(first), ...racers.slice(0, first)];
  return round % 2 ? turned.reverse() : turned;
}

function checkAgreement(shape, racers) {
  const [first, ...others] = racers;
  const other = others.find(({ checksum }) => checksum !== first.checksum);
  if (!other) return;
  const names = `${first.arm.name} and ${other.arm.name}`;
  throw new Error(`The checksums of ${names} differ on ${shape.name}: one of them lost data.`);
}

function figuresOf(racer) {
  // A slow machine has not made as many calls yet.
  while (racer.calls < racer.heapCalls) call(racer);
  const { arm, exports, moduleBytes, checksum, nsPerOperation, heapBytes } = racer;
  const livePeakBytes = exports.live_peak();
  return { arm: arm.id, moduleBytes, checksum, nsPerOperation, heapBytes, livePeakBytes };
}

async function raceShape(shape, arms, loaded, { warmUps, rounds, sliceMs, heapCalls }) {
  const racers = [];
  for (const arm of arms) racers.push(await enter(arm, loaded.get(arm.file), shape, heapCalls));
  for (let round = -warmUps; round < rounds; round += 1) {
    for (const racer of orderOf(round + warmUps, racers)) {
      const { operations, nsPerOperation } = runSlice(racer, sliceMs);
      if (round < 0) continue;
      racer.operations += operations;
      racer.nsPerOperation.push(nsPerOperation);
    }
    checkAgreement(shape, racers);
    const operations = racers.map((racer) => racer.operations);
    postMessage({ type: 'round', shape: shape.id, share: (round + 1) / rounds, operations });
  }
  postMessage({ type: 'shape', shape: shape.id, racers: racers.map(figuresOf) });
}

// The smallest step of the clock that can be seen: browsers make it coarse on purpose.
function timerStep() {
  let least = Infinity;
  for (let i = 0; i < 20; i += 1) {
    const start = performance.now();
    let now = start;
    while (now === start) now = performance.now();
    least = Math.min(least, now - start);
  }
  return least;
}

async function race({ arms, shapes, effort }) {
  const loaded = new Map();
  for (const { file } of arms) {
    if (!loaded.has(file)) loaded.set(file, await load(file));
  }
  const timerMs = timerStep();
  for (const shape of shapes) await raceShape(shape, arms, loaded, effort);
  postMessage({ type: 'done', timerMs });
}

onmessage = ({ data }) => {
  race(data).catch((error) => postMessage({ type: 'failed', line: error.message }));
};
