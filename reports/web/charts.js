// What runs along with the timeline: link use, device memory, host memory, each a uPlot over the same stretch of time.

import uPlot from 'uplot';
import {axisBytes, axisRate, axisSeconds, bytes, rate} from './format.js';
import {until} from './data.js';
import {axisOf, colour, font} from './theme.js';

const labelWidth = 138;
const stepped = uPlot.paths.stepped({align: 1});

function frame(view, width, height, series, values, y) {
  return {
    width,
    height,
    padding: [10, 12, 0, 0],
    legend: {show: true, live: true},
    scales: {x: {time: false, auto: false, min: view.min, max: view.max}, y},
    series: [{label: 'at', value: (u, v) => (v === null || v === undefined ? '' : axisSeconds([v])[0])}, ...series],
    axes: [
      axisOf({values: (u, ticks) => axisSeconds(ticks), size: 30}),
      axisOf({values: (u, ticks) => values(ticks), size: labelWidth, gap: 6}),
    ],
    cursor: {
      y: false,
      sync: {key: view.sync},
      drag: {x: true, y: false, setScale: true, dist: 4},
      points: {size: 6},
      bind: {dblclick: () => () => { view.show(0, view.end); return null; }},
    },
    hooks: {setScale: [(u, key) => { if (key === 'x') view.follow(u); }]},
  };
}

/// A series; what was measured is drawn as a thin dashed line over what was predicted.
function seriesOf(label, family, measured, format, fill) {
  return {
    label: measured ? `${label}, measured` : label,
    stroke: () => colour(measured ? family + '-strong' : family),
    width: measured || !fill ? 1.5 : 2,
    dash: measured ? [5, 3] : undefined,
    fill: fill && !measured ? () => colour(family) + '2a' : undefined,
    paths: stepped,
    points: {show: false},
    value: (u, v) => (v === null || v === undefined ? '' : format(v)),
  };
}

