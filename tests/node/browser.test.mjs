// The race page of bench/browser, in Debian's Chromium: a quick race from start to figures, and
// what the page says when it can't race. A picture is left in build/bench-browser/race.png.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { build, serve } from '../../bench/browser.mjs';
import { judge, summary } from '../../bench/browser/figures.js';
import { efforts, shapes } from '../../bench/browser/plan.js';
import { root, run } from '../../demo/toolchain.mjs';

const quiet = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
  '--disable-background-networking', '--disable-component-update',
];
let folder;
let server;
let browser;

function findChromium() {
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter(Boolean);
  const file = folders.map((place) => path.join(place, 'chromium')).find(fs.existsSync);
  if (!file) throw new Error('chromium is missing: run ./dev setup');
  return file;
}

before(async () => {
  const executablePath = findChromium();
  folder = await build();
  server = await serve(folder);
  browser = await chromium.launch({ executablePath, headless: true, args: quiet });
});

after(async () => {
  await browser?.close();
  await server?.close();
});

// A page in a profile of its own. `complaints` collects what a visitor's console would show.
async function open(t, { prepare = () => {}, ...options } = {}) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, ...options });
  t.after(() => page.close());
  const complaints = [];
  const hosts = new Set();
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) hosts.add(new URL(request.url()).host);
  });
  await prepare(page);
  await page.goto(`${server.url}?race=quick`);
  return { page, complaints, hosts };
}

async function race(page) {
  await page.click('#start');
  await page.waitForSelector('body[data-state=done], body[data-state=failed]', { timeout: 40000 });
  return page.getAttribute('body', 'data-state');
}

function parseCsv(text) {
  const [head, ...lines] = text.trim().split('\n').filter((line) => !line.startsWith('#'));
  const names = head.split(',');
  const rowOf = (line) => line.split(',').map((cell, index) => [names[index], cell]);
  return lines.map((line) => Object.fromEntries(rowOf(line)));
}

// How many pixels of a canvas have just each of these colours of the style sheet.
const countPixels = (page, canvas, properties) => page.$eval(canvas, (drawn, names) => {
  const styles = getComputedStyle(document.documentElement);
  const counts = names.map(() => 0);
  const colors = names.map((name) => styles.getPropertyValue(name).trim());
  const { data } = drawn.getContext('2d').getImageData(0, 0, drawn.width, drawn.height);
  for (let i = 0; i < data.length; i += 4) {
    const word = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
    const index = colors.indexOf(`#${word.toString(16).padStart(6, '0')}`);
    if (index >= 0) counts[index] += 1;
  }
  return counts;
}, properties);

// The heap that the same module has after the quick race's number of calls, here in Node.
function heapBytes(name, shape) {
  const module = new WebAssembly.Module(fs.readFileSync(path.join(folder, `${name}.wasm`)));
  const imports = { env: { emscripten_notify_memory_growth() {} } };
  const { exports } = new WebAssembly.Instance(module, imports);
  exports._initialize();
  const { heapCalls } = efforts.find(({ id }) => id === 'quick');
  for (let i = 0; i < heapCalls; i += 1) exports[`run_${shape.id}`](shape.steps);
  return exports.memory.buffer.byteLength - exports.heap_base();
}

// Would catch: a race that doesn't end, or ends without a figure; allocators that don't do the same
// work; memory that depends on speed, since more calls were made when it was read; a request to
// another host; anything on the console; an empty or single-coloured chart.
test('a race ends with figures for each allocator and shape', async (t) => {
  const { page, complaints, hosts } = await open(t);
  assert.equal(await race(page), 'done', await page.textContent('#error'));

  const csv = await page.inputValue('#csv');
  const rows = parseCsv(csv);
  for (const shape of ['churn', 'strings', 'tree', 'mixed']) {
    const found = rows.filter((row) => row.shape === shape);
    const names = found.map(({ allocator }) => allocator);
    assert.deepEqual(names, ['dlmalloc', 'emmalloc', 'Ashlar', 'dlmalloc again']);
    assert.equal(new Set(found.map(({ checksum }) => checksum)).size, 1, csv);
    for (const row of found) {
      const ratio = Number(row['time ratio to dlmalloc']);
      assert.ok(ratio > 0.05 && ratio < 20, `${shape}: ${csv}`);
      assert.ok(Number(row['operations per second']) > 1e5, csv);
      // No heap is smaller than what was live in it, and none is several times as large.
      const heap = Number(row['heap ratio to live peak']);
      assert.ok(heap >= 1 && heap < 3, `${shape}: ${csv}`);
    }
  }
  for (const shape of shapes) {
    const row = rows.find((one) => one.shape === shape.id && one.allocator === 'Ashlar');
    assert.equal(Number(row['heap bytes']), heapBytes('ashlar', shape), csv);
  }
  // Three modules, not one under three names.
  assert.equal(new Set(rows.map((row) => row['module bytes'])).size, 3, csv);

  assert.equal(await page.locator('#table tr[data-arm]').count(), 16);
  assert.match(await page.textContent('#agreement'), /checksums agree/);
  assert.match(await page.textContent('#facts'), /ashlar \d+\.\d+\.\d+ fast.*isolated\s*yes/s);
  for (const canvas of ['times', 'memory']) {
    const counts = await countPixels(page, `#${canvas}`, ['--dlmalloc', '--emmalloc', '--ashlar']);
    assert.ok(Math.min(...counts) > 1000, `${canvas} has ${counts} pixels of the three colours`);
  }
  await page.screenshot({ path: path.join(folder, 'race.png'), fullPage: true });
  assert.deepEqual(complaints, []);
  assert.deepEqual([...hosts], [new URL(server.url).host]);
});

