// The data in the page: JSON, and columns of numbers (little-endian, deflated, base64; reports/html_data.cpp).

const littleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

export async function load() {
  if (!littleEndian) throw new Error('this machine is big-endian');
  const meta = JSON.parse(document.getElementById('data').textContent);
  const packed = bytesOf(document.getElementById('columns').textContent);
  const inflated = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return {meta, columns: await new Response(inflated).arrayBuffer()};
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/// Live bytes of the rank with the highest peak, or null.
export function curveOf(json, columns) {
  const view = ([at, count]) => new Float64Array(columns, at, count);
  return json && {rank: json.rank, at: view(json.at), bytes: view(json.bytes)};
}

/// Spans of one timeline as lanes of arrays, in seconds; and what is in memory. Each lane also has the seconds that it
/// was busy and the bytes that it moved before each span, for averages over any stretch of time.
export function timelineOf(json, columns) {
  if (!json) return null;
  const view = (Type, [at, count]) => new Type(columns, at, count);
  const c = json.columns;
  const all = {
    start: view(Uint32Array, c.start),
    length: view(Uint32Array, c.length),
    op: view(Uint32Array, c.op),
    ops: view(Uint32Array, c.ops),
    chunk: view(Uint32Array, c.chunk),
    kind: view(Uint8Array, c.kind),
    phase: view(Uint8Array, c.phase),
    bytes: view(Float64Array, c.bytes),
  };
  const op = new Uint32Array(all.op.length);
  for (let i = 0, before = 0; i < op.length; i++) op[i] = before = (before + all.op[i]) >>> 0;
  const levels = ({at, bytes}) => ({at: view(Float64Array, at), bytes: view(Float64Array, bytes)});
  return {
    origin: json.origin,
    rank: json.rank,
    step: json.step_seconds,
    kinds: json.kinds,
    phases: json.phases,
    byPhase: json.by_phase,
    lanes: json.lanes.map((lane) => laneOf(lane, all, op, json)),
    device: levels(json.device),
    pinned: levels(json.pinned),
    pageable: levels(json.pageable),
  };
}

function laneOf({stream, lane, begin, count}, all, op, {unit_seconds: unit, kinds}) {
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const busy = new Float64Array(count + 1);
  const moved = new Float64Array(count + 1);
  const of = (column) => column.subarray(begin, begin + count);
  const kind = of(all.kind);
  const bytes = of(all.bytes);
  for (let i = 0, at = 0; i < count; i++) {
    at += all.start[begin + i];
    start[i] = at * unit;
    end[i] = (at + all.length[begin + i]) * unit;
    busy[i + 1] = busy[i] + (end[i] - start[i]);
    moved[i + 1] = moved[i] + bytes[i];
  }
  return {
    stream, lane, count, start, end, busy, moved, kind, bytes, kinds,
    phase: of(all.phase), chunk: of(all.chunk), ops: of(all.ops), op: of(op),
  };
}

/// The first of the ascending `values` that is above `x`; their number where none is.
export function firstAbove(values, x, from = 0) {
  let low = from;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// What a lane did up to `at`, of `sums` (busy or moved): whole spans before, and its part of the one that runs.
export function until(lane, sums, at) {
  const i = firstAbove(lane.end, at);
  if (i === lane.count || at <= lane.start[i]) return sums[i];
  const length = lane.end[i] - lane.start[i];
  return sums[i] + (sums[i + 1] - sums[i]) * ((at - lane.start[i]) / length);
}
