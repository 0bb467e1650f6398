// The page of `regard view -o x.html`: shows one map of a trace; what is pointed at is told with its weight. The data
// is the JSON in the element #data (view/page.cc says what it holds). Text from it becomes text nodes, never markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const choices = { map: get("choose-map"), measure: get("choose-measure"), layer: get("choose-layer"), head: get("choose-head") };
  const canvas = get("map"), picture = get("picture");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const unknown = 65535;

  const ramps = {
    light: ["#f6f7f9", "#cfdcea", "#93b5d3", "#4f86b5", "#265a8e", "#0b2a56"],
    dark: ["#181b22", "#1b3a6b", "#575d6d", "#8d8a76", "#c8b866", "#ffea46"],
    lightDifference: ["#084081", "#4e8ec4", "#f6f7f9", "#e68c3c", "#994404"],
    darkDifference: ["#8cc8ff", "#2d69af", "#181b22", "#b05c18", "#ffb85c"],
  };
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const along = (ramp, part) => {
    const place = Math.min(Math.max(part, 0), 1) * (ramp.length - 1);
    const below = Math.min(Math.floor(place), ramp.length - 2);
    const a = channels(ramp[below]), b = channels(ramp[below + 1]);
    return a.map((value, i) => Math.round(value + (place - below) * (b[i] - value)));
  };
  const most = (plane) => Math.max(Math.abs(plane.low), Math.abs(plane.high)) || 1;
  const colorOf = (value, plane) => {
    const theme = dark.matches ? "dark" : "light";
    if (value === null) return dark.matches ? [92, 60, 80] : [226, 205, 216];
    if (plane.low < 0) return along(ramps[theme + "Difference"], (value / most(plane) + 1) / 2);
    return along(ramps[theme], value / most(plane));
  };
  const readable = (c) => (0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] > 140 ? "#141418" : "#fafafc");
  const css = (c) => `rgb(${c[0]}, ${c[1]}, ${c[2]})`;

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const decoded = (plane) => {
    if (!plane.cells) {
      const raw = bytes(plane.data), view = new DataView(raw.buffer);
      plane.cells = Uint16Array.from({ length: raw.length / 2 }, (_, i) => view.getUint16(2 * i, true));
      if (plane.top) {
        const columns = new DataView(bytes(plane.top.columns).buffer), values = new DataView(bytes(plane.top.values).buffer);
        plane.top.column = (i) => columns.getUint32(4 * i, true);
        plane.top.value = (i) => values.getUint16(2 * i, true);
      }
    }
    return plane;
  };
  const real = (plane, cell) => (cell === unknown ? null : plane.low + (cell / 65534) * (plane.high - plane.low));

  let map, plane, rows, columns, size, at = { row: 0, column: 0 }, layout;
  // Of a pooled map: which place of the grid a row or column falls on.
  const gridRow = (row) => Math.floor((row * plane.rows) / rows.size);
  const gridColumn = (column) => Math.floor((column * plane.columns) / columns.size);
  const pooled = () => plane.rows < rows.size || plane.columns < columns.size;
  const weight = (row, column) => real(plane, plane.cells[gridRow(row) * plane.columns + gridColumn(column)]);
  const label = (axis, i) => axis.labels[i] ?? String(i);
  const digits = (value) => (value === null ? "not known" : value.toFixed(3));

  const fill = (select, entries, wanted) => {
    const before = wanted ?? select.value;
    select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
    if (entries.some(([value]) => value === before)) select.value = before;
    select.disabled = entries.length < 2;
  };
  const unique = (list) => [...new Set(list)];

  function choose(first) {
    fill(choices.map, data.maps.map((each, i) => [String(i), each.name]), first && String(first.map));
    map = data.maps[Number(choices.map.value)];
    const planes = map.planes;
    fill(choices.measure, unique(planes.map((each) => each.measure)).map((name) => [name, name]), first && "weights");
    const some = planes.filter((each) => each.measure === choices.measure.value);
    const layers = unique(some.map((each) => each.layer)).sort((a, b) => a - b);
    fill(choices.layer, layers.map((n) => [String(n), n < 0 ? "all" : String(n)]), first && String(first.layer));
    const heads = unique(some.filter((each) => each.layer === Number(choices.layer.value)).map((each) => each.head)).sort((a, b) => a - b);
    fill(choices.head, heads.map((n) => [String(n), n < 0 ? "mean" : String(n)]), first && String(first.head));
    const found = some.find((each) => each.layer === Number(choices.layer.value) && each.head === Number(choices.head.value));
    rows = data.axes[map.rows];
    columns = data.axes[map.columns];
    if (!found) return;
    plane = decoded(found);
    at = { row: Math.min(at.row, Math.max(0, rows.size - 1)), column: Math.min(at.column, Math.max(0, columns.size - 1)) };
    arrange();
    words(get("rows"), rows, map.rows, (i) => point(i, at.column));
    words(get("columns"), columns, map.columns, (i) => point(at.row, i));
    tell();
  }

  function arrange() {
    const cell = Math.max(1, Math.min(28, Math.floor(720 / Math.max(plane.rows, plane.columns, 1))));
    const font = Math.max(9, Math.min(13, Math.round(cell * 0.62)));
    const pen = canvas.getContext("2d");
    pen.font = `${font}px sans-serif`;
    const widest = (axis) => Math.min(170, axis.labels.slice(0, 2000).reduce((w, text) => Math.max(w, pen.measureText(text).width), 0));
    const left = Math.ceil(widest(rows)) + 10, above = Math.ceil(widest(columns) * 0.8) + 14;
    layout = { cell, font, left, above, beyond: Math.ceil(widest(columns) * 0.62) };
    layout.width = left + plane.columns * cell + layout.beyond + 4;
    layout.height = above + plane.rows * cell + 4;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = layout.width * ratio;
    canvas.height = layout.height * ratio;
    canvas.style.width = `${layout.width}px`;
    canvas.style.height = `${layout.height}px`;
    const image = new ImageData(Math.max(1, plane.columns), Math.max(1, plane.rows));
    for (let i = 0; i < plane.rows * plane.columns; ++i) image.data.set([...colorOf(real(plane, plane.cells[i]), plane), 255], 4 * i);
    layout.sheet = new OffscreenCanvas(image.width, image.height);
    layout.sheet.getContext("2d").putImageData(image, 0, 0);
    draw();
  }

  function draw() {
    const { cell, font, left, above } = layout, ratio = window.devicePixelRatio || 1;
    const style = getComputedStyle(document.documentElement), pen = canvas.getContext("2d");
    const ink = (name) => style.getPropertyValue(name).trim();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, layout.width, layout.height);
    if (plane.rows * plane.columns === 0) return;
    pen.imageSmoothingEnabled = false;
    pen.drawImage(layout.sheet, left, above, plane.columns * cell, plane.rows * cell);
    pen.font = `${font}px sans-serif`;
    pen.textBaseline = "middle";
    const step = Math.max(1, Math.ceil((font + 2) / cell));
    const here = { row: gridRow(at.row), column: gridColumn(at.column) };
    for (let row = 0; row < plane.rows; ++row) {
      if (row % step && row !== here.row) continue;
      if (row !== here.row && Math.abs(row - here.row) < step) continue;
      const number = row === here.row ? at.row : Math.floor((row * rows.size) / plane.rows);
      pen.fillStyle = ink(row === here.row ? "--mark" : "--text");
      pen.textAlign = "right";
      pen.fillText(label(rows, number), left - 5, above + (row + 0.5) * cell, left - 6);
    }
    for (let column = 0; column < plane.columns; ++column) {
      if (column % step && column !== here.column) continue;
      if (column !== here.column && Math.abs(column - here.column) < step) continue;
      const number = column === here.column ? at.column : Math.floor((column * columns.size) / plane.columns);
      pen.save();
      pen.translate(left + (column + 0.5) * cell, above - 6);
      pen.rotate((-52 * Math.PI) / 180);
      pen.fillStyle = ink(column === here.column ? "--mark" : "--text");
      pen.textAlign = "left";
      pen.fillText(label(columns, number), 0, 0, 170);
      pen.restore();
    }
    pen.strokeStyle = ink("--line");
    pen.strokeRect(left, above, plane.columns * cell, plane.rows * cell);
    pen.strokeStyle = ink("--mark");
    pen.lineWidth = 1;
    pen.strokeRect(left, above + here.row * cell, plane.columns * cell, cell);
    pen.strokeRect(left + here.column * cell, above, cell, plane.rows * cell);
    pen.lineWidth = 2;
    pen.strokeRect(left + here.column * cell, above + here.row * cell, cell, cell);
  }

  function words(place, axis, name, choose) {
    const heading = place.previousElementSibling;
    heading.textContent = name;
    place.replaceChildren();
    const long = axis.size > 400;
    heading.hidden = place.hidden = long || axis.kind !== "tokens";
    if (place.hidden) return;
    place.dir = "auto";
    for (let i = 0; i < axis.size; ++i) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label(axis, i) || "∅";
      button.addEventListener("mouseenter", () => choose(i));
      button.addEventListener("focus", () => choose(i));
      button.addEventListener("click", () => choose(i));
      place.append(button);
    }
  }

  function shade(place, count, here, value) {
    if (place.hidden) return;
    for (let i = 0; i < count; ++i) {
      const color = colorOf(value(i), plane), button = place.children[i];
      button.style.background = css(color);
      button.style.color = readable(color);
      button.classList.toggle("here", i === here);
    }
  }

  function heaviest(row) {
    if (plane.top) {
      const found = [];
      for (let k = 0; k < plane.top.k; ++k) {
        const i = row * plane.top.k + k, value = real(plane, plane.top.value(i));
        if (value !== null) found.push([plane.top.column(i), value]);
      }
      return found;
    }
    const all = [];
    for (let column = 0; column < columns.size; ++column) {
      const value = weight(row, column);
      if (value !== null) all.push([column, value]);
    }
    return all.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]) || a[0] - b[0]).slice(0, 8);
  }

  function overPicture() {
    picture.hidden = !columns.picture && columns.kind !== "grid" && columns.kind !== "boxes";
    if (picture.hidden) return;
    const high = Math.max(1, columns.height), wide = Math.max(1, columns.width), factor = 360 / Math.max(high, wide);
    picture.width = Math.max(1, Math.round(wide * factor));
    picture.height = Math.max(1, Math.round(high * factor));
    const pen = picture.getContext("2d"), row = at.row;
    const paint = () => {
      pen.clearRect(0, 0, picture.width, picture.height);
      if (layout.photo) pen.drawImage(layout.photo, 0, 0, picture.width, picture.height);
      const values = Array.from({ length: columns.size }, (_, i) => weight(row, i) ?? 0);
      const top = Math.max(...values.map(Math.abs), 1e-12);
      if (columns.kind === "grid") {
        const image = new ImageData(columns.columns, columns.rows);
        values.forEach((value, i) => image.data.set([255, 120, 0, Math.round((190 * Math.abs(value)) / top)], 4 * i));
        const sheet = new OffscreenCanvas(columns.columns, columns.rows);
        sheet.getContext("2d").putImageData(image, 0, 0);
        pen.imageSmoothingEnabled = true;
        pen.drawImage(sheet, 0, 0, picture.width, picture.height);
      } else {
        columns.boxes.forEach(([left, above, right, below], i) => {
          pen.fillStyle = `rgba(255, 120, 0, ${(0.75 * Math.abs(values[i])) / top})`;
          pen.fillRect(left * factor, above * factor, (right - left) * factor, (below - above) * factor);
        });
      }
    };
    if (columns.picture && !layout.photo) {
      const photo = new Image();
      photo.onload = () => { layout.photo = photo; paint(); };
      photo.src = columns.picture;
    }
    paint();
  }

  // Wave and spectrum of a sound, right above the frames they belong to; frames that the row looked at are lit.
  function overSound() {
    const sheet = get("sound");
    sheet.hidden = !columns.wave && !columns.spectrum;
    if (sheet.hidden) return;
    const waveHigh = columns.wave ? 70 : 0, bandsHigh = columns.spectrum ? 90 : 0, ratio = window.devicePixelRatio || 1;
    const wide = plane.columns * layout.cell;
    sheet.width = layout.width * ratio;
    sheet.height = (waveHigh + bandsHigh) * ratio;
    sheet.style.width = `${layout.width}px`;
    sheet.style.height = `${waveHigh + bandsHigh}px`;
    const pen = sheet.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, layout.left * ratio, 0);
    if (columns.wave) {
      const extents = new Int8Array(bytes(columns.wave).buffer), points = extents.length / 2;
      pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--faint").trim();
      for (let i = 0; i < points; ++i) {
        const top = (0.5 - extents[2 * i + 1] / 260) * waveHigh, bottom = (0.5 - extents[2 * i] / 260) * waveHigh;
        pen.fillRect((i * wide) / points, top, wide / points, Math.max(0.7, bottom - top));
      }
    }
    if (columns.spectrum) {
      const { bands, times } = columns.spectrum, cells = bytes(columns.spectrum.data);
      const image = new ImageData(times, bands), loud = { low: 0, high: 1 };
      cells.forEach((cell, i) => image.data.set([...colorOf(cell === 255 ? null : cell / 254, loud), 255], 4 * i));
      const drawn = new OffscreenCanvas(times, bands);
      drawn.getContext("2d").putImageData(image, 0, 0);
      pen.drawImage(drawn, 0, waveHigh, wide, bandsHigh);
    }
    const values = Array.from({ length: plane.columns }, (_, i) => real(plane, plane.cells[gridRow(at.row) * plane.columns + i]) ?? 0);
    const top = Math.max(...values.map(Math.abs), 1e-12);
    values.forEach((value, i) => {
      pen.fillStyle = `rgba(255, 120, 0, ${(0.6 * Math.abs(value)) / top})`;
      pen.fillRect(i * layout.cell, 0, layout.cell, waveHigh + bandsHigh);
    });
  }

  // A closer look at a pooled map: tiles around the cell are unpacked when they are needed.
  const lens = get("lens"), lensCells = 41;
  const tileOf = (row, column) => {
    const across = Math.ceil(columns.size / plane.side), down = Math.floor(row / plane.side), along = Math.floor(column / plane.side);
    const number = down * across + along, owner = plane;
    owner.open ??= new Map();
    if (!owner.open.has(number)) {
      owner.open.set(number, null);
      const packed = new Blob([bytes(owner.tiles[number])]).stream().pipeThrough(new DecompressionStream("deflate"));
      new Response(packed).arrayBuffer().then((cells) => {
        owner.open.set(number, new Uint8Array(cells));
        if (owner === plane) tell();
      });
    }
    return owner.open.get(number);
  };
  // undefined: the tile is not there yet
  const close = (row, column) => {
    const tile = tileOf(row, column);
    if (!tile) return undefined;
    const left = column - (column % plane.side), width = Math.min(plane.side, columns.size - left);
    const cell = tile[(row % plane.side) * width + (column - left)];
    return cell === 255 ? null : plane.low + (cell / 254) * (plane.high - plane.low);
  };

  function closer() {
    lens.hidden = !plane.tiles || typeof DecompressionStream === "undefined";
    if (lens.hidden) return undefined;
    const pen = lens.getContext("2d"), half = (lensCells - 1) / 2, side = lens.width / lensCells;
    pen.clearRect(0, 0, lens.width, lens.height);
    for (let y = 0; y < lensCells; ++y) {
      for (let x = 0; x < lensCells; ++x) {
        const row = at.row + y - half, column = at.column + x - half;
        if (row < 0 || row >= rows.size || column < 0 || column >= columns.size) continue;
        const value = close(row, column);
        if (value === undefined) continue;
        pen.fillStyle = css(colorOf(value, plane));
        pen.fillRect(x * side, y * side, side, side);
      }
    }
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark").trim();
    pen.strokeRect(half * side, half * side, side, side);
    return close(at.row, at.column);
  }

  function tell() {
    const value = get("value"), list = get("heaviest");
    list.replaceChildren();
    if (rows.size === 0 || columns.size === 0) {
      value.textContent = `nothing to show: ${rows.size} rows, ${columns.size} columns`;
      return;
    }
    let shown = weight(at.row, at.column), near = pooled() ? " at most, hereabouts" : "";
    const tops = heaviest(at.row), exact = tops.find(([column]) => column === at.column);
    const seen = closer();
    if (pooled() && exact) { shown = exact[1]; near = ""; }
    else if (pooled() && seen !== undefined) { shown = seen; near = " or so"; }
    value.textContent = `${label(rows, at.row)} → ${label(columns, at.column)}: ${digits(shown)}${near}`;
    get("whose").textContent = `${label(rows, at.row)} looked most at`;
    for (const [column, weightThere] of tops) {
      const item = document.createElement("li");
      item.textContent = `${label(columns, column)} ${digits(weightThere)}`;
      list.append(item);
    }
    shade(get("columns"), columns.size, at.column, (i) => weight(at.row, i));
    shade(get("rows"), rows.size, at.row, (i) => weight(i, at.column));
    overPicture();
    overSound();
  }

  function point(row, column) {
    if (row === at.row && column === at.column) return;
    at = { row, column };
    draw();
    tell();
  }

  canvas.addEventListener("mousemove", (event) => {
    const x = event.offsetX - layout.left, y = event.offsetY - layout.above;
    const row = Math.floor((y / (plane.rows * layout.cell)) * rows.size);
    const column = Math.floor((x / (plane.columns * layout.cell)) * columns.size);
    if (row >= 0 && row < rows.size && column >= 0 && column < columns.size) point(row, column);
  });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const ends = { Home: [at.row, 0], End: [at.row, columns.size - 1], PageUp: [0, at.column], PageDown: [rows.size - 1, at.column] };
    const step = steps[event.key], wanted = ends[event.key] ?? (step && [at.row + step[0], at.column + step[1]]);
    if (!wanted) return;
    event.preventDefault();
    if (wanted[0] >= 0 && wanted[0] < rows.size && wanted[1] >= 0 && wanted[1] < columns.size) point(wanted[0], wanted[1]);
  });
  for (const select of Object.values(choices)) select.addEventListener("change", () => choose());
  dark.addEventListener("change", () => { arrange(); tell(); });

  get("title").textContent = data.title;
  get("erasure").textContent = data.erasure;
  get("left-out").textContent = data.note;
  if (data.maps.length > 0) choose(data.first);
  else get("value").textContent = "the trace has no maps";
})();
