// What the pages share: theme, text, canvases, the tooltip. Every name from a file becomes text, never markup.

const LIGHT = { back: "#ffffff", lane: "#f2f3f5", ink: "#1d2126", soft: "#646b75", line: "#dcdfe3", accent: "#0b63b5",
  idle: "#dfe1e5", exchangeIdle: "#c3d6cb", host: "#b4bac3", wait: "#e3a27f" };
const DARK = { back: "#1b1f24", lane: "#22272d", ink: "#e6e8eb", soft: "#9aa2ad", line: "#30363d", accent: "#6cb2f2",
  idle: "#31363d", exchangeIdle: "#40564a", host: "#555d68", wait: "#8d5a41" };
const look = { colours: LIGHT };

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  look.colours = theme === "dark" ? DARK : LIGHT;
}

// Black or white, whichever reads better on a colour.
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
  return red * 0.3 + green * 0.59 + blue * 0.11 > 150 ? "#10151a" : "#ffffff";
}

function count(value) {
  return Math.round(value).toLocaleString("en-US");
}

function percent(value) {
  return `${(100 * value).toFixed(1)}%`;
}

// The beginning of a long text.
function short(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

// A canvas at the screen's resolution, and its size in CSS pixels.
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { pen, width, height, ratio };
}

// Whether a drawing depends on something else than when it was last asked for.
function differs(drawing, ...things) {
  const now = JSON.stringify(things);
  if (drawing.made === now) return false;
  drawing.made = now;
  return true;
}

function showTip(event, title, facts) {
  const tip = document.getElementById("tip");
  tip.replaceChildren();
  element("b", short(title, 200), tip);
  const list = element("dl", undefined, tip);
  for (const [name, value] of facts) {
    if (value === "") continue;
    element("dt", name, list);
    element("dd", short(value, 200), list);
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  const below = event.clientY + 18;
  tip.style.top = `${below + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 12) : below}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

// From the panel's colour to a strong blue, through one hue, so that more is darker in any eye.
function heat(share) {
  const dark = document.documentElement.dataset.theme === "dark";
  const stops = dark ? [[38, 45, 56], [38, 95, 150], [120, 200, 250]] : [[226, 235, 244], [86, 150, 205], [8, 48, 107]];
  const place = Math.min(share, 1) * 2, first = Math.min(Math.floor(place), 1), part = place - first;
  const mix = stops[first].map((value, at) => Math.round(value + (stops[first + 1][at] - value) * part));
  return `rgb(${mix.join(",")})`;
}

// The chip has rows of 16 columns, four tiles in each place.
const MAP_COLUMNS = 16;

// Left, top, width and height of a tile on a picture of the chip; within its place, two across and two down.
function chipCell(tile, width, height) {
  const across = width / (MAP_COLUMNS * 2.5), down = height / (header.rows * 2.5);
  const column = (tile >> 2) & 15, row = tile >> 6;
  return [column * across * 2.5 + (tile & 1) * across, row * down * 2.5 + ((tile >> 1) & 1) * down, across, down];
}
