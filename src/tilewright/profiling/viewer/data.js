// Lanes of tiles and workers, found and walked quickly.

// Rows of one lane (a tile's supervisor, or one of its workers) or of the critical path, in time order.
// `spans` are [first, end) row numbers, one per run.
class Lane {
  constructor(columns, prefix, spans) {
    this.begin = columns[prefix + "begin"];
    this.length = columns[prefix + "length"];
    this.kind = columns[prefix + "kind"];
    this.step = columns[prefix + "step"];
    this.tile = columns[prefix + "tile"];
    this.spans = spans;
  }

  // The first row of a span that ends after `time`.
  after(span, time) {
    let [low, high] = span;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.begin[middle] + this.length[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  at(time) {
    for (const span of this.spans) {
      const row = this.after(span, time);
      if (row < span[1] && this.begin[row] <= time) return row;
    }
    return -1;
  }

  // Calls draw(x0, x1, row) for what is to be seen of [low, high) on `width` pixels. Where rows are narrower
  // than a pixel, the one at the pixel's middle stands for all, so that the work depends on pixels, not rows.
  visit(low, high, width, draw) {
    const scale = width / (high - low);
    for (const span of this.spans) {
      let row = this.after(span, low);
      let x = 0;
      while (row < span[1] && this.begin[row] < high) {
        const x0 = Math.max((this.begin[row] - low) * scale, x);
        const x1 = Math.min((this.begin[row] + this.length[row] - low) * scale, width);
        if (x1 - x0 >= 1) {
          draw(x0, x1, row);
          x = x1;
          row++;
          continue;
        }
        const pixel = Math.floor(x0);
        const middle = low + (pixel + 0.5) / scale;
        const seen = this.after(span, middle);
        if (seen < span[1] && this.begin[seen] <= middle) draw(pixel, pixel + 1, seen);
        else draw(x0, Math.max(x1, x0 + 0.5), row);
        x = pixel + 1;
        const next = this.after(span, low + x / scale);
        row = Math.max(next, row + 1);
      }
    }
  }
}

// Index of the profile: lanes of every tile.
class Index {
  constructor(columns) {
    this.columns = columns;
    this.supervisors = new Map();
    this.workers = new Map();
    this.phase = new Uint32Array(columns.s_begin.length);
    this.phases = [];
    this.known = new Map();
    header.runs.forEach((run, number) => {
      this.collect(run.supervisor, columns.s_tile, null, this.supervisors);
      this.collect(run.workers, columns.w_tile, columns.w_context, this.workers);
      for (let row = run.supervisor[0]; row < run.supervisor[1]; row++) {
        this.phase[row] = this.phaseOf(number, columns.s_step[row], columns.s_instance[row]);
      }
    });
    this.path = new Lane(columns, "p_", header.runs.map((run) => run.path));
    this.kinds = new Set();
    for (const kind of columns.s_kind) this.kinds.add(kind);
    this.tiles = [...this.supervisors.keys()].sort((a, b) => a - b);
  }

  // The number of an instance of a step in a run.
  phaseOf(run, step, instance) {
    const key = (run * header.steps.length + step) * header.instances + instance;
    let found = this.known.get(key);
    if (found === undefined) {
      this.known.set(key, (found = this.phases.length));
      this.phases.push({ run, step, instance });
    }
    return found;
  }

  collect([first, end], tiles, contexts, into) {
    let start = first;
    for (let row = first; row < end; row++) {
      const last = row + 1 === end || tiles[row + 1] !== tiles[row]
        || (contexts && contexts[row + 1] !== contexts[row]);
      if (!last) continue;
      const key = contexts ? tiles[row] * 8 + contexts[row] : tiles[row];
      if (!into.has(key)) into.set(key, []);
      into.get(key).push([start, row + 1]);
      start = row + 1;
    }
  }

  supervisor(tile) {
    return new Lane(this.columns, "s_", this.supervisors.get(tile) || []);
  }

  worker(tile, context) {
    return new Lane(this.columns, "w_", this.workers.get(tile * 8 + context) || []);
  }
}
