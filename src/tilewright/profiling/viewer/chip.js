// The chip: 23 rows of 16 columns, four tiles in each place, coloured by a measure.

const MAP_COLUMNS = 16;

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

  // A tile's place within its cell: `b` across, the lane down.
  cell(tile, width, height) {
    const across = width / (MAP_COLUMNS * 2 + MAP_COLUMNS * 0.5), down = height / (header.rows * 2 + header.rows * 0.5);
    const column = (tile >> 2) & 15, row = tile >> 6;
    return [column * across * 2.5 + (tile & 1) * across, row * down * 2.5 + ((tile >> 1) & 1) * down, across, down];
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
      const [x, y, across, down] = this.cell(tile, width, height), value = this.values[tile];
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
      const [left, top, across, down] = this.cell(tile, box.width, box.height);
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

// From the panel's colour to a strong blue, through one hue, so that more is darker in any eye.
function heat(share) {
  const dark = document.documentElement.dataset.theme === "dark";
  const stops = dark ? [[38, 45, 56], [38, 95, 150], [120, 200, 250]] : [[226, 235, 244], [86, 150, 205], [8, 48, 107]];
  const place = Math.min(share, 1) * 2, first = Math.min(Math.floor(place), 1), part = place - first;
  const mix = stops[first].map((value, at) => Math.round(value + (stops[first + 1][at] - value) * part));
  return `rgb(${mix.join(",")})`;
}
