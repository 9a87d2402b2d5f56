/** What the playground shows: its data sets, presets, and the link that holds all of it; no DOM. Needs engine.js. */
const PlaygroundState = (() => {
  "use strict";
  const engine = typeof Playground === "undefined" ? require("./engine.js") : Playground;
  const several = typeof Group === "undefined" ? require("./group.js") : Group;
  const data = typeof PlaygroundData === "undefined" ? require("./data.js") : PlaygroundData;
  const methods = typeof Methods === "undefined" ? require("./methods.js") : Methods;
  const { presets } = typeof PlaygroundPresets === "undefined" ? require("./presets.js") : PlaygroundPresets;
  const limits = { classes: [3, 3], groups: [3, 3], curve: [1.5, 1.6] }; // of both coordinates, on either side of 0
  const widths = [1, 2, 5, 10];

  const twelve = [[-1.7, 0.1, 0], [-1.2, 1.1, 0], [-0.5, 1.6, 0], [0.3, 1.2, 0], [0.8, 0.4, 0], [0.2, -0.3, 0]];
  twelve.push([1.8, 0, 1], [1.3, -1.2, 1], [0.5, -1.7, 1], [-0.3, -1.2, 1], [-0.8, -0.5, 1], [-0.1, 0.4, 1]);

  const sets = {
    twelve: { text: "twelve points", kind: "classes", make: () => twelve },
    moons: { text: "moons", kind: "classes", make: data.makers.moons },
    spiral: { text: "two spirals", kind: "classes", make: data.makers.spiral },
    curve: { text: "a curve", kind: "curve", make: data.makers.curve }, // of the regression
    wave: { text: "a wave", kind: "curve", make: data.makers.wave }, // of the first hour, half as long
    six: { text: "six tasks of ten labels", kind: "groups", make: data.makers.six },
  };
  for (const [t, points] of (typeof BookTasks === "undefined" ? require("./tasks.js") : BookTasks).entries())
    sets[`task${t + 1}`] = { text: `task ${t + 1} of the book`, kind: "classes", make: () => points };
  const read = () => require("../book/results/playground/borrowing.json").rows;
  const series = typeof BookSeries === "undefined" ? read() : BookSeries; // joined to the script when the book is built
  const fifty = series[0].points.split(";").map((point) => point.split(",").map(Number));
  sets.fifty = { text: "six tasks of fifty labels, stored", kind: "groups", make: () => fifty, isStored: true };

  /**
   * Values of a state that no preset names. sds: of the weights by layer; group: of the tasks' weights, 0: learnt;
   * left, right: methods of the two maps; other: output scale of the left one, 0: as the right one's; zoom: how far.
   */
  const usual = { set: "twelve", count: 50, spread: 0.3, seed: 1, gap: false, width: 5, step: 1, noise: 0 };
  Object.assign(usual, { group: 0.3, without: false, far: false, left: "map", right: "posterior", other: 0, zoom: 1 });
  Object.assign(usual, { truth: false, twenty: false });
  const usualOf = {
    classes: { sds: [1, 1, 1], controls: ["count", "output", "truth", "twenty"] },
    curve: { sds: [1, 1], controls: ["count", "both", "truth", "twenty"] },
    groups: { sds: [1, 1, 1], controls: ["group", "without"] },
  };

  const stills = ["output-scale", "group-without", "curve", "curve-gap"]; // presets that small ones on pages show

  /** A state of the usual values but some; its points are those of its data set unless given. */
  function complete(part) {
    const { kind } = sets[part.set ?? usual.set], state = { ...usual, ...usualOf[kind], ...part, kind };
    return { ...state, points: part.points ?? pointsOf(state) };
  }

  /** What is stored of a state: probabilities of class 1 [task and point of the grid], and R-hat; null: nothing. */
  function storedOf({ set, group, without }) {
    const row = series.find(({ sd, without: isOff }) => sd === (group || "learnt") && isOff === without);
    if (!sets[set].isStored || !row) return null;
    const mean = Float64Array.from(row.surfaces.match(/../g), (digits) => Number(digits) / 100);
    return { mean, rhat: row.check.rhat.predictions };
  }

  /** Points of the state's data set; those in the middle are left out where there is to be a gap. */
  function pointsOf({ set, count, spread, seed, gap }) {
    const all = sets[set].make(count, spread, seed), end = sets[set].kind === "curve" ? 0.35 : 0.9;
    return all.filter(([x]) => !gap || Math.abs(x) > end);
  }

  const MOST_POINTS = 400; // of a link
  const SIDE = 300; // of a panel in the units of its picture; that of a curve is half as wide again
  /** How a kind is drawn: its panels, three a row, the size of one and of all. */
  function shapeOf(kind) {
    const panels = kind === "groups" ? 6 : 1, width = kind === "curve" ? 1.5 * SIDE : SIDE;
    return { panels, width, extent: [width * Math.min(panels, 3), SIDE * Math.ceil(panels / 3)] };
  }
  const cornerOf = (panel) => [SIDE * (panel % 3), SIDE * Math.floor(panel / 3)];
  /** Where a point of a panel is in the picture. */
  function place(kind, [x, y], panel = 0, zoom = 1) {
    const [limit, height] = limits[kind].map((most) => zoom * most), [left, top] = cornerOf(panel);
    return [left + (shapeOf(kind).width * (x + limit)) / (2 * limit), top + (SIDE * (height - y)) / (2 * height)];
  }
  /** Inputs at which predictions are drawn: of a curve a line, of classes a square of size x size for each panel. */
  function gridOf(kind, size, zoom = 1) {
    const limit = zoom * limits[kind][0], line = Array.from({ length: size }, (_, i) =>
      -limit + (2 * limit * i) / (size - 1));
    const plane = () => line.flatMap((y) => line.flatMap((x) => [x, y]));
    return Float64Array.from(kind === "curve" ? line : Array.from({ length: shapeOf(kind).panels }, plane).flat());
  }

  /** A place far out in the prior, the same for all chains. */
  const farStart = (size) => Float64Array.from({ length: size }, (_, k) => 3 * Math.cos(k * k + 1));

  /** The log posterior of a state. Networks on curves have biases, and one hidden layer, as in the chapter. */
  function targetOf({ kind, points, width, sds, noise, group, without }) {
    const inputs = kind === "curve" ? 1 : 2, measured = { biases: true, likelihood: "normal", noise: noise || null };
    const of = (rows) => ({ x: rows.flatMap((p) => p.slice(0, inputs)), y: rows.map((p) => p[inputs]) });
    if (kind === "curve") return engine.target({ widths: [1, width, 1], scales: sds, ...measured, ...of(points) });
    if (kind === "classes") return engine.target({ widths: [2, width, width, 1], scales: sds, ...of(points) });
    const tasks = Array.from({ length: 6 }, (_, t) => of(points.filter((p) => p[3] === t && !(without && t === 0))));
    return several.target({ widths: [2, width, width, 1], sds: group ? [group, group, group] : null, tasks });
  }

  const UNIT = 1 / 2048; // of a stored weight
  /** Draws [chain][draw][weight] as text, two bytes a weight, and back. */
  function pack(positions) {
    const all = Int16Array.from(positions.flat().flatMap((one) =>
      Array.from(one, (value) => Math.round(value / UNIT))));
    return btoa(Array.from(new Uint8Array(all.buffer), (byte) => String.fromCharCode(byte)).join(""));
  }
  function unpack({ text, size, chains, ...others }) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)), all = new Int16Array(bytes.buffer);
    const draws = all.length / size / chains, row = (k) => Float64Array.from(all.subarray(k * size, (k + 1) * size),
      (v) => v * UNIT);
    const of = (c) => Array.from({ length: draws }, (_, i) => row(c * draws + i));
    return { ...others, positions: Array.from({ length: chains }, (_, c) => of(c)) };
  }

  /** The whole state as the part of a link after #, and back; what is not understood is refused. */
  function encode(state) {
    const { points, sds, controls, kind, ...others } = state;
    const changed = Object.entries(others).filter(([name, value]) => value !== usual[name]);
    const lists = { sds: sds.join(","), controls: controls.join(",") };
    if (!sets[state.set].isStored) lists.points = points.map((point) => point.join(",")).join(";");
    return [...changed, ...Object.entries(lists)].map(([name, value]) => `${name}=${value}`).join("&");
  }

  function decode(text) {
    if (text.length > 40000) throw new Error(`link: given ${text.length} letters, expected 40000 at most`);
    const part = {}, wrong = (what) => { throw new Error(`link: given ${what}, expected what the playground wrote`); };
    for (const [name, value] of new URLSearchParams(text)) {
      const numbers = (list) => list.split(",").map(Number);
      if (name === "points") part.points = value ? value.split(";").map(numbers) : [];
      else if (name === "sds") part.sds = numbers(value);
      else if (name === "controls") part.controls = value ? value.split(",") : [];
      else if (!Object.hasOwn(usual, name)) wrong(name);
      else if (typeof usual[name] === "boolean") part[name] = value === "true";
      else part[name] = typeof usual[name] === "number" ? Number(value) : value;
    }
    if (!(part.set === undefined || Object.hasOwn(sets, part.set))) wrong(part.set);
    if (sets[part.set]?.isStored) delete part.points; // these stay as they are
    const { count = usual.count, controls = [] } = part; // looked at before anything is made of them
    if (!(Number.isInteger(count) && count >= 1 && count <= MOST_POINTS)) wrong(`count=${count}`);
    if (!(controls.length <= 20 && new Set(controls).size === controls.length)) wrong("controls");
    if (part.points?.length > MOST_POINTS) wrong("points");
    const state = complete(part), columns = { classes: 3, groups: 4, curve: 2 }[state.kind];
    const isPoint = (point) => {
      const [x, y, label = 0, task = 0] = point, isNear = Math.abs(x) <= 10 && Math.abs(y) <= 10;
      return point.length === columns && isNear && [0, 1].includes(label) && [0, 1, 2, 3, 4, 5].includes(task);
    };
    if (!(state.points.length <= MOST_POINTS && state.points.every(isPoint))) wrong("points");
    const { spread, group, noise, step, kind } = state, layers = kind === "curve" ? 2 : 3;
    const sizes = [count, spread, group, noise, step, state.other];
    if (![state.left, state.right].every((name) => Object.hasOwn(methods.names, name))) wrong("method");
    if (![1, 3].includes(state.zoom)) wrong(`zoom=${state.zoom}`);
    if (sets[state.set].isStored && !storedOf(state)) wrong(`group=${group}`);
    if (!(widths.includes(state.width) && sizes.every((v) => v >= 0 && v <= 1000) && step)) wrong("numbers");
    if (!(state.sds.length === layers && state.sds.every((v) => v > 0 && v <= 1000))) wrong("scales");
    return state;
  }

  const drawing = { SIDE, limits, shapeOf, cornerOf, place, gridOf };
  return { drawing, sets, presets, stills, complete, pointsOf, storedOf, farStart, targetOf, pack, unpack, encode,
    decode };
})();
if (typeof module !== "undefined") module.exports = PlaygroundState;
