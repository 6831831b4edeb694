// The page: controls, lanes that move while the worker races, and the result.
import { arms, efforts, shapes } from './plan.js';
import { armName, judge, shapeName, summary, toCsv } from './figures.js';
import { drawMemory, drawTimes } from './charts.js';

const at = (id) => document.getElementById(id);
let worker = null;
let judged = [];

function element(tag, properties = {}, children = []) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function setState(state) {
  document.body.dataset.state = state;
  at('start').textContent = state === 'racing' ? 'Stop' : 'Start race';
  at('effort').disabled = state === 'racing';
  for (const box of document.querySelectorAll('.shape input')) box.disabled = state === 'racing';
  if (state !== 'racing') at('progress').textContent = '';
}

// ---- before the race

function laneOf(arm) {
  const lane = element('div', { className: 'lane' }, [
    element('span', { textContent: arm.name }),
    element('span', { className: 'count' }),
    element('div', { className: 'track' }, [element('div', { className: 'bar' })]),
  ]);
  lane.dataset.arm = arm.id;
  return lane;
}

function cardOf(shape) {
  const box = element('input', { type: 'checkbox', checked: true, value: shape.id });
  // Part of the form, so that Enter starts the race from here too.
  box.setAttribute('form', 'controls');
  return element('div', { className: 'shape', id: `shape-${shape.id}` }, [
    element('label', {}, [box, shape.name]),
    element('p', { textContent: shape.text }),
    ...arms.map(laneOf),
  ]);
}

function facts(timerMs) {
  const isolated = globalThis.crossOriginIsolated ? 'yes' : 'no, so the clock is coarse';
  const clock = timerMs === undefined ? 'seen in a race' : `${Number(timerMs.toFixed(4))} ms`;
  return [
    ['Built', at('built').textContent],
    ['Browser', navigator.userAgent],
    ['Cores', navigator.hardwareConcurrency ?? 'not told'],
    ['Cross-origin isolated', isolated],
    ['Clock step', clock],
  ];
}

function showFacts(list) {
  const rows = list.map(([name, value]) =>
    element('div', {}, [
      element('dt', { textContent: name }),
      element('dd', { textContent: value, id: name === 'Built' ? 'built' : '' }),
    ]),
  );
  at('facts').replaceChildren(...rows);
}

// ---- while it races

function fail(line) {
  stop();
  setState('failed');
  at('error').textContent = line;
  at('error').hidden = false;
}

function stop() {
  worker?.terminate();
  worker = null;
  document.querySelector('[data-racing]')?.removeAttribute('data-racing');
}

function clear() {
  judged = [];
  for (const id of ['error', 'result']) at(id).hidden = true;
  at('summary').replaceChildren();
  for (const bar of document.querySelectorAll('.bar')) bar.style.clipPath = '';
  for (const count of document.querySelectorAll('.count')) count.textContent = '';
}

// The front runner's bar is as long as the race has gone; the others' are shorter in proportion.
function moveLanes({ shape, share, operations }) {
  const card = at(`shape-${shape}`);
  if (!('racing' in card.dataset)) {
    document.querySelector('[data-racing]')?.removeAttribute('data-racing');
    card.dataset.racing = '';
  }
  const warm = share > 0;
  at('progress').textContent = `${shapeName(shape)}: ${warm ? 'racing' : 'warming up'}`;
  if (!warm) return;
  const most = Math.max(...operations);
  card.querySelectorAll('.lane').forEach((lane, index) => {
    const length = (share * operations[index]) / most;
    lane.querySelector('.bar').style.clipPath = `inset(0 ${100 - 100 * length}% 0 0)`;
    const millions = (operations[index] / 1e6).toFixed(1);
    lane.querySelector('.count').textContent = `${millions} M operations`;
  });
}

