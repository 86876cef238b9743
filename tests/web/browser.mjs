// A headless Chromium for tests: nothing that phones home, a profile of its own, and everything that a page asks for or
// complains about on record.

import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import puppeteer from 'puppeteer-core';

export async function openBrowser() {
  const profile = mkdtempSync(join(tmpdir(), 'ebb-chromium-'));
  const browser = await puppeteer.launch({
    executablePath: process.env.EBB_CHROMIUM,
    headless: true,
    userDataDir: profile,
    protocolTimeout: 300_000,
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--disable-default-apps', '--disable-dev-shm-usage',
      '--force-device-scale-factor=1', '--font-render-hinting=none',
    ],
  });
  return {
    browser,
    async close() {
      await browser.close();
      rmSync(profile, {recursive: true, force: true});
    },
  };
}

/// `file` in a page of its own. `complaints`: errors, warnings, and requests for anything but the file itself.
export async function openReport(browser, file, {script = true, scheme = 'light', width = 1280} = {}) {
  const page = await browser.newPage();
  const url = pathToFileURL(file).href;
  const complaints = [];
  page.on('console', (message) => {
    if (['error', 'warn', 'assert'].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`));
  page.on('request', (request) => {
    if (request.url() !== url && !request.url().startsWith('data:')) complaints.push(`request: ${request.url()}`);
  });
  await page.setJavaScriptEnabled(script);
  await page.setViewport({width, height: 900});
  await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
  await page.goto(url);
  if (script) await page.evaluate(() => window.ebb.ready.then(() => new Promise(requestAnimationFrame)));
  return {page, complaints};
}

/// Of every plot that shows: its kind, its size, how many colours it has, which part is not the commonest one, and a
/// sum over all pixels.
export function plotsOf(page) {
  return page.evaluate(async () => {
    await new Promise(requestAnimationFrame);
    return [...document.querySelectorAll('.plot')].filter((p) => p.offsetParent !== null).map((p) => {
      const {width, height} = p.querySelector('canvas');
      // A copy: reading the page's own canvas would change how the browser draws on it.
      const copy = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});
      copy.drawImage(p.querySelector('canvas'), 0, 0);
      const pixels = new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer);
      const counts = new Map();
      let sum = 0;
      for (const pixel of pixels) {
        counts.set(pixel, (counts.get(pixel) || 0) + 1);
        sum = (sum * 31 + pixel) % 4294967296;
      }
      const commonest = Math.max(...counts.values());
      return {kind: p.className.replace('plot ', ''), width, height, colours: counts.size,
              drawn: 1 - commonest / pixels.length, sum};
    });
  });
}
