// Time across: an overview of everything, lanes of the critical path and of chosen tiles, and every tile.

const LABELS = 118, AXIS = 22, ROW = 18, THIN = 8, GAP = 8;

class Timeline {
  constructor(index, state, changed) {
    this.index = index;
    this.state = state;
    this.changed = changed;
    this.overview = document.getElementById("overview");
    this.lanes = document.getElementById("lanes");
    this.fall = document.getElementById("fall");
    this.stack = null;
    this.layout = [];
    this.listen();
  }

  get labels() {
    return this.lanes.clientWidth < 600 ? 84 : LABELS;
  }

  // --- drawing ---

  draw() {
    this.drawOverview();
    this.drawLanes();
    this.drawFall();
  }

  // Share of the tiles in each kind, per column of the whole profile; made once per width.
  countOverview(width) {
    if (this.stack && this.stack.width === width) return this.stack.counts;
    const kinds = header.kinds.length, counts = new Float64Array(width * kinds), columns = this.index.columns;
    const scale = width / header.span;
    for (let row = 0; row < columns.s_begin.length; row++) {
      const kind = columns.s_kind[row];
      const x0 = columns.s_begin[row] * scale, x1 = x0 + columns.s_length[row] * scale;
      const first = Math.floor(x0), last = Math.min(Math.floor(x1), width - 1);
      if (first === last) {
        counts[first * kinds + kind] += x1 - x0;
        continue;
      }
      counts[first * kinds + kind] += first + 1 - x0;
      for (let x = first + 1; x < last; x++) counts[x * kinds + kind] += 1;
      counts[last * kinds + kind] += x1 - last;
    }
    this.stack = { width, counts };
    return counts;
  }

  drawOverview() {
    const { pen, width, height } = prepare(this.overview);
    pen.drawImage(this.paintOverview(width, height), 0, 0, width, height);
    const x0 = this.state.low / header.span * width, x1 = this.state.high / header.span * width;
    pen.fillStyle = document.documentElement.dataset.theme === "dark" ? "#0009" : "#fff9";
    pen.fillRect(0, 0, x0, height);
    pen.fillRect(x1, 0, width - x1, height);
    pen.strokeStyle = look.colours.accent;
    pen.lineWidth = 2;
    pen.strokeRect(x0 + 1, 1, Math.max(x1 - x0 - 2, 1), height - 2);
  }

  // The overview without the frame around what is shown; painted again for another theme or width only.
  paintOverview(width, height) {
    this.painted ??= document.createElement("canvas");
    if (!differs(this.painted, width, height, document.documentElement.dataset.theme)) return this.painted;
    this.painted.width = width;
    this.painted.height = height;
    const pen = this.painted.getContext("2d");
    const kinds = header.kinds.length, counts = this.countOverview(width), tiles = this.index.tiles.length;
    pen.fillStyle = look.colours.lane;
    pen.fillRect(0, 0, width, height);
    for (let x = 0; x < width; x++) {
      let y = height;
      for (const kind of header.stack) {
        const part = counts[x * kinds + kind] / tiles * height;
        if (part < 0.02) continue;
        pen.fillStyle = look.kinds[kind];
        pen.fillRect(x, y - part, 1, part);
        y -= part;
      }
    }
    return this.painted;
  }

  // What each lane shows: its label, height, rows, and which kinds of them.
  plan() {
    const plan = [{ label: "critical path", height: ROW + 6, lane: this.index.path, path: true }];
    for (const tile of this.state.tiles) {
      plan.push({ label: `tile ${tile}`, height: ROW, lane: this.index.supervisor(tile), gap: GAP });
      if (!header.exact) continue;
      const only = (...names) => header.kinds.map((kind) => names.includes(kind.name));
      const own = this.index.supervisor(tile);
      plan.push({ label: "sending", height: THIN, lane: own, kinds: only("exchange.send", "exchange.both") });
      plan.push({ label: "receiving", height: THIN, lane: own, kinds: only("exchange.receive", "exchange.both") });
      for (let context = 1; context <= WORKERS; context++) {
        const lane = this.index.worker(tile, context);
        plan.push({ label: context === 1 ? "workers" : "", height: THIN, lane, worker: context - 1 });
      }
    }
    return plan;
  }