function start() {
  const chosen = new Set([...document.querySelectorAll('.shape :checked')].map((box) => box.value));
  const effort = efforts.find(({ id }) => id === at('effort').value);
  clear();
  if (chosen.size === 0) {
    fail('Choose at least one shape.');
    return;
  }
  setState('racing');
  worker = new Worker('worker.js');
  const finished = [];
  worker.onerror = (event) => {
    event.preventDefault();
    fail(`The race could not run: ${event.message || 'worker.js did not load'}.`);
  };
  worker.onmessage = ({ data }) => {
    if (data.type === 'round') moveLanes(data);
    if (data.type === 'shape') finished.push(data);
    if (data.type === 'failed') fail(data.line);
    if (data.type === 'done') finish(finished, data.timerMs, effort);
  };
  worker.postMessage({ arms, shapes: shapes.filter(({ id }) => chosen.has(id)), effort });
}

// ---- after it

const percent = (share) => `${(share * 100).toFixed(1)} %`;

function rowOf({ arm, ratio, verdict, heapRatio }) {
  const name = element('td', {}, [element('span', { className: 'key' }), armName(arm)]);
  const cells = [`${ratio.toFixed(2)}×`, verdict, `${heapRatio.toFixed(2)}×`];
  const rest = cells.map((textContent) => element('td', { textContent }));
  const made = element('tr', {}, [name, ...rest]);
  made.dataset.arm = arm;
  return made;
}

function groupOf({ shape, noise, rows }) {
  const words = element('span', { textContent: `noise ${percent(noise)}` });
  const heading = element('th', { scope: 'rowgroup', colSpan: 4 }, [shapeName(shape), words]);
  const made = element('tbody', {}, [element('tr', {}, [heading]), ...rows.map(rowOf)]);
  made.dataset.shape = shape;
  return made;
}

function showTable() {
  for (const old of at('table').querySelectorAll('tbody')) old.remove();
  at('table').append(...judged.map(groupOf));
  const sizes = judged[0].rows
    .filter(({ arm }) => arm !== 'again')
    .map(({ arm, moduleBytes }) => `${armName(arm)} ${moduleBytes.toLocaleString('en')} B`);
  at('modules').textContent = `Modules, the same program included: ${sizes.join(', ')}.`;
  at('agreement').textContent = 'All checksums agree: every block held what was written to it.';
}

function drawCharts() {
  if (judged.length === 0) return;
  drawTimes(at('times'), judged);
  drawMemory(at('memory'), judged);
}

function finish(finished, timerMs, effort) {
  stop();
  judged = finished.map(({ shape, racers }) => judge(shape, racers, timerMs / effort.sliceMs));
  const { rounds, heapCalls } = effort;
  const raced = `time: best of ${rounds} rounds; heap: after ${heapCalls} calls of each shape`;
  const list = [...facts(timerMs), ['Race', raced]];
  showFacts(list);
  at('csv').value = toCsv(judged, list);
  at('copied').textContent = '';
  showTable();
  at('summary').append(...summary(judged).map((textContent) => element('p', { textContent })));
  at('result').hidden = false;
  drawCharts();
  setState('done');
  at('summary').scrollIntoView({ block: 'nearest' });
}

async function copy() {
  try {
    await navigator.clipboard.writeText(at('csv').value);
    at('copied').textContent = 'Copied.';
  } catch {
    at('csv').closest('details').open = true;
    at('csv').select();
    at('copied').textContent = 'The browser refused; it is selected below.';
  }
}

// ---- the page starts

const missing = ['WebAssembly', 'Worker', 'Chart'].filter((name) => !(name in globalThis));

function prepare() {
  at('shapes').append(...shapes.map(cardOf));
  at('effort').append(...efforts.map(({ id, name }) => new Option(name, id)));
  const wanted = new URLSearchParams(location.search).get('race');
  at('effort').value = efforts.some(({ id }) => id === wanted) ? wanted : 'full';
  showFacts(facts());
  at('error').hidden = true;
  setState('ready');
  at('copy').addEventListener('click', copy);
  at('controls').addEventListener('submit', (event) => {
    event.preventDefault();
    if (worker) {
      stop();
      setState('ready');
    } else {
      start();
    }
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawCharts);
}

if (missing.length > 0) {
  const what = missing[0] === 'Chart' ? 'chart.umd.min.js did not load' : `it has no ${missing[0]}`;
  at('start').disabled = true;
  fail(`The race cannot run in this browser: ${what}.`);
} else {
  prepare();
}
