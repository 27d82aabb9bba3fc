// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"use strict";

const $ = (id) => document.getElementById(id);
const RADIAN = Math.PI / 180;

// ---- fields ------------------------------------------------------------------------------------------------------

// Numbers come as differences, deflated, high bytes first; values are low + step * number.
async function unpack(field, points) {
  const packed = Uint8Array.from(atob(field.data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const mask = field.width === 1 ? 0xff : 0xffff, half = points * field.frames, frames = [];
  for (let f = 0; f < field.frames; f++) {
    const values = new Float32Array(points);
    for (let i = 0, number = 0, at = f * points; i < points; i++, at++) {
      const difference = field.width === 1 ? bytes[at] : (bytes[at] << 8) | bytes[half + at];
      number = (number + difference) & mask;
      values[i] = field.low + field.step * number;
    }
    frames.push(values);
  }
  return frames;
}

function bilinear(values, nx, ny, x, y) {
  const i = Math.max(0, Math.min(nx - 2, Math.floor(x))), j = Math.max(0, Math.min(ny - 2, Math.floor(y)));
  const a = Math.max(0, Math.min(1, x - i)), b = Math.max(0, Math.min(1, y - j)), n = j * nx + i;
  return (values[n] * (1 - a) + values[n + 1] * a) * (1 - b) + (values[n + nx] * (1 - a) + values[n + nx + 1] * a) * b;
}

// ---- colours -----------------------------------------------------------------------------------------------------

// value -> [red, green, blue, cover]; cover 0 leaves the ground bare.
const LAYERS = {
  wind: { unit: "m/s", ticks: [0, 20, 40, 60, 80], note: "",
    stops: [[0, 240, 240, 232, 0], [12, 190, 222, 214, .35], [25, 99, 184, 184, .8], [40, 38, 118, 170, .9], [55, 58, 60, 150, .93], [70, 122, 36, 130, .95], [85, 176, 32, 92, .97]] },
  t: { unit: "°C", ticks: [-40, -20, 0, 20, 40], note: "",
    stops: [[-45, 62, 44, 122, .9], [-25, 56, 104, 176, .9], [-10, 122, 178, 214, .88], [0, 226, 234, 228, .85], [10, 240, 214, 146, .88], [20, 230, 150, 84, .9], [30, 196, 70, 52, .9], [40, 130, 24, 44, .92]] },
  rain: { unit: "mm", ticks: [0, 1, 2, 5, 10, 20], note: "",
    stops: [[0, 160, 200, 230, 0], [.15, 160, 205, 232, 0], [.5, 140, 200, 232, .75], [2, 60, 140, 205, .9], [5, 40, 84, 172, .93], [10, 92, 44, 150, .95], [20, 190, 50, 120, .97]] },
};
function colour(stops, value) {
  if (value <= stops[0][0]) return stops[0].slice(1);
  for (let n = 1; n < stops.length; n++) {
    if (value > stops[n][0]) continue;
    const a = stops[n - 1], b = stops[n], w = (value - a[0]) / (b[0] - a[0]);
    return [1, 2, 3, 4].map((k) => a[k] + w * (b[k] - a[k]));
  }
  return stops[stops.length - 1].slice(1);
}
// Looking up a thousand colours is quicker than mixing a million.
function ramp(layer) {
  const low = layer.stops[0][0], high = layer.stops[layer.stops.length - 1][0], colours = [];
  for (let n = 0; n < 1024; n++) colours.push(colour(layer.stops, low + (high - low) * n / 1023));
  return (value) => colours[Math.max(0, Math.min(1023, Math.round((value - low) / (high - low) * 1023)))];
}

// ---- contour lines -----------------------------------------------------------------------------------------------

// Calls draw(x1, y1, x2, y2), in grid points, for each piece of the line where the field has this value.
function contour(values, nx, ny, level, draw) {
  for (let j = 0; j < ny - 1; j++) {
    for (let i = 0; i < nx - 1; i++) {
      const n = j * nx + i, a = values[n] - level, b = values[n + 1] - level, c = values[n + nx + 1] - level, d = values[n + nx] - level;
      const kind = (a > 0) | (b > 0) << 1 | (c > 0) << 2 | (d > 0) << 3;
      if (kind === 0 || kind === 15) continue;
      const points = [];
      if ((a > 0) !== (b > 0)) points.push([i + a / (a - b), j]);
      if ((b > 0) !== (c > 0)) points.push([i + 1, j + b / (b - c)]);
      if ((c > 0) !== (d > 0)) points.push([i + d / (d - c), j + 1]);
      if ((d > 0) !== (a > 0)) points.push([i, j + a / (a - d)]);
      for (let k = 0; k + 1 < points.length; k += 2) draw(points[k][0], points[k][1], points[k + 1][0], points[k + 1][1]);
    }
  }
}

// ---- the map -----------------------------------------------------------------------------------------------------

class WeatherMap {
  constructor(source, fields) {
    Object.assign(this, source, { f: fields });
    this.ramps = Object.fromEntries(Object.entries(LAYERS).map(([name, layer]) => [name, ramp(layer)]));
    this.layer = "wind"; this.frame = 0;
    this.width = 1200; this.height = Math.round(this.width * this.ny / this.nx);
    for (const id of ["base", "air"]) { $(id).width = this.width; $(id).height = this.height; }
    this.scale = this.width / this.nx;
    this.ground = this.shade();
    this.coast = this.outline();
    this.mesh = this.graticule();
    this.seed();
  }
  px(i) { return (i + .5) * this.scale; }
  py(j) { return this.height - (j + .5) * this.scale; }

  // Geographic degrees of a grid point, and the other way round.
  where(i, j) {
    const g = this.grid, x = (g.west + i * g.dx) * RADIAN, y = (g.south + j * g.dy) * RADIAN, t = g.tilt * RADIAN;
    const latitude = Math.asin(Math.cos(y) * Math.cos(x) * Math.sin(t) + Math.sin(y) * Math.cos(t));
    const longitude = g.longitude * RADIAN + Math.atan2(Math.cos(y) * Math.sin(x), Math.cos(y) * Math.cos(x) * Math.cos(t) - Math.sin(y) * Math.sin(t));
    return [((longitude / RADIAN + 540) % 360) - 180, latitude / RADIAN];
  }
  place(longitude, latitude) {
    const g = this.grid, l = (longitude - g.longitude) * RADIAN, p = latitude * RADIAN, t = g.tilt * RADIAN;
    const x = Math.cos(p) * Math.cos(l), y = Math.cos(p) * Math.sin(l), z = Math.sin(p);
    const rlat = Math.asin(z * Math.cos(t) - x * Math.sin(t));
    const rlon = Math.atan2(y, x * Math.cos(t) + z * Math.sin(t));
    return [(rlon / RADIAN - g.west) / g.dx, (rlat / RADIAN - g.south) / g.dy];
  }

  // Land and sea in paper colours, lit from the north-west.
  shade() {
    const { nx, ny, width, height, scale } = this, heights = this.f.ground[0], pixels = new Float32Array(width * height * 3);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const i = x / scale - .5, j = (height - y) / scale - .5, h = bilinear(heights, nx, ny, i, j);
        const slope = bilinear(heights, nx, ny, i + .7, j - .7) - bilinear(heights, nx, ny, i - .7, j + .7);
        const light = 1 - Math.max(-.32, Math.min(.32, (h > 0 ? slope : 0) / 1400)), n = 3 * (y * width + x);
        const land = h > 1 ? [228 - h / 60, 224 - h / 55, 206 - h / 60] : [207, 219, 225];
        for (let k = 0; k < 3; k++) pixels[n + k] = land[k] * light;
      }
    }
    return pixels;
  }
  outline() {
    const path = new Path2D();
    contour(this.f.ground[0], this.nx, this.ny, 1, (a, b, c, d) => { path.moveTo(this.px(a), this.py(b)); path.lineTo(this.px(c), this.py(d)); });
    return path;
  }
  graticule() {
    const path = new Path2D(), labels = [];
    const line = (points, text) => {
      let pen = false, labelled = false;
      for (const [lon, lat] of points) {
        const [i, j] = this.place(lon, lat), inside = i > -.5 && j > -.5 && i < this.nx - .5 && j < this.ny - .5;
        if (inside && pen) path.lineTo(this.px(i), this.py(j));
        else if (inside) path.moveTo(this.px(i), this.py(j));
        if (inside && !pen && !labelled && labels.every(([, u, v]) => Math.hypot(this.px(i) - u, this.py(j) - v) > 60)) { labels.push([text, this.px(i), this.py(j)]); labelled = true; }
        pen = inside;
      }
    };
    for (let lat = 10; lat <= 80; lat += 10) line(Array.from({ length: 361 }, (_, n) => [n - 180 + this.grid.longitude, lat]), `${lat}°N`);
    for (let lon = -180; lon < 180; lon += 20)
      line(Array.from({ length: 171 }, (_, n) => [lon, n / 2]), lon === 0 ? "0°" : `${Math.abs(lon)}°${lon < 0 ? "W" : "E"}`);
    return { path, labels };
  }

  value(frame, n) {
    if (this.layer === "wind") return Math.hypot(this.f.u[frame][n], this.f.v[frame][n]);
    if (this.layer === "rain") return this.f.rain[frame][n] ** 2;
    return this.f.t[frame][n];
  }
  draw() {
    const { nx, ny, width, height, scale } = this, context = $("base").getContext("2d");
    const shown = new Float32Array(nx * ny), find = this.ramps[this.layer];
    for (let n = 0; n < shown.length; n++) shown[n] = this.value(this.frame, n);
    const image = context.createImageData(width, height), out = image.data;
    for (let y = 0, p = 0, g = 0; y < height; y++) {
      for (let x = 0; x < width; x++, p += 4, g += 3) {
        const c = find(bilinear(shown, nx, ny, x / scale - .5, (height - y) / scale - .5)), bare = 1 - c[3];
        // The colour takes the light of the ground below it, so that mountains stay visible.
        const light = .45 + .55 * (this.ground[g] + this.ground[g + 1] + this.ground[g + 2]) / 640;
        for (let k = 0; k < 3; k++) out[p + k] = this.ground[g + k] * bare + c[k] * c[3] * light;
        out[p + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
    context.lineJoin = context.lineCap = "round";
    context.strokeStyle = "rgba(40,55,63,.22)"; context.lineWidth = 1; context.stroke(this.mesh.path);
    context.strokeStyle = "rgba(28,38,44,.75)"; context.lineWidth = 1.3; context.stroke(this.coast);
    this.isolines(context);
    this.edge(context);
    this.legend();
  }
  isolines(context) {
    if (!this.f.height) return;
    const field = this.f.height[this.frame], taken = [];
    context.font = "600 17px system-ui, 'DejaVu Sans', sans-serif"; context.textAlign = "center"; context.textBaseline = "middle";
    const labels = [];
    for (let level = 4560; level <= 6120; level += 60) {
      const path = new Path2D();
      contour(field, this.nx, this.ny, level, (a, b, c, d) => {
        const x = this.px((a + c) / 2), y = this.py((b + d) / 2);
        path.moveTo(this.px(a), this.py(b)); path.lineTo(this.px(c), this.py(d));
        if (x < 60 || y < 50 || x > this.width - 60 || y > this.height - 50) return;
        if (taken.some(([u, v, l]) => Math.hypot(u - x, v - y) < (l === level ? 420 : 85))) return;
        let angle = Math.atan2(this.py(d) - this.py(b), this.px(c) - this.px(a));
        if (Math.abs(angle) > Math.PI / 2) angle -= Math.sign(angle) * Math.PI;
        taken.push([x, y, level]); labels.push([x, y, angle, level]);
      });
      context.strokeStyle = "rgba(22,34,43,.85)"; context.lineWidth = level === 5400 ? 3 : 1.5; context.stroke(path);
    }
    for (const [x, y, angle, level] of labels) {
      context.save(); context.translate(x, y); context.rotate(angle);
      context.lineWidth = 5; context.strokeStyle = "rgba(245,246,242,.85)"; context.strokeText(level / 10, 0, 0);
      context.fillStyle = "#16222b"; context.fillText(level / 10, 0, 0); context.restore();
    }
  }
  edge(context) {
    context.font = "15px system-ui, 'DejaVu Sans', sans-serif"; context.textBaseline = "middle";
    for (const [text, x, y] of this.mesh.labels) {
      context.textAlign = x > this.width - 60 ? "right" : x < 60 ? "left" : "center";
      const u = Math.max(6, Math.min(this.width - 6, x)), v = Math.max(14, Math.min(this.height - 14, y));
      context.lineWidth = 4; context.strokeStyle = "rgba(240,243,240,.75)"; context.strokeText(text, u, v);
      context.fillStyle = "#3c4b54"; context.fillText(text, u, v);
    }
  }
  legend() {
    const layer = LAYERS[this.layer], canvas = $("scale"), context = canvas.getContext("2d"), ratio = 2;
    canvas.width = 340 * ratio; canvas.height = 34 * ratio; context.scale(ratio, ratio);
    const low = layer.ticks[0], high = layer.ticks[layer.ticks.length - 1], bend = this.layer === "rain" ? 2 : 1;
    const at = (value) => 10 + 300 * ((value - low) / (high - low)) ** (1 / bend);
    for (let x = 0; x < 300; x++) {
      const c = this.ramps[this.layer](low + (high - low) * (x / 299) ** bend), base = [226, 226, 214];
      context.fillStyle = `rgb(${[0, 1, 2].map((k) => base[k] * (1 - c[3]) + c[k] * c[3]).join(",")})`;
      context.fillRect(10 + x, 2, 1.2, 12);
    }
    context.fillStyle = getComputedStyle(document.body).getPropertyValue("--soft"); context.font = "11.5px system-ui, 'DejaVu Sans', sans-serif"; context.textAlign = "center";
    layer.ticks.forEach((tick, n) => context.fillText(n === layer.ticks.length - 1 ? `${tick} ${layer.unit}` : tick, at(tick), 28));
    $("legend-note").textContent = { wind: `wind on level ${this.aloft} of ${this.levels}`, t: `temperature on level ${this.levels}, the lowest`,
      rain: `rain since the last output` }[this.layer];
  }

  // Air parcels that drift with the wind and leave a trace.
  seed() {
    this.parcels = Array.from({ length: 1500 }, () => this.parcel());
  }
  parcel() { return { i: Math.random() * (this.nx - 1), j: Math.random() * (this.ny - 1), age: Math.random() * 90 }; }
  drift() {
    const context = $("air").getContext("2d"), u = this.f.u[this.frame], v = this.f.v[this.frame];
    context.globalCompositeOperation = "destination-in"; context.fillStyle = "rgba(0,0,0,.93)"; context.fillRect(0, 0, this.width, this.height);
    context.globalCompositeOperation = "source-over"; context.lineWidth = 1.5; context.lineCap = "round";
    context.strokeStyle = this.layer === "rain" ? "rgba(40,60,70,.5)" : "rgba(255,255,255,.75)";
    context.beginPath();
    for (let n = 0; n < this.parcels.length; n++) {
      let p = this.parcels[n];
      const a = bilinear(u, this.nx, this.ny, p.i, p.j), b = bilinear(v, this.nx, this.ny, p.i, p.j);
      const pace = this.nx / 312 * .016, i = p.i + a * pace / Math.cos((this.grid.south + p.j * this.grid.dy) * RADIAN), j = p.j + b * pace;
      if (++p.age > 90 || i < 0 || j < 0 || i > this.nx - 1 || j > this.ny - 1) { this.parcels[n] = this.parcel(); this.parcels[n].age = 0; continue; }
      if (Math.hypot(a, b) > 4) { context.moveTo(this.px(p.i), this.py(p.j)); context.lineTo(this.px(i), this.py(j)); }
      p.i = i; p.j = j;
    }
    context.stroke();
  }
  still() { $("air").getContext("2d").clearRect(0, 0, this.width, this.height); }

  readout(event) {
    const box = $("map").getBoundingClientRect(), x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
    const i = x * this.nx - .5, j = (1 - y) * this.ny - .5, at = (field) => bilinear(field[this.frame], this.nx, this.ny, i, j);
    const [longitude, latitude] = this.where(i, j), tip = $("readout");
    const lines = [`${Math.abs(latitude).toFixed(1)}°${latitude < 0 ? "S" : "N"} ${Math.abs(longitude).toFixed(1)}°${longitude < 0 ? "W" : "E"}`,
      `wind         ${Math.hypot(at(this.f.u), at(this.f.v)).toFixed(0)} m/s`, `temperature  ${at(this.f.t).toFixed(1)} °C`, `rain         ${(at(this.f.rain) ** 2).toFixed(1)} mm`];
    if (this.f.height) lines.push(`500 hPa      ${(at(this.f.height) / 10).toFixed(0)} dam`);
    tip.textContent = lines.join("\n"); tip.style.fontFamily = "ui-monospace, 'DejaVu Sans Mono', monospace"; tip.style.display = "block";
    tip.style.left = x > .7 ? "auto" : `${x * box.width + 16}px`; tip.style.right = x > .7 ? `${(1 - x) * box.width + 16}px` : "auto";
    tip.style.top = `${Math.min(y * box.height + 14, box.height - 110)}px`;
  }
}

async function startMap() {
  const source = DATA.map;
  if (!source || typeof DecompressionStream === "undefined") {
    $("weather").querySelector(".about").textContent = source ? "This browser is too old to unpack the map's fields." : "This run wrote no fields to show.";
    $("map").hidden = true;
    $("weather").querySelectorAll(".bar, .legend").forEach((part) => { part.hidden = true; });
    return;
  }
  const fields = {};
  for (const [name, field] of Object.entries(source.fields)) fields[name] = await unpack(field, source.nx * source.ny);
  const map = new WeatherMap(source, fields), slider = $("lead");
  slider.max = source.leads.length - 1;
  const show = (frame) => {
    map.frame = frame; slider.value = frame;
    const lead = source.leads[frame], valid = new Date(Date.UTC(2026, 2, 1) + lead * 3600e3);
    $("when").textContent = `+${lead} h · ${valid.toUTCString().slice(0, 11)}, ${valid.toISOString().slice(11, 16)} UTC`;
    map.draw();
  };
  slider.addEventListener("input", () => show(+slider.value));
  document.querySelectorAll("input[name=layer]").forEach((choice) => choice.addEventListener("change", () => { map.layer = choice.value; map.still(); map.draw(); }));
  $("map").addEventListener("pointermove", (event) => map.readout(event));
  $("map").addEventListener("pointerleave", () => { $("readout").style.display = "none"; });
  let playing = null;
  const stop = () => { clearInterval(playing); playing = null; $("play").textContent = "Play"; };
  $("play").addEventListener("click", () => {
    if (playing) return stop();
    $("play").textContent = "Pause";
    playing = setInterval(() => show((map.frame + 1) % source.leads.length), 450);
  });
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) $("flow").checked = false;
  $("flow").addEventListener("change", () => { if (!$("flow").checked) map.still(); });
  const tick = () => { if ($("flow").checked && !document.hidden) map.drift(); requestAnimationFrame(tick); };
  show(source.leads.length - 1);
  tick();
}

// ---- charts ------------------------------------------------------------------------------------------------------

const COLOURS = { alone: "var(--alone)", inline: "var(--inline)" };
const colourOf = (name) => COLOURS[name] || "var(--served)";
const duration = (s) => s < .00095 ? `${(s * 1e6).toPrecision(2)} µs` : s < .095 ? `${+(s * 1e3).toPrecision(2)} ms` : `${+s.toPrecision(3)} s`;

function chart(id, key, logarithmic, unit) {
  const holder = $(id), width = Math.max(240, holder.clientWidth), height = 270, left = 62, right = 16, top = 14, bottom = 44;
  const all = DATA.series.flatMap((s) => s[key]), most = Math.max(...all) * (logarithmic ? 1.6 : 1.05), least = Math.min(...all) * .6;
  const x = (hour) => left + (width - left - right) * hour / DATA.hours;
  const y = (value) => logarithmic ? top + (height - top - bottom) * (1 - Math.log(Math.max(value, least) / least) / Math.log(most / least))
    : top + (height - top - bottom) * (1 - value / most);
  let svg = "";
  const ticks = [];
  if (logarithmic) { for (let p = Math.ceil(Math.log10(least)); p <= Math.log10(most); p++) ticks.push(10 ** p); }
  else { const unitStep = [.05, .1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 200, 500].find((step) => most / step <= 7) || 1000; for (let v = 0; v <= most; v += unitStep) ticks.push(v); }
  for (const tick of ticks) svg += `<line class="grid" x1="${left}" x2="${width - right}" y1="${y(tick)}" y2="${y(tick)}"/><text x="${left - 8}" y="${y(tick) + 4}" text-anchor="end">${tick === 0 ? "0 s" : duration(tick)}</text>`;
  const spacing = [1, 3, 6, 12, 24].find((step) => DATA.hours / step <= width / 60) || 24;
  for (let hour = 0; hour <= DATA.hours; hour += spacing) svg += `<text x="${x(hour)}" y="${height - bottom + 18}" text-anchor="middle">${hour}</text>`;
  svg += `<text x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">hours of forecast</text><text transform="translate(13 ${(top + height - bottom) / 2}) rotate(-90)" text-anchor="middle">${unit}</text>`;
  const order = [...DATA.series].sort((a, b) => (b.name === "inline") - (a.name === "inline"));
  for (const series of order) {
    const path = series[key].map((value, n) => logarithmic ? `${n ? "H" : "M"}${x(n * series.hours).toFixed(1)}${n ? "V" : " "}${y(value).toFixed(1)}` : `${n ? "L" : "M"}${x((n + 1) * series.hours).toFixed(1)} ${y(value).toFixed(1)}`).join("") + (logarithmic ? `H${x(DATA.hours).toFixed(1)}` : "");
    svg += `<path d="${path}" stroke="${colourOf(series.name)}" stroke-width="${logarithmic ? 1.4 : 2.2}" ${series.name === "alone" ? 'stroke-dasharray="5 3"' : ""}/>`;
  }
  svg += `<line class="cross" y1="${top}" y2="${height - bottom}" stroke="var(--soft)" visibility="hidden"/>`;
  holder.innerHTML = `<svg height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${unit} against hours of forecast">${svg}</svg><div class="hover"></div>`;
  const cross = holder.querySelector(".cross"), tip = holder.querySelector(".hover");
  holder.onpointermove = (event) => {
    const at = event.clientX - holder.getBoundingClientRect().left, hour = (at - left) / (width - left - right) * DATA.hours;
    if (hour < 0 || hour > DATA.hours) return holder.onpointerleave();
    cross.setAttribute("x1", at); cross.setAttribute("x2", at); cross.setAttribute("visibility", "visible");
    const lines = DATA.series.map((s) => `${s.title.padEnd(11)}${duration(s[key][Math.min(s[key].length - 1, Math.floor(hour / s.hours))])}`);
    tip.textContent = [`+${hour.toFixed(1)} h`, ...lines].join("\n");
    tip.style.cssText = `display:block;font-family:ui-monospace,'DejaVu Sans Mono',monospace;top:34px;${at > width * .7 ? `right:${width - at + 12}px` : `left:${at + 12}px`}`;
  };
  holder.onpointerleave = () => { cross.setAttribute("visibility", "hidden"); tip.style.display = "none"; };
}

function startCharts() {
  $("names").innerHTML = DATA.series.map((s) => `<span><span class="swatch" style="border-color:${colourOf(s.name)};${s.name === "alone" ? "border-top-style:dashed" : ""}"></span>${s.title}</span>`).join("");
  const draw = () => { chart("steps", "longest", true, "seconds per step"); chart("clock", "clock", false, "seconds of wall clock"); };
  draw();
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(draw, 120); });
}

startCharts();
startMap();