  drawLanes() {
    const plan = this.plan();
    const height = AXIS + plan.reduce((sum, lane) => sum + lane.height + 2 + (lane.gap || 0), 0);
    this.lanes.style.height = `${height}px`;
    const { pen, width } = prepare(this.lanes);
    const left = this.labels, across = width - left, { low, high } = this.state;
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    this.drawAxis(pen, left, across, height);
    this.layout = [];
    let y = AXIS;
    for (const entry of plan) {
      y += entry.gap || 0;
      pen.fillStyle = look.colours.lane;
      pen.fillRect(left, y, across, entry.height);
      pen.fillStyle = look.colours.soft;
      pen.textBaseline = "middle";
      pen.font = entry.height === THIN ? "10px system-ui, sans-serif" : "12px system-ui, sans-serif";
      if (entry.label) pen.fillText(entry.label, entry.height === THIN ? 14 : 0, y + entry.height / 2, left - 6);
      const { lane, kinds } = entry;
      lane.visit(low, high, across, (x0, x1, row) => {
        const kind = lane.kind[row], step = lane.step[row];
        if (kinds && !kinds[kind]) return;
        pen.globalAlpha = this.state.shows(step, kind) ? 1 : 0.16;
        pen.fillStyle = colourOf(kind, step);
        // A hair of space between intervals that are wide enough to show it.
        pen.fillRect(left + x0, y, x1 - x0 > 4 ? x1 - x0 - 0.7 : x1 - x0, entry.height);
        if (x1 - x0 > 44 && entry.height >= ROW) this.drawName(pen, lane, row, left + x0, x1 - x0, y, entry);
      });
      pen.globalAlpha = 1;
      this.layout.push({ ...entry, top: y, bottom: y + entry.height + 2 });
      y += entry.height + 2;
    }
  }

  drawName(pen, lane, row, x, width, y, entry) {
    const kind = header.kinds[lane.kind[row]], step = header.steps[lane.step[row]];
    const text = kind.busy ? step.name : kind.name;
    pen.fillStyle = inkOn(colourOf(lane.kind[row], lane.step[row]));
    const room = Math.floor((width - 8) / 6.6);
    if (room < 4) return;
    pen.fillText(short(text, room), x + 4, y + entry.height / 2 + 1, width - 8);
  }

