// What a person does with a report, in a browser, for the four jobs of issue 7's first condition: the page asks for
// nothing, complains about nothing, draws its plots, and answers clicks and keys. Reports lie in EBB_REPORTS (run-tests
// writes them there).

import assert from 'node:assert/strict';
import {readFileSync, statSync} from 'node:fs';
import {join} from 'node:path';
import {after, before, describe, test} from 'node:test';
import {inflateSync} from 'node:zlib';
import {openBrowser, openReport, plotsOf} from './browser.mjs';

const folder = process.env.EBB_REPORTS;
const reports = ['llama3-8b-hgx-h200', 'llama3-70b-hgx-h200', 'deepseek-v3-2048xh200', 'measured-1.8b-1xh200'];
const fileOf = (name) => join(folder, `${name}.html`);
const planOf = (name) => JSON.parse(readFileSync(join(folder, `${name}.plan.json`), 'utf8'));

let session;
before(async () => { session = await openBrowser(); });
after(async () => { await session.close(); });

async function withReport(name, options, body) {
  const {page, complaints} = await openReport(session.browser, fileOf(name), options);
  try {
    await body(page);
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
  }
}

const textOf = (page, selector) => page.$eval(selector, (e) => e.textContent);
const shown = (page) => page.$$eval('.candidates .of-candidate', (all) =>
  all.filter((e) => e.offsetParent !== null).map((e) => e.querySelector('h3').textContent));
/// The stretch of time that the timeline shows.
const stretch = (page) => page.evaluate(async () => {
  await new Promise(requestAnimationFrame);
  const [view] = await window.ebb.ready;
  return view.step.plots.map((p) => [p.scales.x.min, p.scales.x.max]);
});

/// Data of the page, read without any of the page's code.
function dataOf(name) {
  const html = readFileSync(fileOf(name), 'utf8');
  const inside = (id) => html.match(new RegExp(`<script type="[^"]*" id="${id}">([^<]*)</script>`))[1];
  const bytes = inflateSync(Buffer.from(inside('columns'), 'base64'));
  const meta = JSON.parse(inside('data'));
  const u32 = ([at, count]) => Array.from({length: count}, (_, i) => bytes.readUInt32LE(at + 4 * i));
  const f64 = ([at, count]) => Array.from({length: count}, (_, i) => bytes.readDoubleLE(at + 8 * i));
  return {meta, u32, f64};
}

