// Quantities for people: 3 to 4 significant digits and always the right letters, as the tables in the page have them.

function digits(value) {
  const magnitude = Math.abs(value);
  return value.toFixed(magnitude >= 1000 ? 0 : magnitude >= 100 ? 1 : magnitude >= 10 ? 2 : 3);
}

export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return (unit === 0 ? value.toFixed(0) : digits(value)) + ' ' + units[unit];
}

export function seconds(value) {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return '0 s';
  if (magnitude < 1e-6) return digits(value * 1e9) + ' ns';
  if (magnitude < 1e-3) return digits(value * 1e6) + ' us';
  if (magnitude < 1) return digits(value * 1e3) + ' ms';
  return digits(value) + ' s';
}

export function rate(value) {
  return value >= 1e12 ? digits(value / 1e12) + ' TB/s' : digits(value / 1e9) + ' GB/s';
}

export function count(value) {
  return value.toLocaleString('en-US');
}

/// Labels of an axis whose ticks lie `step` apart: one unit for all, no more decimals than they need.
function axis(values, units) {
  const most = Math.max(...values.map(Math.abs));
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : most;
  const [scale, name] = units.find(([limit]) => most >= limit) || units[units.length - 1];
  const decimals = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step / scale || 1) - 1e-9)));
  return values.map((v) => (v === null ? '' : (v / scale).toFixed(decimals) + ' ' + name));
}

export const axisSeconds = (values) => axis(values, [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']]);
export const axisRate = (values) => axis(values, [[1e9, 'GB/s'], [1e6, 'MB/s']]);
export const axisBytes = (values) =>
  values.map((v) => (v === null ? '' : v === 0 ? '0' : bytes(v).replace(/\.?0+ /, ' ')));
