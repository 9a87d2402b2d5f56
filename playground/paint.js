/** Pictures of surfaces and curves on a canvas, in the colours of the book's figures. */
const Paint = (() => {
  "use strict";
  const hex = (colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  const maps = {
    probability: ["#7FB2DA", "#F8F8F6", "#EFAE7C"].map(hex),
    epistemic: ["#FFFFFF", "#AA4499", "#3D1538"].map(hex),
    aleatoric: ["#FFFFFF", "#009E73", "#00382A"].map(hex),
  };
  const chainColours = ["#0072B2", "#D55E00", "#009E73", "#AA4499"];

  /** Red, green and blue of a share from 0 to 1 of a map. */
  function colour(map, share) {
    const place = 2 * Math.min(Math.max(share, 0), 0.999999), k = Math.floor(place);
    return maps[map][k].map((from, i) => Math.round(from + (place - k) * (maps[map][k + 1][i] - from)));
  }

  /**
   * Line segments where values on a square grid cross a level, in units of the grid's step (marching squares).
   * @param {Float64Array} values [row * size + column]
   * @returns {number[][]} [x from, y from, x to, y to]
   */
  function contour(values, size, level) {
    const segments = [];
    for (let j = 0; j + 1 < size; j++)
      for (let i = 0; i + 1 < size; i++) {
        const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]], crossings = [];
        const at = corners.map(([a, b]) => values[b * size + a] - level);
        for (let k = 0; k < 4; k++) {
          const next = (k + 1) % 4, share = at[k] / (at[k] - at[next]);
          if (at[k] < 0 === at[next] < 0) continue;
          crossings.push([0, 1].map((c) => corners[k][c] + share * (corners[next][c] - corners[k][c])));
        }
        for (let k = 0; k + 1 < crossings.length; k += 2) segments.push([...crossings[k], ...crossings[k + 1]]);
      }
    return segments;
  }

  /** Fit a canvas to the screen's pixels; its context in units of `width` a row, cleared to white. */
  function context(canvas, width, height) {
    const scale = (canvas.clientWidth * (window.devicePixelRatio || 1)) / width || 1;
    const [columns, rows] = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== columns || canvas.height !== rows) [canvas.width, canvas.height] = [columns, rows];
    const ctx = canvas.getContext("2d");
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.fillStyle = "white";
    ctx.fillRect(0, 0, width, height);
    return ctx;
  }

  const small = typeof document === "undefined" ? null : document.createElement("canvas");
  /** Values on a square grid, upwards, as a smooth picture of side `side` whose corner is at (left, top). */
  function surface(ctx, values, size, map, high, left, top, side) {
    [small.width, small.height] = [size, size];
    const image = new ImageData(size, size), step = side / (size - 1);
    values.forEach((value, n) => {
      const row = size - 1 - Math.floor(n / size);
      image.data.set([...colour(map, value / high), 255], 4 * (row * size + (n % size)));
    });
    small.getContext("2d").putImageData(image, 0, 0);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, side, side);
    ctx.clip();
    ctx.drawImage(small, left - step / 2, top - step / 2, side + step, side + step); // pixels lie around grid points
    ctx.restore();
  }

  /** Lines, each through a list of points. */
  function lines(ctx, paths, style, width, dash = []) {
    Object.assign(ctx, { strokeStyle: style, lineWidth: width });
    ctx.setLineDash(dash);
    ctx.beginPath();
    for (const [first, ...others] of paths) {
      ctx.moveTo(...first);
      for (const point of others) ctx.lineTo(...point);
    }
    ctx.stroke();
  }

  /** A band between two lines of points. */
  function band(ctx, low, high, style) {
    ctx.fillStyle = style;
    ctx.beginPath();
    for (const point of [...low, ...high.toReversed()]) ctx.lineTo(...point);
    ctx.fill();
  }

  /** Series [chain][draw] in a strip, all on one scale. */
  function traces(canvas, series) {
    const [width, height] = [330, 120], ctx = context(canvas, width, height),
      all = series.flatMap((s) => Array.from(s));
    const [low, high] = [Math.min(...all), Math.max(...all)], length = series[0].length;
    const at = (v, i) => [(width * i) / (length - 1), height - 4 - ((height - 8) * (v - low)) / (high - low || 1)];
    series.forEach((chain, c) => lines(ctx, [Array.from(chain, at)], chainColours[c], 1));
  }

  /** Ticks and their numbers, inside the frame. */
  function axes(ctx, { kind, zoom }, ticks, { place, SIDE }) {
    Object.assign(ctx, { fillStyle: "#444", font: "9px sans-serif" });
    for (const tick of ticks) {
      const [x, y] = place(kind, [tick, tick], 0, zoom);
      ctx.fillRect(x, SIDE - 4, 1, 4);
      ctx.fillText(tick, x - 3, SIDE - 7);
      ctx.fillRect(0, y, 4, 1);
      ctx.fillText(tick, 6, y + 3);
    }
  }

  /**
   * A map of what a method predicts: surfaces of classes, in panels for several tasks, or a curve with its bands.
   * @param {object} found {mean, epistemic, aleatoric, members, newest, apart} on the grid of the state
   * @param {object} more truth: values of the grid or null; apart: the least difference of chains that is hatched
   */
  function map(canvas, state, found, grid, size, more, drawing) {
    const ctx = context(canvas, ...drawing.shapeOf(state.kind).extent);
    (state.kind === "curve" ? curves : surfaces)(ctx, state, found, { ...more, grid, size }, drawing);
  }
  function surfaces(ctx, state, { mean, members, newest, apart }, more, drawing) {
    const { SIDE, shapeOf, cornerOf } = drawing, { size } = more, cells = size * size, unit = SIDE / (size - 1);
    const { panels } = shapeOf(state.kind);
    for (let panel = 0; panel < panels; panel++) {
      const [left, top] = cornerOf(panel), part = mean.subarray(panel * cells, (panel + 1) * cells), hatched = [];
      const to = ([a, b, c, d]) => [[a, b], [c, d]].map(([i, j]) => [left + unit * i, top + SIDE - unit * j]);
      const boundary = (values) => contour(values, size, 0.5).map(to);
      surface(ctx, part, size, "probability", 1, left, top, SIDE);
      for (let n = 0; apart && n < cells; n++) {
        const [i, j] = [n % size, Math.floor(n / size)];
        if (apart[panel * cells + n] > more.apart) hatched.push([i - 0.5, j - 0.5, i + 0.5, j + 0.5]);
      }
      lines(ctx, hatched.map(to), "#666", 1);
      const single = state.twenty && panels === 1 ? members : [];
      for (const one of single) lines(ctx, boundary(one), "rgba(20, 20, 20, 0.45)", 0.8);
      if (!state.twenty && newest && panels === 1) lines(ctx, boundary(newest), "#444", 1, [3, 3]);
      lines(ctx, boundary(part), "black", 2);
      if (more.truth) lines(ctx, boundary(more.truth), "#00643F", 2.5, [8, 4]);
      Object.assign(ctx, { strokeStyle: "#888", lineWidth: 1, fillStyle: "#222", font: "18px sans-serif" });
      if (panels > 1) ctx.strokeRect(left, top, SIDE, SIDE);
      if (panels > 1) ctx.fillText(`task ${panel + 1}`, left + 8, top + 22);
    }
    if (panels === 1) axes(ctx, state, [-2, 0, 2].map((tick) => tick * state.zoom), drawing);
  }
  function curves(ctx, state, { mean, epistemic, aleatoric, members, newest, apart }, more, drawing) {
    const points = (value) => Array.from(more.grid, (x, i) => drawing.place("curve", [x, value(i)]));
    for (const [noise, style] of [[1, "#DCE9F4"], [0, "#8DB9DD"]]) {
      const away = (sign) => points((i) => mean[i] + 2 * sign * Math.sqrt(epistemic[i] + noise * aleatoric[i]));
      band(ctx, away(-1), away(1), style);
    }
    const shown = state.twenty ? members : newest ? [newest] : [];
    for (const one of shown) lines(ctx, [points((i) => one[i])], "#444", 0.8, state.twenty ? [] : [4, 3]);
    lines(ctx, [points((i) => mean[i])], "#0B3C5D", 2);
    if (more.truth) lines(ctx, [points((i) => more.truth[i])], "#00643F", 2, [8, 4]);
    const hatched = points(() => 0).filter((_, i) => apart?.[i] > more.apart);
    lines(ctx, hatched.map(([x]) => [[x, 0], [x - 8, drawing.SIDE]]), "#888", 0.7);
    axes(ctx, state, [-1, 0, 1], drawing);
  }

  return { colour, contour, context, surface, map, traces };
})();
if (typeof module !== "undefined") module.exports = Paint;
