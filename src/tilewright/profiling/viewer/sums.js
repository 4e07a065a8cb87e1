// Sums by group, with the same meaning as `tilewright profile query`.

const BUSY = header.kinds.map((kind) => kind.busy);
const IDLE = header.kinds.findIndex((kind) => kind.name === "idle");
const COMPUTE = header.kinds.findIndex((kind) => kind.name === "compute");
const WORKERS = 6;

// How rows are grouped: number(s) per row, and the name of a number.
function grouping(index, key) {
  const named = (nameOf) => {
    const names = [], of = [];
    for (const step of header.steps) {
      const name = nameOf(step);
      if (!names.includes(name)) names.push(name);
      of.push(names.indexOf(name));
    }
    return { of: (row) => of[row.step], name: (id) => names[id], steps: (id) => of.map((other) => other === id) };
  };
  if (key === "kernel" || key === "operation") return named((step) => step[key] || `(${step.kind})`);
  if (key === "step") {
    return { of: (row) => row.step, name: stepName, steps: (id) => header.steps.map((_, step) => step === id) };
  }
  if (key === "kind") return { of: (row) => row.kind, name: (id) => header.kinds[id].name, kind: (id) => id };
  if (key === "tile") return { of: (row) => row.tile, name: (id) => `tile ${id}`, tile: (id) => id };
  if (key === "run") return { of: (row) => row.run, name: (id) => `run ${id}` };
  if (key !== "phase") {
    return named((step) => (step.metadata.findLast(([name]) => name === key) || ["", "(missing)"])[1]);
  }
  return {
    of: (row) => row.phase,
    name: (id) => phaseName(index.phases[id]),
    steps: (id) => header.steps.map((_, step) => step === index.phases[id].step),
    phase: (id) => index.phases[id],
  };
}

function stepName(step) {
  return `${step} ${header.steps[step].name}`;
}

function phaseName(phase) {
  const parts = [];
  if (header.runs.length > 1) parts.push(`run ${phase.run}`);
  if (phase.instance) parts.push(`time ${phase.instance + 1}`);
  return stepName(phase.step) + (parts.length ? ` (${parts.join(", ")})` : "");
}

function emptySums() {
  return { critical: 0, phase: 0, work: 0, busy: 0, workers: 0, products: 0, first: Infinity, tiles: new Set() };
}

// Groups of all rows that overlap [low, high), their lengths cut to it.
function sumUp(index, key, low, high) {
  const by = grouping(index, key), columns = index.columns;
  const groups = new Map(), total = emptySums();
  const row = { tile: 0, kind: 0, step: 0, run: 0, phase: 0 };
  const group = (id) => {
    let found = groups.get(id);
    if (!found) groups.set(id, (found = emptySums()));
    return found;
  };
  const longest = new Map(), longestTotal = new Map();
  const multiplied = new Set(), multipliedTotal = new Set();
  let mine = new Map(), mineTotal = new Map();
  const fold = (from, into) => {
    for (const [pair, cycles] of from) if (cycles > (into.get(pair) || 0)) into.set(pair, cycles);
    from.clear();
  };
  const phases = index.phases.length;
  header.runs.forEach((run, number) => {
    row.run = number;
    let tile = -1;
    for (let at = run.supervisor[0]; at < run.supervisor[1]; at++) {
      if (columns.s_tile[at] !== tile) {
        fold(mine, longest);
        fold(mineTotal, longestTotal);
        tile = columns.s_tile[at];
      }
      const begin = columns.s_begin[at];
      const cycles = Math.min(begin + columns.s_length[at], high) - Math.max(begin, low);
      if (cycles <= 0) continue;
      row.tile = tile;
      row.kind = columns.s_kind[at];
      row.step = columns.s_step[at];
      row.phase = index.phase[at];
      const id = by.of(row);
      const busy = BUSY[row.kind] ? cycles : 0;
      for (const sums of [group(id), total]) {
        sums.work += cycles;
        sums.busy += busy;
        sums.tiles.add(tile);
        if (begin - run.begin < sums.first) sums.first = begin - run.begin;
      }
      if (row.kind !== IDLE) {
        const pair = id * phases + row.phase;
        if (row.kind === COMPUTE && header.steps[row.step].products && key !== "tile") {
          multiplied.add(pair);
          multipliedTotal.add(row.phase);
        }
        mine.set(pair, (mine.get(pair) || 0) + cycles);
        mineTotal.set(row.phase, (mineTotal.get(row.phase) || 0) + cycles);
      }
    }
    fold(mine, longest);
    fold(mineTotal, longestTotal);
    addWorkers(index, run, row, by, low, high, group, total);
    for (let at = run.path[0]; at < run.path[1]; at++) {
      const begin = columns.p_begin[at];
      const cycles = Math.min(begin + columns.p_length[at], high) - Math.max(begin, low);
      if (cycles <= 0) continue;
      row.tile = columns.p_tile[at];
      row.kind = columns.p_kind[at];
      row.step = columns.p_step[at];
      row.phase = index.phaseOf(number, row.step, columns.p_instance[at]);
      group(by.of(row)).critical += cycles;
      total.critical += cycles;
    }
  });
  for (const [pair, cycles] of longest) group(Math.floor(pair / phases)).phase += cycles;
  for (const cycles of longestTotal.values()) total.phase += cycles;
  const products = (phase) => header.steps[index.phases[phase].step].products;
  for (const pair of multiplied) group(Math.floor(pair / phases)).products += products(pair % phases);
  for (const phase of multipliedTotal) total.products += products(phase);
  const all = total.tiles.size || 1;
  const rows = [...groups].map(([id, sums]) => finish(by.name(id), id, sums, key === "tile" ? 1 : all));
  return { by, rows, total: finish("total", -1, total, all) };
}

