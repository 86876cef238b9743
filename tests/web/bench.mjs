// How fast a report of a hundred thousand operations is: `tests/web/run-tests build/release/bin/ebb . /tmp/web bench`.
// First paint: from the start of the page's script to the frame with all plots, data inflated and decoded. Zoom: one
// key on the timeline, all plots of the step drawn anew. Medians of five and of twenty.

import {openBrowser, openReport} from './browser.mjs';
import {join} from 'node:path';

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const session = await openBrowser();
const file = join(process.env.EBB_REPORTS, 'bench.html');
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
console.log(`${ops} operations: first paint ${median(paints).toFixed(0)} ms (most ${Math.max(...paints).toFixed(0)}), ` +
            `zoom ${median(zooms).toFixed(0)} ms (most ${Math.max(...zooms).toFixed(0)})`);