/// Dashed lines across the plot, with names at the right; those out of range are left out.
function drawLines(u, lines) {
  const {ctx, bbox} = u;
  const pixel = devicePixelRatio;
  ctx.save();
  ctx.font = font(10.5 * pixel, 600);
  ctx.textAlign = 'right';
  ctx.textBaseline = 'bottom';
  for (const {at, name} of lines) {
    if (at < u.scales.y.min || at > u.scales.y.max) continue;
    const y = Math.round(u.valToPos(at, 'y', true));
    ctx.strokeStyle = ctx.fillStyle = colour('limit');
    ctx.lineWidth = 1.5 * pixel;
    ctx.setLineDash([7 * pixel, 4 * pixel]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.fillText(name, bbox.left + bbox.width - 4 * pixel, y - 2 * pixel);
  }
  ctx.restore();
}

const linkStreams = [['to device', 'copy-in'], ['to host', 'copy-out'], ['collectives', 'collective']];

/// Bytes a second on each link, averaged over as many bins as the plot has room for.
export function linkChart(root, view, width) {
  const shown = [];
  for (const [stream, family] of linkStreams)
    for (const [measured, timeline] of [[false, view.predicted], [true, view.measured]]) {
      const lanes = timeline ? timeline.lanes.filter((lane) => lane.stream === stream) : [];
      if (lanes.length > 0) shown.push({stream, family, measured, lanes});
    }
  if (shown.length === 0) return null;
  const data = () => {
    const bins = 300;
    const wide = (view.max - view.min) / bins;
    const at = Array.from({length: bins + 1}, (_, i) => view.min + i * wide);
    return [at, ...shown.map(({lanes}) => {
      const moved = at.map((x) => lanes.reduce((sum, lane) => sum + until(lane, lane.moved, x), 0));
      return at.map((x, i) => (i < bins ? (moved[i + 1] - moved[i]) / wide : (moved[bins] - moved[bins - 1]) / wide));
    })];
  };
  const lines = [];
  const has = (stream) => shown.some((s) => s.stream === stream);
  const {link_in: linkIn, link_out: linkOut} = view.job;
  if (linkIn && has('to device')) lines.push({at: linkIn, name: `host link, in alone, ${rate(linkIn)}`});
  if (linkOut && has('to host')) lines.push({at: linkOut, name: `host link, out alone, ${rate(linkOut)}`});
  if (lines.length === 2 && Math.abs(lines[0].at - lines[1].at) < 0.06 * lines[0].at) {
    lines.splice(0, 2, {at: lines[0].at, name: `host link, one way alone, ${rate(lines[0].at)}`});
  }
  const highest = (values) => Math.max(...values.slice(1).map((v) => v.reduce((a, b) => Math.max(a, b), 0)), 1);
  const y = {range: (u) => [0, 1.12 * Math.max(highest(u.data), lines.length ? lines[0].at : 0)]};
  const options = frame(view, width, 190,
    shown.map(({stream, family, measured}) => seriesOf(stream, family, measured, rate, true)), axisRate, y);
  options.hooks.draw = [(u) => drawLines(u, lines)];
  const plot = new uPlot(options, data(), root);
  return {plot, moved: () => plot.setData(data(), false)};
}

/// Levels of several sources over their common times: each keeps its last.
function together(levels) {
  const at = [...new Set(levels.flatMap(({at: times}) => [...times]))].sort((a, b) => a - b);
  return [at, ...levels.map((level) => {
    let i = -1;
    return at.map((x) => {
      while (i + 1 < level.at.length && level.at[i + 1] <= x) i += 1;
      return i < 0 ? null : level.bytes[i];
    });
  })];
}

function memoryChart(root, view, width, height, wanted, lines) {
  const shown = wanted.filter(({level}) => level && level.at.length > 0);
  if (shown.length === 0) return null;
  const data = together(shown.map(({level}) => level));
  const highest = Math.max(...data.slice(1).map((v) => v.reduce((a, b) => Math.max(a, b || 0), 0)), 1);
  const near = lines.filter(({at}) => at < 4 * highest);
  const top = 1.1 * Math.max(highest, ...near.map(({at}) => at));
  const options = frame(view, width, height,
    shown.map(({name, family, measured, bare}) => seriesOf(name, family, measured, bytes, !bare)), axisBytes,
    {range: [0, top]});
  options.axes[1].splits = () => ticksOfBytes(top);
  options.hooks.draw = [(u) => drawLines(u, near)];
  return {plot: new uPlot(options, data, root), moved: () => {}};
}

/// At most six ticks, at powers of two.
function ticksOfBytes(top) {
  let step = 1024;
  while (top / step > 6) step *= 2;
  return Array.from({length: Math.floor(top / step) + 1}, (_, i) => i * step);
}

const byPhase = (timeline) => (timeline && timeline.byPhase ? ' (peak of each phase)' : '');

export function deviceChart(root, view, width) {
  const {predicted: p, measured: m, curve, job} = view;
  return memoryChart(root, view, width, 220, [
    {name: (p ? `rank ${p.rank}` : 'alive') + byPhase(p), family: 'compute', measured: false, level: p && p.device},
    {name: (m ? `rank ${m.rank}` : 'alive') + byPhase(m), family: 'compute', measured: true, level: m && m.device},
    {name: curve ? `rank ${curve.rank}, tensor by tensor` : '', family: 'collective', measured: false, level: curve,
     bare: true},
  ], job.device_budget_bytes > 0
    ? [{at: job.device_budget_bytes, name: `budget ${bytes(job.device_budget_bytes)}`}] : []);
}

export function hostChart(root, view, width) {
  const {predicted: p, measured: m, job} = view;
  const share = job.host_budget_bytes / Math.max(job.gpus_per_host, 1);
  const some = (level) => (level && level.bytes.some((b) => b > 0) ? level : null);
  return memoryChart(root, view, width, 160, [
    {name: 'pinned', family: 'copy-in', measured: false, level: some(p && p.pinned)},
    {name: 'pinned', family: 'copy-in', measured: true, level: some(m && m.pinned)},
    {name: 'pageable', family: 'copy-out', measured: false, level: some(p && p.pageable)},
    {name: 'pageable', family: 'copy-out', measured: true, level: some(m && m.pageable)},
  ], share > 0 ? [{at: share, name: job.gpus_per_host > 1
    ? `host budget / ${job.gpus_per_host} ranks, ${bytes(share)}` : `host budget ${bytes(share)}`}] : []);
}