function addWorkers(index, run, row, by, low, high, group, total) {
  const columns = index.columns;
  for (let at = run.workers[0]; at < run.workers[1]; at++) {
    const begin = columns.w_begin[at];
    const cycles = Math.min(begin + columns.w_length[at], high) - Math.max(begin, low);
    if (cycles <= 0) continue;
    row.tile = columns.w_tile[at];
    row.kind = columns.w_kind[at];
    row.step = columns.w_step[at];
    row.phase = index.phaseOf(row.run, row.step, columns.w_instance[at]);
    group(by.of(row)).workers += cycles;
    total.workers += cycles;
  }
}

function finish(name, id, sums, tiles) {
  const whole = sums.phase * tiles;
  return {
    name, id,
    critical: sums.critical, phase: sums.phase, work: sums.work, busy: sums.busy, workers: sums.workers,
    tiles: sums.tiles.size,
    first: sums.first === Infinity ? 0 : sums.first,
    share: header.cycles ? sums.critical / header.cycles : 0,
    peak: whole ? sums.products / (header.peak * whole) : 0,
    used: whole ? sums.busy / whole : 0,
    workersUsed: whole ? sums.workers / (WORKERS * whole) : 0,
  };
}

// One number per tile: cycles of what `measure` names, in [low, high).
function perTile(index, measure, low, high) {
  const result = new Float64Array(header.rows * 64).fill(NaN), columns = index.columns;
  for (const tile of index.tiles) result[tile] = 0;
  const cut = (begin, length) => Math.max(Math.min(begin + length, high) - Math.max(begin, low), 0);
  if (measure === "critical") {
    for (let at = 0; at < columns.p_begin.length; at++) {
      result[columns.p_tile[at]] += cut(columns.p_begin[at], columns.p_length[at]);
    }
  } else if (measure === "workers") {
    for (let at = 0; at < columns.w_begin.length; at++) {
      result[columns.w_tile[at]] += cut(columns.w_begin[at], columns.w_length[at]);
    }
  } else {
    const wanted = header.kinds.map((kind) => (measure === "busy" ? kind.busy
      : kind.name === measure || (measure === "exchange" && kind.name.startsWith("exchange"))));
    for (let at = 0; at < columns.s_begin.length; at++) {
      if (wanted[columns.s_kind[at]]) result[columns.s_tile[at]] += cut(columns.s_begin[at], columns.s_length[at]);
    }
  }
  return result;
}
