// The chip coloured by a measure.

class ChipMap {
  constructor(index, state, changed) {
    this.index = index;
    this.state = state;
    this.changed = changed;
    this.canvas = document.getElementById("map");
    this.values = null;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => {
      const tile = this.tileAt(event);
      if (tile < 0) return;
      this.state.toggleTile(tile);
      this.changed();
    });
  }

  update() {
    const whole = this.state.chipscope === "all";
    const low = whole ? 0 : this.state.low, high = whole ? header.span : this.state.high;
    this.made = "";
    this.values = perTile(this.index, this.state.measure, low, high);
    this.draw();
  }

  draw() {
    const { clientWidth, clientHeight } = this.canvas;
    if (!differs(this, clientWidth, clientHeight, this.state.tiles, document.documentElement.dataset.theme)) return;
    const { pen, width, height } = prepare(this.canvas);
    pen.clearRect(0, 0, width, height);
    let low = Infinity, high = -Infinity;
    for (const tile of this.index.tiles) {
      low = Math.min(low, this.values[tile]);
      high = Math.max(high, this.values[tile]);
    }
    for (let tile = 0; tile < header.rows * 64; tile++) {
      const [x, y, across, down] = chipCell(tile, width, height), value = this.values[tile];
      pen.fillStyle = Number.isNaN(value) ? look.colours.lane : heat(high > low ? (value - low) / (high - low) : 0.5);
      pen.fillRect(x, y, across - 0.5, down - 0.5);
      if (!this.state.tiles.includes(tile)) continue;
      pen.strokeStyle = look.colours.ink;
      pen.lineWidth = 1.6;
      pen.strokeRect(x, y, across - 0.5, down - 0.5);
    }
    const text = high > -Infinity ? `from ${count(low)} (faint) to ${count(high)} cycles (strong) per tile; tile 0 is at the top left, `
      + "rows down, columns across, four tiles in each place" : "no tiles";
    document.getElementById("mapscale").textContent = text;
  }

  tileAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    for (const tile of this.index.tiles) {
      const [left, top, across, down] = chipCell(tile, box.width, box.height);
      if (x >= left && x < left + across && y >= top && y < top + down) return tile;
    }
    return -1;
  }

  point(event) {
    const tile = this.tileAt(event);
    if (tile < 0) return hideTip();
    showTip(event, `tile ${tile}`, [
      ["place", `row ${tile >> 6}, column ${(tile >> 2) & 15}, sub ${tile & 3}`],
      [this.state.measure, `${count(this.values[tile])} cycles`],
    ]);
  }
}
