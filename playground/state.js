/** What the playground shows: its data sets, presets, and the link that holds all of it; no DOM. Needs engine.js. */
const PlaygroundState = (() => {
  "use strict";
  const engine = typeof Playground === "undefined" ? require("./engine.js") : Playground;
  const several = typeof Group === "undefined" ? require("./group.js") : Group;
  const limits = { classes: [3, 3], groups: [3, 3], curve: [1.5, 1.6] }; // of both coordinates, on either side of 0
  const widths = [1, 2, 5, 10];
  const round = (value) => Math.round(value * 100) / 100 + 0; // never -0, which a link would lose

  /** Two half circles, each point with N(0, noise^2) in both coordinates, shifted to mean 0 and turned. */
  function moons(count, noise, seed, angle = 0) {
    const random = engine.generator(seed, 1);
    return Array.from({ length: count }, (_, n) => {
      const label = n % 2, turn = Math.PI * random.uniform(), sign = 1 - 2 * label;
      const a = 1.1 * (sign * (Math.cos(turn) + noise * random.normal() - 0.5));
      const b = 1.9 * (sign * (Math.sin(turn) + noise * random.normal() - 0.25));
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      return [round(a * cos - b * sin), round(a * sin + b * cos), label];
    });
  }

  function spiral(count, noise, seed) {
    const random = engine.generator(seed, 2);
    return Array.from({ length: count }, (_, n) => {
      const label = n % 2, turn = 0.6 + 4.4 * Math.sqrt(random.uniform()), angle = turn + Math.PI * label;
      const [a, b] = [Math.cos(angle), Math.sin(angle)];
      return [...[a, b].map((part) => round(0.5 * (turn * part + noise * random.normal()))), label];
    });
  }

  const curve = (bend, stream) => (count, noise, seed) => {
    const random = engine.generator(seed, stream);
    const places = Array.from({ length: count }, () => 2 * random.uniform() - 1);
    return places.map((x) => [round(x), round(bend(x) + noise * random.normal())]);
  };

  /** Six tasks of ten labels: moons, each turned by a little. */
  const six = (count, noise, seed) =>
    [-25, 10, -5, 20, -15, 15].flatMap((degrees, task) =>
      moons(10, noise, seed + task, (degrees * Math.PI) / 180).map((point) => [...point, task]),
    );

  const twelve = [[-1.7, 0.1, 0], [-1.2, 1.1, 0], [-0.5, 1.6, 0], [0.3, 1.2, 0], [0.8, 0.4, 0], [0.2, -0.3, 0]];
  twelve.push([1.8, 0, 1], [1.3, -1.2, 1], [0.5, -1.7, 1], [-0.3, -1.2, 1], [-0.8, -0.5, 1], [-0.1, 0.4, 1]);

  const sets = {
    twelve: { text: "twelve points", kind: "classes", make: () => twelve },
    moons: { text: "moons", kind: "classes", make: moons },
    spiral: { text: "two spirals", kind: "classes", make: spiral },
    curve: { text: "a curve", kind: "curve", make: curve((x) => x * Math.sin(5 * x), 3) }, // of the regression
    wave: { text: "a wave", kind: "curve", make: curve((x) => Math.sin(4 * x), 4) }, // of the first hour, half as long
    six: { text: "six tasks of ten labels", kind: "groups", make: six },
  };
  for (const [t, points] of (typeof BookTasks === "undefined" ? require("./tasks.js") : BookTasks).entries())
    sets[`task${t + 1}`] = { text: `task ${t + 1} of the book`, kind: "classes", make: () => points };
  const read = () => require("../book/results/playground/borrowing.json").rows;
  const series = typeof BookSeries === "undefined" ? read() : BookSeries; // joined to the script when the book is built
  const fifty = series[0].points.split(";").map((point) => point.split(",").map(Number));
  sets.fifty = { text: "six tasks of fifty labels, stored", kind: "groups", make: () => fifty, isStored: true };

  /** Values of a state that no preset names. sds: of the weights by layer; group: of the tasks' weights, 0: learnt. */
  const usual = { set: "twelve", count: 50, spread: 0.3, seed: 1, gap: false, width: 5, step: 1, noise: 0 };
  Object.assign(usual, { group: 0.3, without: false, far: false });
  const usualOf = {
    classes: { sds: [1, 1, 1], controls: ["output", "input"] },
    curve: { sds: [1, 1], controls: ["both", "noise"] },
    groups: { sds: [1, 1, 1], controls: ["group", "without"] },
  };

  const presets = {
    start: {},
    "flip-12": {},
    "flip-50": { set: "moons", spread: 0.1, controls: ["output", "count"] }, // the twelve points' two arcs
    "output-scale": { set: "task1" },
    gap: { set: "moons", sds: [1, 1, 8], controls: ["count", "gap"] },
    step: { set: "task1", controls: ["step", "output"] },
    "far-start": { set: "curve", count: 40, spread: 0.1, far: true, step: 0.05, controls: ["step", "far"] },
    group: { set: "six" },
    "group-50": { set: "fifty" },
    "group-without": { set: "six", without: true, controls: ["group"] },
    curve: { set: "curve", count: 40, spread: 0.1 },
    "curve-gap": { set: "wave", count: 40, spread: 0.1, gap: true, controls: ["gap", "count"] },
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
  function place(kind, [x, y], panel = 0) {
    const [limit, height] = limits[kind], [left, top] = cornerOf(panel);
    return [left + (shapeOf(kind).width * (x + limit)) / (2 * limit), top + (SIDE * (height - y)) / (2 * height)];
  }
  /** Inputs at which predictions are drawn: of a curve a line, of classes a square of size x size for each panel. */
  function gridOf(kind, size) {
    const [limit] = limits[kind], line = Array.from({ length: size }, (_, i) => -limit + (2 * limit * i) / (size - 1));
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
    const sizes = [count, spread, group, noise, step];
    if (sets[state.set].isStored && !storedOf(state)) wrong(`group=${group}`);
    if (!(widths.includes(state.width) && sizes.every((v) => v >= 0 && v <= 1000) && step)) wrong("numbers");
    if (!(state.sds.length === layers && state.sds.every((v) => v > 0 && v <= 1000))) wrong("scales");
    return state;
  }

  const drawing = { SIDE, limits, shapeOf, cornerOf, place, gridOf };
  return { drawing, sets, presets, stills, complete, pointsOf, storedOf, farStart, targetOf, encode, decode };
})();
if (typeof module !== "undefined") module.exports = PlaygroundState;
