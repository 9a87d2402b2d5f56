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
    const [width, height] = [330, 70], ctx = context(canvas, width, height), all = series.flatMap((s) => Array.from(s));
    const [low, high] = [Math.min(...all), Math.max(...all)], length = series[0].length;
    const at = (v, i) => [(width * i) / (length - 1), height - 4 - ((height - 8) * (v - low)) / (high - low || 1)];
    series.forEach((chain, c) => lines(ctx, [Array.from(chain, at)], chainColours[c], 1));
  }

  return { colour, contour, context, surface, lines, band, traces };
})();
if (typeof module !== "undefined") module.exports = Paint;
