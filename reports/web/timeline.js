// The timeline of a step: a lane for each stream, predicted above measured, drawn in a uPlot frame.
//
// Cost of a draw: binary search to the first visible span of a lane; spans of a pixel and more are rectangles; in a
// pixel that shorter ones share, one mark as strong as the lane is busy there, and a binary search to what follows it.
// So a draw costs as many steps as there are pixels, not spans.

import uPlot from 'uplot';
import {axisSeconds, bytes, count, rate, seconds} from './format.js';
import {firstAbove, until} from './data.js';
import {axisOf, colour, font} from './theme.js';

const laneHeight = 22;
const labelWidth = 138;
export const streams = ['compute', 'to device', 'to host', 'collectives', 'host'];

/// Lanes in the order of the page.
export function rowsOf(predicted, measured) {
  const rows = [];
  for (const stream of streams) {
    for (const [source, timeline] of [['predicted', predicted], ['measured', measured]]) {
      if (!timeline) continue;
      const lanes = timeline.lanes.filter((lane) => lane.stream === stream);
      for (const lane of lanes) {
        const name = lanes.length > 1 ? `${stream} ${lane.lane + 1}` : stream;
        rows.push({source, lane, name, timeline, both: Boolean(predicted && measured)});
      }
    }
  }
  return rows;
}

/// Ends of the phases, in order of appearance.
export function phaseEnds(timeline) {
  const ends = new Array(timeline.phases.length).fill(0);
  for (const lane of timeline.lanes) {
    for (let i = 0; i < lane.count; i++) {
      const phase = lane.phase[i];
      if (lane.end[i] > ends[phase]) ends[phase] = lane.end[i];
    }
  }
  return ends;
}

export class Timeline {
  constructor(root, view, width) {
    this.view = view;
    this.rows = rowsOf(view.predicted, view.measured);
    this.at = {row: 0, index: -1};
    this.read = view.root.querySelector('.read');
    const main = view.predicted || view.measured;
    const ends = phaseEnds(main);
    this.phases = main.phases.map((name, i) => ({name, end: ends[i]}));
    this.partners = new Map();
    this.plot = new uPlot(this.options(width), [[0, view.end], [null, null]], root);
    this.plot.over.addEventListener('click', () => this.pick(this.hovered));
    root.onkeydown = (event) => this.key(event);
  }

  options(width) {
    const n = Math.max(this.rows.length, 1);
    return {
      width,
      height: n * laneHeight + 54,
      legend: {show: false},
      padding: [20, 12, 0, 0],
      scales: {x: {time: false, auto: false, min: 0, max: this.view.end}, y: {range: [0, n]}},
      series: [{}, {scale: 'y'}],
      axes: [
        axisOf({values: (u, ticks) => axisSeconds(ticks), size: 30}),
        axisOf({
          size: labelWidth,
          gap: 6,
          grid: {show: false},
          ticks: {show: false},
          splits: () => this.rows.map((row, i) => n - i - 0.5),
          values: () => this.rows.map((row, i) => this.labelOf(row, i)),
        }),
      ],
      cursor: {
        y: false,
        points: {show: false},
        sync: {key: this.view.sync},
        drag: {x: true, y: false, setScale: true, dist: 4},
        bind: {dblclick: () => () => { this.view.show(0, this.view.end); return null; }},
      },
      hooks: {
        draw: [() => this.draw()],
        setScale: [(u, key) => { if (key === 'x') this.view.follow(u); }],
        setCursor: [(u) => this.hover(u.cursor)],
      },
    };
  }

  labelOf(row, i) {
    if (!row.both) return row.name;
    const first = i === 0 || this.rows[i - 1].lane.stream !== row.lane.stream;
    return first ? `${row.name}  ${row.source}` : row.source;
  }

  draw() {
    const {ctx, bbox} = this.plot;
    const pixel = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
    ctx.clip();
    this.rows.forEach((row, i) => this.drawLane(ctx, row, this.band(i)));
    this.drawPhases(ctx, pixel);
    this.drawPicked(ctx, pixel);
    ctx.restore();
  }

  band(i) {
    const {top, height} = this.plot.bbox;
    const each = height / this.rows.length;
    const inset = Math.max(1, Math.round(each * 0.09));
    return {y: Math.round(top + i * each) + inset, height: Math.round(each) - 2 * inset};
  }

