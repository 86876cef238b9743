// Colours come from the style sheet, so that light, dark and print are decided in one place.

let cache = new Map();

export function colour(name) {
  if (!cache.has(name)) {
    cache.set(name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim());
  }
  return cache.get(name);
}

/// Calls `redraw` whenever the colours change, and `resize` when a printer wants its own width (null: the screen's).
export function onChange(redraw, resize) {
  const changed = () => {
    cache = new Map();
    redraw();
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  addEventListener('beforeprint', () => {
    document.documentElement.dataset.print = '';
    resize(690);
    changed();
  });
  addEventListener('afterprint', () => {
    delete document.documentElement.dataset.print;
    resize(null);
    changed();
  });
}

export const font = (size, weight = 400) => `${weight} ${size}px system-ui, "Segoe UI", Roboto, sans-serif`;

/// What all plots have in common on an axis.
export const axisOf = (options) => ({
  stroke: () => colour('muted'),
  font: font(11),
  grid: {stroke: () => colour('grid'), width: 1},
  ticks: {stroke: () => colour('grid'), width: 1, size: 4},
  ...options,
});