for (const name of reports) {
  describe(name, () => {
    test('is one file below 1.5 MB', () => assert.ok(statSync(fileOf(name)).size < 1.5e6));

    test('opens with the answer that ebb plan gives', async () => {
      const {recommendation} = planOf(name);
      await withReport(name, {}, async (page) => {
        const answer = await textOf(page, '.answer');
        const flags = recommendation.flags.join(' ') || 'No flag is needed.';
        assert.ok(answer.includes(flags), answer);
        const bottom = await page.$eval('.answer .flags', (e) => e.getBoundingClientRect().bottom);
        assert.ok(bottom < 500, `the flags end ${bottom} pixels down`);
      });
    });

    test('draws every plot', async () => {
      await withReport(name, {}, async (page) => {
        const plots = await plotsOf(page);
        const kinds = plots.map((p) => p.kind);
        for (const kind of ['pareto', 'timeline', 'device']) assert.ok(kinds.includes(kind), kinds.join());
        for (const plot of plots) {
          assert.ok(plot.width > 600 && plot.height > 100, JSON.stringify(plot));
          assert.ok(plot.colours > 8 && plot.drawn > 0.004, `blank: ${JSON.stringify(plot)}`);
        }
      });
    });

    test('shows the candidate that is clicked, in every part', async () => {
      await withReport(name, {}, async (page) => {
        const points = await page.$$('.point');
        assert.ok(points.length >= planOf(name).candidates.length);
        const labels = await page.$$eval('.point', (all) => all.map((p) => p.getAttribute('aria-label').split(', ')[0]));
        for (let i = 0; i < points.length; i++) {
          await points[i].click();
          // Where two points overlap, the click may go to the one above; a row never does.
          await page.$$eval('tr.candidate', (rows, k) => rows[k] && rows[k].click(), i);
          const [title] = await shown(page);
          assert.ok(title.startsWith(labels[i].split(' ')[0]), `${title} for ${labels[i]}`);
          assert.equal(await page.$$eval('.point[aria-pressed="true"]', (all) => all.length), 1);
          for (const plot of await plotsOf(page)) assert.ok(plot.colours > 8, JSON.stringify(plot));
        }
      });
    });

    test('works with the keyboard alone', async () => {
      await withReport(name, {}, async (page) => {
        await page.focus('.point:last-of-type');
        const label = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
        await page.keyboard.press('Enter');
        assert.ok((await shown(page))[0].startsWith(label.split(' ')[0].replace(',', '')), label);

        await page.focus('.point.picked');  // other points of the front may have no timeline in the page
        await page.keyboard.press('Enter');
        await page.focus('.plot.timeline');
        const [[from, to]] = await stretch(page);
        assert.equal(from, 0);
        await page.keyboard.press('w');
        const zoomed = await stretch(page);
        assert.ok(zoomed[0][1] - zoomed[0][0] < 0.7 * (to - from));
        for (const other of zoomed) assert.deepEqual(other, zoomed[0]);  // all plots of the step move together
        await page.keyboard.press('d');
        const [moved] = await stretch(page);
        assert.ok(moved[0] > zoomed[0][0]);
        await page.keyboard.press('ArrowLeft');
        assert.ok((await stretch(page))[0][0] < moved[0]);
        await page.keyboard.press('s');
        await page.keyboard.press('0');
        assert.deepEqual((await stretch(page))[0], [from, to]);
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('.');
        const told = await textOf(page, '.read');
        assert.match(told, /from .* lasts /);
        await page.keyboard.press('.');
        assert.notEqual(await textOf(page, '.read'), '');
      });
    });

    test('follows dark and light without a reload', async () => {
      await withReport(name, {scheme: 'light'}, async (page) => {
        const look = async () => [await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
                                  (await plotsOf(page)).map((p) => p.sum)];
        const light = await look();
        await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'dark'}]);
        const dark = await look();
        assert.equal(light[0], 'rgb(255, 255, 255)');
        assert.notEqual(dark[0], light[0]);
        dark[1].forEach((sum, i) => assert.notEqual(sum, light[1][i]));  // drawn anew in other colours
        await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'light'}]);
        assert.deepEqual(await look(), light);
      });
    });

    test('can be read without scripts', async () => {
      const {recommendation, candidates} = planOf(name);
      await withReport(name, {script: false}, async (page) => {
        const client = await page.createCDPSession();
        const {root} = await client.send('DOM.getDocument', {depth: -1});
        const {outerHTML} = await client.send('DOM.getOuterHTML', {nodeId: root.nodeId});
        const body = outerHTML.slice(outerHTML.indexOf('<body'), outerHTML.indexOf('<script'));
        const text = body.replace(/<[^>]*>/g, ' ').replace(/&quot;/g, '"').replace(/&amp;/g, '&');
        assert.ok(text.includes('Scripts are off'));
        assert.ok(text.includes(recommendation.flags.join(' ') || 'No flag is needed.'));
        for (const candidate of candidates) assert.ok(text.includes(candidate.policy));
        const {nodeIds} = await client.send('DOM.querySelectorAll', {nodeId: root.nodeId, selector: '.plot'});
        for (const nodeId of nodeIds)  // no empty frames
          await assert.rejects(client.send('DOM.getBoxModel', {nodeId}), /box model/);
      });
    });

    test('prints', async () => {
      await withReport(name, {scheme: 'dark'}, async (page) => {
        const pdf = await page.pdf({format: 'A4', printBackground: true});
        assert.equal(Buffer.from(pdf).subarray(0, 5).toString(), '%PDF-');
        assert.ok(pdf.length > 20_000);
        // Afterwards the screen is as it was.
        assert.equal(await page.evaluate(() => 'print' in document.documentElement.dataset), false);
        assert.ok((await plotsOf(page)).every((p) => p.width > 700));
      });
    });
  });
}

