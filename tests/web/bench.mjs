// How fast a report of a hundred thousand operations is: `tests/web/run-tests BUILD/bin/ebb . WORK bench`, absolute paths.
// First paint: from the start of the page's script to the frame with all plots, data inflated and decoded. Zoom: one
// key on the timeline, all plots of the step drawn anew. Medians of five and of twenty.

import {readFileSync, statSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {openBrowser, openReport} from './browser.mjs';

const folder = process.env.EBB_REPORTS;
const wanted = 100_000;

/// No plan of one step has so many operations: steps of one rank, one after another.
function make() {
  const timeline = JSON.parse(readFileSync(join(folder, 'fine.json'), 'utf8'));
  const rank = timeline.ranks[0];
  const [step] = rank.steps_ps;
  const timed = rank.ops.filter((op) => op.end_ps > op.start_ps && op.kind !== 'allocate' && op.kind !== 'release');
  const ops = [];
  for (let i = 0; i < wanted; i++) {
    const op = timed[i % timed.length];
    const later = step * Math.floor(i / timed.length);
    ops.push({...op, start_ps: op.start_ps + later, end_ps: op.end_ps + later});
  }
  writeFileSync(join(folder, 'bench.json'), JSON.stringify({...timeline, ranks: [{...rank, ops}]}));
}

if (process.argv[2] === 'make') {
  make();
  process.exit(0);
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const session = await openBrowser();
const file = join(folder, 'bench.html');
const paints = [];
const zooms = [];
let ops = 0;
for (let i = 0; i < 5; i++) {
  const {page, complaints} = await openReport(session.browser, file);
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
  const result = await page.evaluate(async () => {
    const [painted] = performance.getEntriesByName('ebb-painted');
    const [started] = performance.getEntriesByName('ebb-started');
    const [view] = await window.ebb.ready;
    const zoom = [];
    for (const key of ['w', 'w', 's', 'd']) {
      const begin = performance.now();
      view.step.timeline.key({key, preventDefault() {}});
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      zoom.push(performance.now() - begin);
    }
    const spans = view.step.timeline.rows.reduce((sum, row) => sum + row.lane.count, 0);
    return {paint: painted.startTime - started.startTime, zoom, spans};
  });
  ops = result.spans;
  paints.push(result.paint);
  zooms.push(...result.zoom);
  await page.close();
}
await session.close();
console.log(`${ops} operations, ${(statSync(file).size / 1e6).toFixed(2)} MB: first paint ${median(paints).toFixed(0)} ms (most ${Math.max(...paints).toFixed(0)}), ` +
            `zoom ${median(zooms).toFixed(0)} ms (most ${Math.max(...zooms).toFixed(0)})`);