  drawLane(ctx, row, {y, height}) {
    const {left, width} = this.plot.bbox;
    const {min, max} = this.plot.scales.x;
    const {lane} = row;
    const scale = width / (max - min);
    const paths = new Map();
    const texts = [];
    ctx.fillStyle = colour('lane');
    ctx.fillRect(left, y, width, height);
    for (let i = firstAbove(lane.end, min); i < lane.count && lane.start[i] < max;) {
      const x0 = left + (lane.start[i] - min) * scale;
      const x1 = left + (lane.end[i] - min) * scale;
      const family = lane.kinds[lane.kind[i]].family;
      if (x1 - x0 >= 1) {
        if (!paths.has(family)) paths.set(family, new Path2D());
        const from = Math.max(x0, left - 2);
        const to = Math.min(x1, left + width + 2);
        const gap = to - from > 4 ? 1 : 0;
        paths.get(family).rect(from, y, to - from - gap, height);
        if (to - from > 46) texts.push([from, to, i, family]);
        i += 1;
        continue;
      }
      const edge = Math.floor(x0) + 1;
      const until0 = min + (edge - 1 - left) / scale;
      const until1 = min + (edge - left) / scale;
      const part = (until(lane, lane.busy, until1) - until(lane, lane.busy, until0)) / (until1 - until0);
      ctx.globalAlpha = 0.25 + 0.75 * Math.min(1, part);
      ctx.fillStyle = colour(family);
      ctx.fillRect(edge - 1, y, 1, height);
      i = Math.max(i + 1, firstAbove(lane.end, until1, i));
    }
    ctx.globalAlpha = row.source === 'measured' ? 0.82 : 1;
    for (const [family, path] of paths) {
      ctx.fillStyle = colour(family);
      ctx.fill(path);
    }
    ctx.globalAlpha = 1;
    ctx.font = font(10.5 * devicePixelRatio);
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    for (const [from, to, i, family] of texts) {
      ctx.fillStyle = colour(family + '-ink');
      this.fitText(ctx, lane.kinds[lane.kind[i]].name, Math.max(from, left) + 5, to - 6, y + height / 2 + 0.5);
    }
  }

  fitText(ctx, text, from, to, y) {
    if (ctx.measureText(text).width <= to - from) ctx.fillText(text, from, y);
  }

  drawPhases(ctx, pixel) {
    const {top, height} = this.plot.bbox;
    ctx.font = font(10.5 * pixel, 600);
    ctx.textBaseline = 'alphabetic';
    ctx.textAlign = 'left';
    let begin = 0;
    for (const {name, end} of this.phases) {
      const x0 = this.plot.valToPos(begin, 'x', true);
      const x1 = this.plot.valToPos(end, 'x', true);
      ctx.fillStyle = colour('line');
      ctx.fillRect(Math.round(x1), top - 14 * pixel, pixel, height + 14 * pixel);
      ctx.fillStyle = colour('muted');
      this.fitText(ctx, name, Math.max(x0, this.plot.bbox.left) + 4 * pixel, x1 - 2 * pixel, top - 5 * pixel);
      begin = Math.max(begin, end);
    }
  }

  drawPicked(ctx, pixel) {
    const {row, index} = this.at;
    if (index < 0 || !this.rows[row]) return;
    const {lane} = this.rows[row];
    const x0 = this.plot.valToPos(lane.start[index], 'x', true);
    const x1 = this.plot.valToPos(lane.end[index], 'x', true);
    const {y, height} = this.band(row);
    ctx.strokeStyle = colour('ink');
    ctx.lineWidth = 2 * pixel;
    ctx.strokeRect(x0 - pixel, y - pixel, Math.max(x1 - x0, pixel) + 2 * pixel, height + 2 * pixel);
  }

  /// The span below the pointer, or the nearest within two pixels.
  hover({left, top}) {
    this.hovered = null;
    if (left === undefined || left < 0) return;
    const row = Math.floor((top / this.plot.over.clientHeight) * this.rows.length);
    if (!this.rows[row]) return;
    const {lane} = this.rows[row];
    const at = this.plot.posToVal(left, 'x');
    const near = 2 * (this.plot.scales.x.max - this.plot.scales.x.min) / this.plot.over.clientWidth;
    const i = firstAbove(lane.end, at - near);
    if (i < lane.count && lane.start[i] <= at + near) this.hovered = {row, index: i};
    this.tell(this.hovered || this.at);
  }