test('the copy button puts the flags on the clipboard', async () => {
  const name = 'llama3-8b-hgx-h200';
  await withReport(name, {}, async (page) => {
    await page.click('.answer button.copy');
    await page.waitForFunction(() => document.querySelector('.answer button.copy').textContent === 'Copied');
    const pasted = await page.evaluate(() => {
      const area = document.createElement('textarea');
      area.id = 'pasted';
      document.body.append(area);
      area.focus();
    }).then(async () => {
      await page.keyboard.down('Control');
      await page.keyboard.press('v');
      await page.keyboard.up('Control');
      return page.$eval('#pasted', (e) => e.value);
    });
    assert.equal(pasted, planOf(name).recommendation.flags.join(' '));
  });
});

test('dragging in a plot zooms all plots of the step, a double click shows the whole step', async () => {
  await withReport('llama3-8b-hgx-h200', {}, async (page) => {
    const area = await page.$('.plot.device .u-over');
    await area.scrollIntoView();
    const box = await area.boundingBox();
    const [whole] = await stretch(page);
    await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 50, {steps: 5});
    await page.mouse.up();
    const dragged = await stretch(page);
    for (const [from, to] of dragged) {
      assert.ok(Math.abs(from - whole[1] * 0.25) < whole[1] * 0.01, `${from} of ${whole[1]}`);
      assert.ok(Math.abs(to - whole[1] * 0.5) < whole[1] * 0.01, `${to} of ${whole[1]}`);
    }
    await page.mouse.click(box.x + box.width * 0.5, box.y + 50, {clickCount: 2});
    for (const range of await stretch(page)) assert.deepEqual(range, whole);
  });
});

test('the page holds the spans of the timeline file, and its memory', () => {
  const timeline = JSON.parse(readFileSync(join(folder, 'llama3-8b-hgx-h200.timeline.json'), 'utf8'));
  const {meta, u32, f64} = dataOf('llama3-8b-hgx-h200');
  const [job] = meta.jobs;
  const page = job.candidates[job.recommended].predicted;
  const rank = timeline.ranks.find((r) => r.rank === page.rank);
  const expected = new Map(rank.ops.map((op, i) => [i, op])
    .filter(([, op]) => op.kind !== 'allocate' && op.kind !== 'release' && op.end_ps > op.start_ps));
  const [start, length, op, bytes] = [u32(page.columns.start), u32(page.columns.length), u32(page.columns.op),
                                      f64(page.columns.bytes)];
  assert.equal(start.length, expected.size);
  const unit = page.unit_seconds * 1e12;
  let id = 0;
  for (const lane of page.lanes) {
    let at = 0;
    for (let i = lane.begin; i < lane.begin + lane.count; i++) {
      at += start[i];
      id = (id + op[i]) % 2 ** 32;
      const span = expected.get(id);
      assert.ok(Math.abs(at * unit - span.start_ps) <= unit / 2, `op ${id} starts`);
      assert.ok(Math.abs((at + length[i]) * unit - span.end_ps) <= unit / 2, `op ${id} ends`);
      assert.equal(bytes[i], span.bytes ?? 0);
      expected.delete(id);
    }
  }
  assert.equal(expected.size, 0);
  assert.equal(Math.max(...f64(page.device.bytes)), rank.memory.live_peak);
});

test('a measured timeline stands beside the prediction, op by op, with a table of errors', async () => {
  await withReport('measured-1.8b-1xh200', {}, async (page) => {
    const labels = await page.evaluate(async () => {
      const [view] = await window.ebb.ready;
      return view.step.timeline.rows.map((r) => `${r.name} ${r.source}`);
    });
    assert.deepEqual(labels.slice(0, 4),
      ['compute predicted', 'compute measured', 'to device predicted', 'to device measured']);
    const diff = JSON.parse(readFileSync(join(folder, 'measured-1.8b-1xh200.diff.json'), 'utf8'));
    const errors = await textOf(page, '.errors');
    for (const {name} of diff.ranks[0].classes) assert.ok(errors.includes(name), name);
    assert.ok(errors.includes(diff.verdict));
    await page.focus('.plot.timeline');
    for (const key of ['ArrowDown', 'ArrowDown', '.']) await page.keyboard.press(key);
    assert.match(await textOf(page, '.read'), /measured .* \([+-].* %\)/);
  });
});
