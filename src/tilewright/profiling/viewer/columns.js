// What a page shows: header (names and places of the columns) and columns as typed arrays.

const header = JSON.parse(document.getElementById("header").textContent);
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };

async function loadColumns() {
  const element = document.getElementById("data");
  const text = atob(element.textContent);
  element.remove();
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const columns = {};
  for (const [name, type, offset, count] of header.columns) columns[name] = new TYPES[type](buffer, offset, count);
  return columns;
}
