// The two charts of a result, drawn by Chart.js (the global `Chart`). Colours are style.css's.
import { arms } from './plan.js';
import { shapeName } from './figures.js';

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Stripes, so that `again` differs from dlmalloc for those who can't go by shade.
function striped(color) {
  const tile = Object.assign(document.createElement('canvas'), { width: 8, height: 8 });
  const pen = tile.getContext('2d');
  pen.strokeStyle = color;
  pen.lineWidth = 2.5;
  for (const x of [-8, 0, 8]) {
    pen.moveTo(x, 8);
    pen.lineTo(x + 8, 0);
  }
  pen.stroke();
  return pen.createPattern(tile, 'repeat');
}

const fillOf = ({ id }) => (id === 'again' ? striped(style('--dlmalloc')) : style(`--${id}`));
const edgeOf = ({ id }) => style(id === 'again' ? '--dlmalloc' : `--${id}`);

// Beneath the bars: the line at 1, and around it what noise hides.
const measure = {
  id: 'measure',
  beforeDatasetsDraw({ ctx, chartArea, scales }, _, { noises }) {
    const at = (value) => scales.x.getPixelForValue(value);
    const height = chartArea.height / (noises.length || 1);
    ctx.save();
    ctx.fillStyle = style('--noise');
    noises.forEach((noise, index) => {
      const left = at(1 / (1 + noise));
      ctx.fillRect(left, chartArea.top + index * height, at(1 + noise) - left, height);
    });
    ctx.restore();
  },
  afterDatasetsDraw({ ctx, chartArea, scales }) {
    const x = scales.x.getPixelForValue(1);
    ctx.save();
    ctx.strokeStyle = style('--text');
    ctx.setLineDash([5, 4]);
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(x, chartArea.top);
    ctx.lineTo(x, chartArea.bottom);
    ctx.stroke();
    ctx.restore();
  },
};

// The figure at the end of each bar.
const values = {
  id: 'values',
  afterDatasetsDraw(chart) {
    const { ctx } = chart;
    ctx.save();
    ctx.font = `600 11px ${Chart.defaults.font.family}`;
    ctx.textBaseline = 'middle';
    chart.data.datasets.forEach(({ data }, index) => {
      chart.getDatasetMeta(index).data.forEach((bar, at) => {
        const words = data[at].toFixed(2);
        const width = ctx.measureText(words).width;
        // On a plate, for the line at 1 may run behind it.
        ctx.fillStyle = style('--surface');
        ctx.fillRect(bar.x + 3, bar.y - 6, width + 4, 12);
        ctx.fillStyle = style('--text');
        ctx.fillText(words, bar.x + 5, bar.y + 1);
      });
    });
    ctx.restore();
  },
};

function optionsFor({ title, tooltip, noises, most }) {
  const text = style('--text');
  const grid = { color: style('--line') };
  const ticks = { color: text };
  return {
    indexAxis: 'y',
    maintainAspectRatio: false,
    animation: false,
    scales: {
      x: {
        beginAtZero: true,
        // Room for the longest bar's figure.
        max: Math.ceil(most * 1.12 * 5) / 5,
        grid,
        ticks: { ...ticks, callback: (value) => `${Number(value.toFixed(2))}×` },
        title: { display: true, text: title, color: text },
      },
      y: { grid: { display: false }, ticks: { ...ticks, font: { size: 13, weight: 600 } } },
    },
    plugins: {
      legend: { labels: { color: text, boxWidth: 14, boxHeight: 12 } },
      tooltip: { callbacks: { label: tooltip } },
      measure: { noises },
    },
  };
}

// One group of bars for each shape, one bar for each of `shown`.
function draw(canvas, judged, shown, cell, words) {
  Chart.defaults.font.family = 'system-ui, sans-serif';
  Chart.getChart(canvas)?.destroy();
  const rowsOf = (arm) => judged.map(({ rows }) => rows.find((row) => row.arm === arm.id));
  const datasets = shown.map((arm) => ({
    label: arm.name,
    data: rowsOf(arm).map(cell),
    rows: rowsOf(arm),
    backgroundColor: fillOf(arm),
    borderColor: edgeOf(arm),
    borderWidth: 1,
    categoryPercentage: 0.8,
    barPercentage: 0.95,
  }));
  const most = Math.max(1, ...datasets.flatMap(({ data }) => data));
  // Both charts are as high as the one with all arms needs.
  const perGroup = arms.length * 18 + 16;
  canvas.parentElement.style.height = `${judged.length * perGroup + 120}px`;
  const labels = judged.map(({ shape }) => shapeName(shape));
  const options = optionsFor({ ...words, most });
  const plugins = [measure, values];
  new Chart(canvas, { type: 'bar', data: { labels, datasets }, options, plugins });
}

export function drawTimes(canvas, judged) {
  draw(canvas, judged, arms, ({ ratio }) => ratio, {
    title: ['time ÷ dlmalloc’s time', '(shorter is faster)'],
    noises: judged.map(({ noise }) => noise),
    tooltip: ({ dataset, dataIndex }) => {
      const { ratio, operationsPerSecond } = dataset.rows[dataIndex];
      const millions = (operationsPerSecond / 1e6).toFixed(1);
      return `${dataset.label}: ${ratio.toFixed(3)}×, ${millions} million operations/s here`;
    },
  });
}

export function drawMemory(canvas, judged) {
  const shown = arms.filter(({ id }) => id !== 'again');
  draw(canvas, judged, shown, ({ heapRatio }) => heapRatio, {
    title: ['heap ÷ bytes live at the peak', '(shorter is leaner)'],
    noises: [],
    tooltip: ({ dataset, dataIndex }) => {
      const { heapRatio, heapBytes } = dataset.rows[dataIndex];
      return `${dataset.label}: ${heapRatio.toFixed(3)}×, ${Math.round(heapBytes / 1024)} KiB`;
    },
  });
}
