// What the page's script does: copies flags, draws plots, and shows the candidate that is selected. Everything that it
// shows in words stands in the page already (reports/html*.cpp).

import {curveOf, load, timelineOf} from './data.js';
import {Pareto} from './pareto.js';
import {Timeline} from './timeline.js';
import {deviceChart, hostChart, linkChart} from './charts.js';
import {onChange} from './theme.js';

const families = [
  ['compute', 'forward and backward'], ['kernel', 'optimizer kernels'], ['copy-in', 'copies to the device'],
  ['copy-out', 'copies to the host'], ['collective', 'collectives'], ['host', 'host work'], ['waiting', 'host waits'],
];

/// The plots of one step: one stretch of time for all of them.
class StepView {
  constructor(root, job, candidate, columns, number, width) {
    this.root = root;
    this.job = job;
    this.sync = 'step-' + number;
    this.predicted = timelineOf(candidate.predicted, columns);
    this.measured = timelineOf(candidate.measured, columns);
    this.curve = curveOf(candidate.curve, columns);
    this.end = Math.max(...[this.predicted, this.measured].filter(Boolean).map((t) => t.step), 1e-9);
    this.min = 0;
    this.max = this.end;
    this.charts = [];
    this.moving = false;
    const place = (css) => {
      const element = root.querySelector('.plot.' + css);
      element.replaceChildren();
      return element;
    };
    this.timeline = new Timeline(place('timeline'), this, width);
    for (const [css, chart] of [['links', linkChart], ['device', deviceChart], ['host', hostChart]]) {
      const element = place(css);
      const made = chart(element, this, width);
      element.hidden = element.previousElementSibling.hidden = !made;
      if (made) this.charts.push(made);
    }
    this.legend();
  }

  get plots() {
    return [this.timeline.plot, ...this.charts.map((c) => c.plot)];
  }

  /// Shows [min, max] in every plot, within the step and no shorter than a tenth of a microsecond.
  show(min, max) {
    const wide = Math.min(Math.max(max - min, 1e-7), this.end);
    const from = Math.min(Math.max(min, 0), this.end - wide);
    this.min = from;
    this.max = from + wide;
    this.moving = true;
    for (const chart of this.charts) chart.moved();
    for (const plot of this.plots) plot.setScale('x', {min: this.min, max: this.max});
    queueMicrotask(() => { this.moving = false; });
  }

  /// A plot was zoomed by dragging in it.
  follow(plot) {
    const {min, max} = plot.scales.x;
    if (this.moving || !this.timeline || (min === this.min && max === this.max)) return;
    this.show(min, max);
  }

  legend() {
    const present = new Set();
    for (const timeline of [this.predicted, this.measured])
      for (const kind of timeline ? timeline.kinds : []) present.add(kind.family);
    this.root.querySelector('.legend').innerHTML = families.filter(([family]) => present.has(family))
      .map(([family, name]) => `<span><i class="sw f-${family}"></i>${name}</span>`).join('');
  }

  destroy() {
    for (const plot of this.plots) plot.destroy();
  }
}

/// uPlot colours the marks of its legend once; this follows the page.
function paintMarkers(plot) {
  plot.root.querySelectorAll('.u-legend .u-series').forEach((row, i) => {
    const {stroke, fill} = plot.series[i];
    const marker = row.querySelector('.u-marker');
    if (!marker || i === 0) return;
    marker.style.borderColor = stroke(plot, i);
    marker.style.background = fill ? fill(plot, i) : '';
  });
}

class JobView {
  constructor(root, job, columns, number) {
    Object.assign(this, {root, job, columns, number, step: null, selected: -1});
    const pareto = root.querySelector('.plot.pareto');
    if (pareto) this.pareto = new Pareto(pareto, job, this.width(pareto), (i) => this.select(i));
    root.querySelectorAll('tr.candidate').forEach((row, i) => row.addEventListener('click', () => this.select(i)));
    this.select(job.selected);
  }

  width(element) {
    return this.printWidth || Math.max(320, element.clientWidth);
  }

  select(i) {
    if (i === this.selected || !this.job.candidates[i]) return;
    this.selected = i;
    this.root.querySelectorAll('.of-candidate').forEach((part) => {
      part.hidden = Number(part.dataset.candidate) !== i;
    });
    this.root.querySelectorAll('tr.candidate').forEach((row, k) => row.classList.toggle('selected', k === i));
    if (this.pareto) this.pareto.mark(i);
    this.showStep(this.job.candidates[i]);
  }

  showStep(candidate) {
    const section = this.root.querySelector('section.step');
    if (!section) return;
    if (this.step) this.step.destroy();
    this.step = null;
    const any = Boolean(candidate.predicted || candidate.measured);
    section.classList.toggle('without', !any);
    if (any) {
      const element = section.querySelector('.plot.timeline');
      this.step = new StepView(section, this.job, candidate, this.columns, this.number, this.width(element));
    }
  }

  get plots() {
    return [...(this.pareto ? [this.pareto.plot] : []), ...(this.step ? this.step.plots : [])];
  }

  resize(printWidth) {
    this.printWidth = printWidth;
    for (const plot of this.plots) {
      const width = this.width(plot.root.parentElement);
      if (width !== plot.width) plot.setSize({width, height: plot.height});
    }
  }

  redraw() {
    for (const plot of this.plots) {
      plot.redraw(false, true);
      paintMarkers(plot);
    }
  }
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent;
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    done = copyBySelection(text);  // from a file, some browsers offer no clipboard
  }
  button.textContent = done ? 'Copied' : 'Press Ctrl+C';
  if (!done) getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
  setTimeout(() => { button.textContent = 'Copy'; }, 2000);
}

function copyBySelection(text) {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'off-screen';
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

async function start() {
  performance.mark('ebb-started');
  document.querySelectorAll('button.copy').forEach((button) => button.addEventListener('click', () => copy(button)));
  const {meta, columns} = await load();
  performance.mark('ebb-loaded');
  document.documentElement.classList.add('js');
  const views = meta.jobs.map((job, i) =>
    new JobView(document.querySelector(`.job[data-job="${i}"]`), job, columns, i));
  onChange(() => views.forEach((v) => v.redraw()), (width) => views.forEach((v) => v.resize(width)));
  let waiting = 0;
  addEventListener('resize', () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => views.forEach((v) => v.resize(null)));
  });
  performance.mark('ebb-built');
  await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
  performance.mark('ebb-painted');
  return views;
}

// For tests and the curious.
window.ebb = {ready: start()};
window.ebb.ready.catch((error) => {
  const note = document.createElement('p');
  note.className = 'beware';
  note.textContent = `The plots cannot be drawn in this browser (${error.message}). Every figure stands in the tables.`;
  document.querySelector('main').prepend(note);
});