  drawAxis(pen, left, across, height) {
    const { low, high } = this.state;
    const wanted = (high - low) / Math.max(across / 110, 1);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = Math.max([1, 2, 5, 10].find((factor) => factor * power >= wanted) * power, 1);
    pen.textBaseline = "top";
    for (let time = Math.ceil(low / step) * step; time <= high; time += step) {
      const x = Math.round(left + (time - low) / (high - low) * across) + 0.5;
      pen.strokeStyle = look.colours.line;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x, 14);
      pen.lineTo(x, height);
      pen.stroke();
      pen.fillStyle = look.colours.soft;
      if (x < left + across - 40) pen.fillText(count(time), x + 3, 1);
    }
    pen.fillText("cycle", 0, 1);
  }

  // Every tile as one line of pixels, or several to a line where the panel is lower.
  drawFall() {
    const { pen, width, height } = prepare(this.fall);
    const left = this.labels, across = Math.max(Math.floor(width - left), 1), { low, high } = this.state;
    const tiles = this.index.tiles;
    const colours = new Uint32Array(header.kinds.length * header.steps.length);
    header.kinds.forEach((_, kind) => header.steps.forEach((_, step) => {
      colours[kind * header.steps.length + step] = pixel(colourOf(kind, step), !this.state.shows(step, kind));
    }));
    const lines = Math.floor(height), image = pen.createImageData(across, lines);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(pixel(look.colours.lane, false));
    const steps = header.steps.length;
    let drawn = -1;
    for (let y = 0; y < lines; y++) {
      const place = Math.floor(y * tiles.length / lines);
      if (place === drawn) {
        pixels.copyWithin(y * across, (y - 1) * across, y * across);
        continue;
      }
      drawn = place;
      const lane = this.index.supervisor(tiles[place]), start = y * across;
      lane.visit(low, high, across, (x0, x1, row) => {
        const last = Math.max(Math.round(x1), Math.floor(x0) + 1);
        pixels.fill(colours[lane.kind[row] * steps + lane.step[row]], start + Math.round(x0), start + Math.min(last, across));
      });
    }
    pen.clearRect(0, 0, width, height);
    // Pixels of the image are CSS pixels; a scratch canvas lets the browser scale them.
    this.scratch ??= document.createElement("canvas");
    this.scratch.width = across;
    this.scratch.height = lines;
    this.scratch.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.scratch, left, 0, across, lines);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = look.colours.soft;
    pen.textBaseline = "top";
    pen.fillText("all tiles", 0, 1, left - 6);
    pen.fillText(`${count(tiles.length)}, by id`, 0, 17, left - 6);
    for (const tile of this.state.tiles) {
      const y = (tiles.indexOf(tile) + 0.5) / tiles.length * lines;
      pen.fillStyle = look.colours.accent;
      pen.fillRect(left - 6, y - 1, 5, 2);
    }
  }

  // --- pointing ---

  timeAt(event, canvas) {
    const box = canvas.getBoundingClientRect(), left = canvas === this.overview ? 0 : this.labels;
    const share = Math.min(Math.max((event.clientX - box.left - left) / (box.width - left), 0), 1);
    return canvas === this.overview ? share * header.span
      : this.state.low + share * (this.state.high - this.state.low);
  }

  // The interval under the pointer: its lane and row.
  find(event, canvas) {
    const y = event.clientY - canvas.getBoundingClientRect().top, time = this.timeAt(event, canvas);
    if (canvas === this.fall) {
      const tiles = this.index.tiles, place = Math.floor(y / canvas.clientHeight * tiles.length);
      const tile = tiles[Math.min(Math.max(place, 0), tiles.length - 1)];
      const lane = this.index.supervisor(tile), row = lane.at(time);
      return { tile, lane, row, time };
    }
    const entry = this.layout.find((lane) => y >= lane.top && y < lane.bottom);
    if (!entry) return { row: -1, time };
    const row = entry.lane.at(time);
    const hidden = row >= 0 && entry.kinds && !entry.kinds[entry.lane.kind[row]];
    return { entry, lane: entry.lane, row: hidden ? -1 : row, time };
  }

  describe(event, found) {
    const { lane, row, entry } = found;
    if (row < 0) return hideTip();
    const step = header.steps[lane.step[row]], kind = header.kinds[lane.kind[row]];
    const begin = lane.begin[row], length = lane.length[row];
    const where = `tile ${lane.tile[row]}` + (entry && entry.worker !== undefined ? `, worker ${entry.worker}` : "");
    showTip(event, step.name, [
      ["kind", kind.name], ["where", where + (entry && entry.path ? ", on the critical path" : "")],
      ["cycles", `${count(length)} (${duration(length)})`],
      ["from", `${count(begin)} to ${count(begin + length)}`],
      ["operation", step.operation], ["kernel", step.kernel],
      ...step.metadata.map(([name, value]) => [short(name, 40), value]),
    ]);
  }

  listen() {
    for (const canvas of [this.lanes, this.fall]) {
      canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
        if (sideways) this.pan((event.deltaX || event.deltaY) / canvas.clientWidth);
        else this.zoom(1.0018 ** event.deltaY, this.timeAt(event, canvas));
      }, { passive: false });
      canvas.addEventListener("pointerdown", (event) => this.press(event, canvas));
      canvas.addEventListener("pointermove", (event) => {
        if (!event.buttons) this.describe(event, this.find(event, canvas));
      });
      canvas.addEventListener("pointerleave", hideTip);
      canvas.addEventListener("dblclick", (event) => {
        const { lane, row } = this.find(event, canvas);
        if (row >= 0) this.show(lane.begin[row] - lane.length[row] * 0.1, lane.begin[row] + lane.length[row] * 1.1);
      });
    }
    this.overview.addEventListener("pointerdown", (event) => this.pressOverview(event));
  }

  press(event, canvas) {
    const { low, high } = this.state, from = event.clientX;
    const width = canvas.clientWidth - this.labels;
    let moved = false;
    hideTip();
    canvas.setPointerCapture(event.pointerId);
    const move = (to) => {
      if (Math.abs(to.clientX - from) > 3) moved = true;
      if (moved) this.show(low - (to.clientX - from) / width * (high - low), high - (to.clientX - from) / width * (high - low));
    };
    const end = (to) => {
      canvas.removeEventListener("pointermove", move);
      if (moved || to.type !== "pointerup" || canvas !== this.fall) return;
      this.state.toggleTile(this.find(to, canvas).tile);
      this.changed();
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", end, { once: true });
    canvas.addEventListener("pointercancel", end, { once: true });
  }

  // Dragging on the overview chooses what is shown; a click centres it.
  pressOverview(event) {
    const from = this.timeAt(event, this.overview), half = (this.state.high - this.state.low) / 2;
    this.overview.setPointerCapture(event.pointerId);
    const x = event.clientX;
    const move = (to) => {
      const time = this.timeAt(to, this.overview);
      if (Math.abs(to.clientX - x) > 3) this.show(Math.min(from, time), Math.max(from, time));
    };
    const end = (to) => {
      this.overview.removeEventListener("pointermove", move);
      if (Math.abs(to.clientX - x) <= 3) this.show(from - half, from + half);
    };
    this.overview.addEventListener("pointermove", move);
    this.overview.addEventListener("pointerup", end, { once: true });
  }

  zoom(factor, centre) {
    const { low, high } = this.state, middle = centre ?? (low + high) / 2;
    this.show(middle - (middle - low) * factor, middle + (high - middle) * factor);
  }

  pan(share) {
    const width = this.state.high - this.state.low;
    this.show(this.state.low + share * width, this.state.high + share * width);
  }

  // Show [low, high), kept inside the profile and at least a few cycles wide.
  show(low, high) {
    const width = Math.min(Math.max(high - low, 8), header.span);
    low = Math.min(Math.max(low + (high - low - width) / 2, 0), header.span - width);
    this.state.low = low;
    this.state.high = low + width;
    this.changed();
  }
}