// Would catch: lanes that stand still or run beyond their track, and a Stop that doesn't.
test('the lanes move, and Stop ends the race', async (t) => {
  const { page } = await open(t);
  const tail = (id) => page.$eval(`#shape-churn [data-arm=${id}] .bar`, (bar) =>
    Number(/inset\(0(?:px)? ([\d.]+)%/.exec(bar.style.clipPath)?.[1] ?? 100));
  await page.click('#start');
  await page.waitForFunction(() => document.querySelector('#shape-churn .count').textContent);
  assert.ok((await tail('dlmalloc')) < 100);
  assert.ok((await tail('ashlar')) >= 0);
  await page.click('#start');
  assert.equal(await page.textContent('#start'), 'Start race');
  const stopped = await tail('ashlar');
  await page.waitForTimeout(200);
  assert.equal(await tail('ashlar'), stopped);
  assert.ok(await page.isHidden('#result'));
});

// Would catch: a page wider than a phone, or a control that the keyboard can't reach.
test('a phone and a keyboard are enough', async (t) => {
  const { page } = await open(t, { viewport: { width: 360, height: 740 } });
  const focused = () =>
    page.evaluate(() => document.activeElement.id || document.activeElement.value);
  const stops = [];
  for (let i = 0; i < 6; i += 1) {
    await page.keyboard.press('Tab');
    stops.push(await focused());
  }
  assert.deepEqual(stops, ['effort', 'start', 'churn', 'strings', 'tree', 'mixed']);
  // All but Tree off; then Enter starts the race.
  for (const shape of ['mixed', 'strings', 'churn']) {
    await page.focus(`input[value=${shape}]`);
    await page.keyboard.press('Space');
  }
  await page.keyboard.press('Enter');
  await page.waitForSelector('body[data-state=done]', { timeout: 40000 });
  assert.equal(await page.locator('#table tr[data-arm]').count(), 4);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
  // With the longest verdict, which a quiet machine doesn't give.
  const excess = await page.$eval('.scroll', (box) => {
    for (const cell of box.querySelectorAll('td:nth-child(3)')) cell.textContent = 'cannot resolve';
    return box.scrollWidth - box.clientWidth;
  });
  assert.ok(excess <= 0, `the table is ${excess} px too wide`);
});

// Would catch: a page that waits for ever, or shows nothing, when something doesn't load; a race
// that goes on without one of its allocators.
test('what does not load is one clear line', async (t) => {
  const lines = {
    'emmalloc.wasm': /^emmalloc\.wasm did not load: it is not a WebAssembly module/,
    'ashlar.wasm': /^ashlar\.wasm did not load \(404\)\.$/,
    'worker.js': /^The race could not run: worker\.js did not load\.$/,
    'chart.umd.min.js': /^The race cannot run.*chart\.umd\.min\.js did not load\.$/,
    'page.js': /^The page did not start/,
  };
  for (const [file, line] of Object.entries(lines)) {
    const response = file === 'emmalloc.wasm' ? { body: 'garbage' } : { status: 404 };
    const prepare = (page) => page.route(`**/${file}`, (route) => route.fulfill(response));
    const { page } = await open(t, { prepare });
    if (await page.evaluate(() => document.body.dataset.state === 'ready')) await race(page);
    await page.waitForSelector('#error', { state: 'visible' });
    assert.match(await page.textContent('#error'), line);
    assert.ok(await page.isHidden('#result'));
  }
});

// Would catch: a page that throws where it should say what the browser lacks.
test('a browser without WebAssembly or Worker is told so', async (t) => {
  for (const name of ['WebAssembly', 'Worker']) {
    const prepare = (page) => page.addInitScript((lost) => delete globalThis[lost], name);
    const { page, complaints } = await open(t, { prepare });
    assert.match(await page.textContent('#error'), new RegExp(`it has no ${name}\\.$`));
    assert.deepEqual(complaints, []);
  }
});

// An i32.const, as it stands in a module: signed LEB128.
function constant(value) {
  const bytes = [0x41];
  for (let rest = value | 0, more = true; more; rest >>= 7) {
    more = rest < -64 || rest > 63;
    bytes.push((rest & 0x7f) | (more ? 0x80 : 0));
  }
  return Buffer.from(bytes);
}

// Would catch: a checksum that nobody compares. One arm's program starts from another seed.
test('allocators that differ end the race', async (t) => {
  const body = fs.readFileSync(path.join(folder, 'emmalloc.wasm'));
  const seed = constant(2463534242);
  assert.ok(body.includes(seed), 'the seed of shapes.c is not in the module');
  for (let at = body.indexOf(seed); at >= 0; at = body.indexOf(seed)) body[at + 1] ^= 1;
  const prepare = (page) => page.route('**/emmalloc.wasm', (route) => route.fulfill({ body }));
  const { page } = await open(t, { prepare });
  assert.equal(await race(page), 'failed');
  assert.match(await page.textContent('#error'), /^The checksums of dlmalloc and emmalloc differ/);
});

const racer = (arm, ...nsPerOperation) =>
  ({ arm, nsPerOperation, heapBytes: 1e6, livePeakBytes: 1e6 });

// Would catch: a winner called where the two dlmallocs lie further apart; ratios upside down.
test('verdicts respect the noise', () => {
  const verdictsOf = (again, clockShare = 0) => {
    const racers = [
      racer('dlmalloc', 100, 100), racer('emmalloc', 150, 150), racer('ashlar', 95, 95),
      racer('again', again, again),
    ];
    const judged = judge('churn', racers, clockShare);
    return [...judged.rows.map(({ verdict }) => verdict), summary([judged])[0]];
  };
  const fine = verdictsOf(101);
  assert.deepEqual(fine.slice(1, 3), ['slower', 'faster']);
  assert.equal(fine.at(-1), 'Ashlar against dlmalloc: faster on Churn.');
  for (const noisy of [verdictsOf(110), verdictsOf(91), verdictsOf(100, 0.06)]) {
    assert.deepEqual(noisy.slice(1, 3), ['slower', 'cannot resolve']);
    assert.equal(noisy.at(-1), 'Ashlar against dlmalloc: cannot resolve a difference on Churn.');
  }
});

// Sends a path as it stands: fetch would tidy it up first.
const request = (target, method = 'GET') => new Promise((resolve, reject) => {
  const { hostname: host, port } = new URL(server.url);
  const sent = http.request({ host, port, path: target, method }, (response) => {
    response.resume();
    response.on('end', () => resolve({ status: response.statusCode, headers: response.headers }));
  });
  sent.on('error', reject).end();
});

// Would catch: a server that hands out files from elsewhere, or a type that browsers refuse.
test('the server serves the page and nothing else', async () => {
  const types = {
    '/': 'text/html',
    '/page.js': 'text/javascript',
    '/ashlar.wasm': 'application/wasm',
  };
  for (const [target, type] of Object.entries(types)) {
    const { status, headers } = await request(target);
    assert.equal(status, 200, target);
    assert.ok(headers['content-type'].startsWith(type), target);
    assert.equal(headers['cross-origin-embedder-policy'], 'require-corp');
  }
  const strangers = ['/../package.json', '/..%2fpackage.json', '/%2e%2e/emscripten/build.ninja',
    '//etc/hostname', '/./page.js', '/none.js', '/%'];
  for (const target of strangers) assert.equal((await request(target)).status, 404, target);
  assert.equal((await request('/', 'POST')).status, 405);
});

const bench = (...args) =>
  run(process.execPath, [path.join(root, 'bench/browser.mjs'), ...args]);

// Would catch: a stack trace, or a server on a port that nobody asked for, where a word is wrong.
test('wrong arguments and a taken port are one clear line', async () => {
  const { port } = new URL(server.url);
  const cases = [
    [['--prot', '1'], /^bench: Unknown option '--prot'.*\n$/],
    [['--port', 'web'], /^bench: --port takes a number from 0 to 65535, not 'web'\n$/],
    [['--port', '70000'], /^bench: --port takes a number from 0 to 65535, not '70000'\n$/],
    [['fast'], /^bench: Unexpected argument 'fast'.*\n$/],
    [['--port', port], /^bench: port \d+ is in use: choose another with --port\n$/],
  ];
  for (const [args, line] of cases) {
    const { status, stdout, stderr } = await bench(...args);
    assert.equal(status, 1, stdout);
    assert.match(stderr, line);
  }
});