  pick(place) {
    if (!place) return;
    this.at = place;
    this.tell(place);
    this.plot.redraw(false);
  }

  /// The same op in the other timeline: [length in seconds], or null.
  partnerOf({source, lane}, i) {
    const other = source === 'predicted' ? this.view.measured : this.view.predicted;
    if (!other || lane.ops[i] > 1) return null;
    if (!this.partners.has(other)) {
      const lengths = new Map();
      for (const l of other.lanes)
        for (let k = 0; k < l.count; k++) if (l.ops[k] === 1) lengths.set(l.op[k], l.end[k] - l.start[k]);
      this.partners.set(other, lengths);
    }
    const length = this.partners.get(other).get(lane.op[i]);
    return length === undefined ? null : length;
  }

  tell({row, index}) {
    if (index < 0 || !this.rows[row]) {
      this.read.textContent = '';
      return;
    }
    const {lane, source, timeline, name} = this.rows[row];
    const length = lane.end[index] - lane.start[index];
    const parts = [`${name}, ${source}: ${lane.kinds[lane.kind[index]].name}`, timeline.phases[lane.phase[index]]];
    if (lane.ops[index] > 1) parts.push(`${count(lane.ops[index])} operations drawn as one`);
    if (lane.chunk[index] > 0) parts.push(`chunk ${lane.chunk[index] - 1}`);
    if (lane.bytes[index] > 0) {
      parts.push(bytes(lane.bytes[index]) + (length > 0 ? ` at ${rate(lane.bytes[index] / length)}` : ''));
    }
    parts.push(`from ${seconds(lane.start[index])}`, `lasts ${seconds(length)}`);
    const partner = this.partnerOf(this.rows[row], index);
    if (partner !== null) {
      const [p, m] = source === 'predicted' ? [length, partner] : [partner, length];
      const off = p > 0 ? ` (${m >= p ? '+' : ''}${((m / p - 1) * 100).toFixed(1)} %)` : '';
      parts.push(source === 'predicted' ? `measured ${seconds(m)}${off}` : `predicted ${seconds(p)}${off}`);
    }
    this.read.textContent = parts.join(', ');
  }

  /// W S zoom, A D or arrows move, up and down choose a lane, comma and full stop an operation, 0 shows all.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.rows.length === 0) return;
    const {min, max} = this.plot.scales.x;
    const span = max - min;
    const {left} = this.plot.cursor;
    const middle = left > 0 ? this.plot.posToVal(left, 'x') : (min + max) / 2;
    const zoom = (by) => this.view.show(middle - (middle - min) * by, middle + (max - middle) * by);
    const move = (by) => this.view.show(min + span * by, max + span * by);
    const actions = {
      w: () => zoom(0.6), '+': () => zoom(0.6), s: () => zoom(1 / 0.6), '-': () => zoom(1 / 0.6),
      a: () => move(-0.2), arrowleft: () => move(-0.2), d: () => move(0.2), arrowright: () => move(0.2),
      0: () => this.view.show(0, this.view.end), home: () => this.view.show(0, this.view.end),
      arrowup: () => this.chooseRow(-1), arrowdown: () => this.chooseRow(1),
      ',': () => this.chooseSpan(-1), '.': () => this.chooseSpan(1),
    };
    const action = actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  }

  chooseRow(by) {
    const row = Math.min(Math.max(this.at.row + by, 0), this.rows.length - 1);
    const {min, max} = this.plot.scales.x;
    const {lane} = this.rows[row];
    this.pick({row, index: Math.min(firstAbove(lane.end, this.at.index < 0 ? min : (min + max) / 2), lane.count - 1)});
  }

  chooseSpan(by) {
    const {lane} = this.rows[this.at.row];
    const index = Math.min(Math.max(this.at.index + by, 0), lane.count - 1);
    this.pick({row: this.at.row, index});
    const {min, max} = this.plot.scales.x;
    const span = max - min;
    if (lane.start[index] < min || lane.end[index] > max) {
      const centre = (lane.start[index] + lane.end[index]) / 2;
      this.view.show(centre - span / 2, centre + span / 2);
    }
  }
}
