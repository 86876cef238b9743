// Step time over device memory: a point for each candidate, the front as a line. Points are buttons on top of the
// plot, so that a click, Tab and Enter, and a screen reader all work as anywhere else. Policies differ in shape and in
// colour; what does not fit is hollow.

import uPlot from 'uplot';
import {axisBytes, axisSeconds, bytes, seconds} from './format.js';
import {axisOf, colour, font} from './theme.js';

/// Shapes in a square from -1 to 1.
const shapes = {
  'resident': '<circle r=".85"/>',
  'full-reload': '<rect x="-.75" y="-.75" width="1.5" height="1.5"/>',
  'chunked': '<path d="M0-.95.95.75H-.95Z"/>',
  'windowed': '<path d="M0-1 1 0 0 1-1 0Z"/>',
  'cpu-adam': '<path d="M0 .95-.95-.75H.95Z"/>',
  'pipelined': '<path d="M-.5-.87H.5L1 0 .5.87H-.5L-1 0Z"/>',
  'tidal': '<path d="M-.32-1H.32V-.32H1V.32H.32V1H-.32V.32H-1V-.32H-.32Z"/>',
};

function symbol(policy, hollow) {
  return `<svg viewBox="-1.4 -1.4 2.8 2.8" aria-hidden="true" class="symbol ${hollow ? 'hollow' : ''}" ` +
    `data-policy="${policy in shapes ? policy : 'resident'}">${shapes[policy] || shapes.resident}</svg>`;
}

function rangeOf(values, extra) {
  const least = Math.min(...values);
  const most = Math.max(...values, ...extra);
  const pad = Math.max((most - least) * 0.08, most * 0.01, 1e-9);
  return [Math.max(least - pad, least / 2), most + pad];
}

export class Pareto {
  constructor(root, job, width, select) {
    this.job = job;
    this.candidates = job.candidates.map((c, i) => ({...c, i})).filter((c) => c.need_bytes !== null);
    const xs = this.candidates.map((c) => c.need_bytes);
    const ys = this.candidates.map((c) => c.step_seconds);
    const budget = job.device_budget_bytes;
    const near = budget > 0 && budget < 2.5 * Math.max(...xs);
    this.x = rangeOf(xs, near ? [budget] : []);
    this.y = rangeOf(ys, []);
    this.log = Math.max(...ys) > 8 * Math.min(...ys);
    const front = this.candidates.filter((c) => c.front).sort((a, b) => a.need_bytes - b.need_bytes);
    // A step down to each point: what a budget between two of them still allows.
    this.plot = new uPlot(this.options(width),
      [front.map((c) => c.need_bytes), front.map((c) => c.step_seconds)], root);
    this.buttons = this.candidates.map((c) => this.button(c, select));
    this.place();
    this.key(root);
  }

  options(width) {
    return {
      width,
      height: 340,
      padding: [18, 20, 0, 0],
      legend: {show: false},
      cursor: {show: false},
      scales: {
        x: {time: false, range: () => this.x},
        y: this.log ? {distr: 3, range: () => [this.y[0], this.y[1] * 1.3]} : {range: () => this.y},
      },
      series: [{}, {
        stroke: () => colour('front'),
        width: 2,
        paths: uPlot.paths.stepped({align: 1}),
        points: {show: false},
      }],
      axes: [
        axisOf({label: 'device memory that it needs at most, one GPU', labelFont: font(12), labelSize: 22, size: 32,
                values: (u, ticks) => axisBytes(ticks), splits: () => this.ticks()}),
        axisOf({label: 'step', labelFont: font(12), labelSize: 18, size: 66, values: (u, ticks) => axisSeconds(ticks)}),
      ],
      hooks: {draw: [(u) => this.drawBudget(u)], setSize: [() => this.place()]},
    };
  }

  ticks() {
    const [least, most] = this.x;
    let step = 1024 * 1024;
    while ((most - least) / step > 8) step *= 2;
    const first = Math.ceil(least / step);
    return Array.from({length: Math.floor(most / step) - first + 1}, (_, i) => (first + i) * step);
  }

  drawBudget(u) {
    const budget = this.job.device_budget_bytes;
    if (!(budget > this.x[0] && budget < this.x[1])) return;
    const {ctx, bbox} = u;
    const pixel = devicePixelRatio;
    const x = Math.round(u.valToPos(budget, 'x', true));
    ctx.save();
    ctx.fillStyle = colour('limit') + '14';
    ctx.fillRect(x, bbox.top, bbox.left + bbox.width - x, bbox.height);
    ctx.strokeStyle = ctx.fillStyle = colour('limit');
    ctx.lineWidth = 1.5 * pixel;
    ctx.setLineDash([7 * pixel, 4 * pixel]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = font(10.5 * pixel, 600);
    ctx.textAlign = 'right';
    ctx.fillText(`budget ${bytes(budget)}`, x - 5 * pixel, bbox.top + 12 * pixel);
    ctx.restore();
  }

  button(c, select) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'point' + (c.i === this.job.recommended ? ' picked' : '');
    button.innerHTML = symbol(c.policy, !c.feasible);
    const words = [c.label, `needs ${bytes(c.need_bytes)}`, `step ${seconds(c.step_seconds)}`];
    if (c.i === this.job.recommended) words.push('recommended');
    if (!c.feasible) words.push('does not fit');
    if (c.measured) words.push('with a measured timeline');
    button.setAttribute('aria-label', words.join(', '));
    button.title = words.join('\n');
    button.addEventListener('click', () => select(c.i));
    this.plot.over.append(button);
    return button;
  }

  /// Points whose centres fall together are laid side by side.
  place() {
    if (!this.buttons) return;
    const taken = [];
    this.candidates.forEach((c, i) => {
      let x = this.plot.valToPos(c.need_bytes, 'x');
      const y = this.plot.valToPos(c.step_seconds, 'y');
      while (taken.some((t) => Math.abs(t[0] - x) < 11 && Math.abs(t[1] - y) < 11)) x += 12;
      taken.push([x, y]);
      this.buttons[i].style.transform = `translate(${(x - 14).toFixed(1)}px, ${(y - 14).toFixed(1)}px)`;
    });
  }

  key(root) {
    const list = document.createElement('p');
    list.className = 'key';
    const policies = [...new Set(this.candidates.map((c) => c.policy))];
    list.innerHTML = policies.map((p) => `<span>${symbol(p, false)}${p}</span>`).join('') +
      `<span>${symbol('resident', true)}does not fit</span><span><i class="front"></i>front</span>` +
      (this.job.recommended === null ? '' : '<span><i class="ring"></i>recommended</span>');
    root.append(list);
  }

  mark(selected) {
    this.buttons.forEach((button, k) => button.setAttribute('aria-pressed', String(this.candidates[k].i === selected)));
  }
}
