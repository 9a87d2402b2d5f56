/** The playground's page: every element of class "playground" becomes one. Needs the other scripts of its folder. */
(() => {
  "use strict";
  const { drawing, sets, presets, complete, pointsOf, storedOf, farStart, targetOf, encode, decode } = PlaygroundState;
  const { SIDE, limits, shapeOf, cornerOf, place, gridOf } = drawing;
  const SETTLED = 150; // draws of each chain from which on a picture is called settled, if they agree
  const MOVING = 0.01; // mean acceptance of every chain from which on chains move: those that stand still agree, too
  const APART = 0.2; // range of the chains' mean probabilities from which on they disagree: hatched, and not settled
  const APART_OF_CURVES = 0.7; // the same for curves, in standard deviations of a measurement
  const FAR_STEP = 0.02; // taken for the learnt step size where chains start far out, and none has been learnt
  const ENOUGH = 1000; // draws of each chain after which the sampler rests
  const SIZES = { classes: 25, groups: 13, curve: 101 }, MAP = 160; // points of a grid's side; side of a map's picture
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const disc = (r) => `M-${r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 -${2 * r},0`;
  const marks = { 0: disc(6), 1: "M0,-8L7.5,5.5H-7.5Z", curve: disc(4.5) };
  const surface = "Colour: mean probability of class 1. Line: where it is 1/2.";
  const apart = "Hatched: the chains do not agree.";
  const captions = {
    classes: `${surface} Dashed: the same line of the newest draw alone. ` +
      `Circles: class 0; triangles: class 1. ${apart}`,
    groups: `Six tasks, a panel each. ${surface} ${apart}`,
    stored: `Six tasks, a panel each. ${surface}`,
    curve: "Line: mean curve. Dark band: where the curve lies (2 standard deviations). Light band: where a new " +
      `measurement lies. Dashed: the curve of the newest draw alone. ${apart}`,
  };
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const clamp = (value, limit) => Math.round(100 * Math.min(Math.max(value, -limit), limit)) / 100 + 0;
  let instances = 0;

  // Markup is text, made of this file's own words and of numbers: what a link says otherwise is never part of it.
  const optionOf = (value, text, chosen) =>
    `<option value="${value}" ${value === chosen ? "selected" : ""}>${text}</option>`;
  const cellsOf = (cells) => cells.map((cell) => `<td>${cell}</td>`).join("");
  const rowOf = ([first, ...others]) => `<tr><th scope="row">${first}</th>${cellsOf(others)}</tr>`;
  const headOf = (cells) => cells.map((cell) => `<th scope="col">${cell}</th>`).join("");
  const tableOf = (caption, head, rows) => `<table><caption>${caption}</caption>
    <thead><tr>${headOf(head)}</tr></thead><tbody>${rows.map(rowOf).join("")}</tbody></table>`;

  // What may be changed: its text, values and their names, the kinds that have it, read(state), write(state, value).
  const all = ["classes", "curve", "groups"], made = ["classes", "curve"];
  const scale = (text, layer) => ({
    text, values: [0.125, 0.25, 0.5, 1, 2, 4, 8, 12, 24, 48], kinds: ["classes"], read: ({ sds }) => sds[layer],
    write: ({ sds }, value) => ({ sds: sds.with(layer, value) }),
  });
  const both = { read: ({ sds }) => sds[0], write: (_, value) => ({ sds: [value, value] }) };
  const simple = (name, text, values, kinds, names = {}) => ({
    text, values, names, kinds, read: (state) => state[name], write: (_, value) => ({ [name]: value }),
  });
  const steps = { 0.05: "learnt ÷ 20", 0.25: "learnt ÷ 4", 1: "learnt", 2: "learnt × 2", 4: "learnt × 4" };
  const textsOfSets = Object.fromEntries(Object.entries(sets).map(([name, { text }]) => [name, text]));
  const controls = {
    output: scale("Scale σ of the output weights", 2),
    hidden: scale("Scale σ of the hidden weights", 1),
    input: scale("Scale σ of the input weights", 0),
    both: { text: "Scale σ of all weights", values: [0.1, 0.25, 0.5, 1, 2, 4, 8], kinds: ["curve"], ...both },
    noise: simple("noise", "Noise s", [0, 0.03, 0.1, 0.3, 1], ["curve"], { 0: "learnt" }),
    group: simple("group", "Scale σ of the group", [0.01, 0.03, 0.1, 0.3, 1, 3, 0], ["groups"], { 0: "learnt" }),
    without: simple("without", "Task 1 loses its labels", [false, true], ["groups"]),
    step: simple("step", "Step size", [0.05, 0.25, 1, 2, 4], all, steps),
    far: simple("far", "All chains start at one far place", [false, true], all),
    count: simple("count", "Number of points", [12, 25, 50, 100, 200], made),
    gap: simple("gap", "Empty a gap in the middle", [false, true], made),
    spread: simple("spread", "Noise of the data set", [0.1, 0.2, 0.3, 0.5], all),
    width: simple("width", "Units a hidden layer", [1, 2, 5, 10], all),
    set: simple("set", "Data set", Object.keys(sets), all, textsOfSets),
  };
  const OF_DATA = ["count", "gap", "spread"];
  const OF_STORED = ["group", "without", "set"]; // what may be changed where nothing is sampled
  const isDrawn = ({ set }) => !(set === "twelve" || set.startsWith("task")); // by a generator that makes any number

  function mount(root) {
    const isSmall = root.dataset.size === "small", serial = ++instances, id = (name) => `playground-${serial}-${name}`;
    let initial, state, target, sampler, grid, table, average = null, ranges = null;
    let chosen = 0, paused = false, seen = false, dirty = false, allowed = 0, next = 0, pictures = 0, waiting = 0;
    let dragged = null, wasSettled = false, settledMean = null, moved = null, trouble = "";

    root.innerHTML = PlaygroundParts; // page.html; a small one has less
    const parts = (selector) => [...root.querySelectorAll(selector)];
    const [stage, caption, side, status, spoken, first, , tapBox, others] = parts("[class^=playground-]").slice(1);
    const [canvas, ...maps] = parts("canvas"), strip = maps.pop(), [overlay] = parts("svg"), [link] = parts("a");
    const [pause, reset] = parts("button"), [tapping] = parts("select"), folds = parts("details > div").slice(1);
    if (isSmall) {
      for (const part of [caption, side, pause, ...parts("details")]) part.remove();
      link.textContent = "Open in the playground";
    }
    pause.addEventListener("click", () => setPaused(!paused));
    reset.addEventListener("click", () => open(initial));
    root.addEventListener("toggle", () => tell(), true); // it does not bubble

    const isStored = () => Boolean(sets[state.set].isStored);
    /** Show a state from the beginning. */
    function open(whole) {
      initial ??= whole;
      [state, chosen, settledMean, moved] = [whole, 0, null, null];
      begin();
      layOut();
      const focused = document.activeElement?.id;
      const ofSet = ({ kinds }, name) => kinds.includes(state.kind) && (isDrawn(state) || !OF_DATA.includes(name));
      const fits = (name) =>
        Object.hasOwn(controls, name) && (isStored() ? OF_STORED.includes(name) : ofSet(controls[name], name));
      const named = state.controls.filter(fits), rest = Object.keys(controls).filter((name) => !named.includes(name));
      first.innerHTML = named.map(controlOf).join("");
      others.innerHTML = rest.filter(fits).map(controlOf).join("");
      if (focused?.startsWith(id(""))) document.getElementById(focused)?.focus();
      wake();
    }
    function begin() {
      grid = gridOf(state.kind, SIZES[state.kind]);
      table = Diagnostics.predictionTable(grid);
      target = targetOf(state);
      const start = state.far ? farStart(target.size) : null, capacity = state.kind === "curve" ? 600 : 250;
      sampler = Playground.sampler(target, { start, capacity });
      if (state.far && state.step !== 1) sampler.imposeStepSize(FAR_STEP * state.step);
      [dirty, wasSettled, average] = [false, false, null];
      root.dataset.settled = false;
    }
    /** Change a part of the state; draws are kept where they can be. */
    function change(part) {
      if ("points" in part && isStored()) return;
      const { width } = state;
      state = { ...state, ...part };
      if ("far" in part || state.width !== width || (state.far && "step" in part)) begin();
      else if ("step" in part) {
        sampler.imposeStepSize(null);
        const learnt = Math.exp(mean(sampler.state().stepSize.map(Math.log)));
        if (state.step !== 1) sampler.imposeStepSize(state.step * learnt);
        wasSettled = false;
      } else dirty = true;
      layOut();
      wake();
    }

    const shownAs = (name, value) => String(controls[name].names?.[value] ?? value);
    function controlOf(name) {
      const { text, values, read } = controls[name], value = read(state), shown = shownAs(name, value);
      const label = `<label for="${id(name)}">${text}</label>`, known = `id="${id(name)}" data-name="${name}"`;
      const inBox = (content) => `<div class="playground-control">${content}</div>`;
      const checked = value === true ? "checked" : "";
      if (typeof value === "boolean") return inBox(`<input type="checkbox" ${known} ${checked}>${label}`);
      if (name === "set" || name === "width") {
        const options = values.map((v) => optionOf(v, shownAs(name, v), value));
        return inBox(`${label}<select ${known}>${options.join("")}</select>`);
      }
      const range = `min="0" max="${values.length - 1}" value="${Math.max(values.indexOf(value), 0)}"`;
      const input = `<input type="range" ${known} ${range} aria-valuetext="${shown}">`;
      return inBox(`${label}${input}<output for="${id(name)}">${shown}</output>`);
    }
    root.addEventListener("input", ({ target: input }) => {
      const { name } = input.dataset;
      if (!name) return;
      const { values, write } = controls[name], isRange = input.type === "range";
      const value = input.type === "checkbox" ? input.checked : values[isRange ? input.value : input.selectedIndex];
      const part = write(state, value);
      if (isRange) {
        input.nextElementSibling.textContent = shownAs(name, value);
        input.setAttribute("aria-valuetext", shownAs(name, value));
      }
      if (name === "set") open(complete({ ...part, width: state.width }));
      else change(OF_DATA.includes(name) ? { ...part, points: pointsOf({ ...state, ...part }) } : part);
    });

    /** Everything but the picture, after a change. */
    function layOut() {
      const { kind, points } = state, { extent } = shapeOf(kind);
      overlay.setAttribute("viewBox", `0 0 ${extent.join(" ")}`);
      stage.style.aspectRatio = extent.join(" / ");
      side.hidden = kind !== "classes";
      folds[0].parentElement.hidden = tapBox.hidden = isStored(); // no points to edit
      chosen = Math.max(0, Math.min(chosen, points.length - 1));
      overlay.innerHTML = points.map(markOf).join("");
      choose(chosen);
      caption.textContent = captions[isStored() ? "stored" : kind];
      link.href = `${isSmall ? root.dataset.page : ""}#${encode(state)}`;
      tell();
    }
    const shiftOf = (point) => `translate(${place(state.kind, point, point[3]).join(" ")})`;
    function markOf(point, k) {
      const [x, y, label, task] = point, kind = state.kind === "curve" ? "curve" : label;
      const of = (kind === "curve" ? "" : `, class ${label}`) + (task === undefined ? "" : `, task ${task + 1}`);
      const name = `Point ${k + 1} of ${state.points.length}${of}, at ${x}, ${y}`;
      const isOff = state.without && task === 0 ? "playground-off" : "";
      const named = `id="${id(`point-${k}`)}" role="img" aria-label="${name}" data-k="${k}" class="${isOff}"`;
      return `<g ${named} transform="${shiftOf(point)}"><circle r="14" class="playground-reach" />
        <path d="${marks[kind]}" class="playground-point-${kind}" /></g>`;
    }
    function choose(k) {
      overlay.children[chosen]?.classList.remove("playground-chosen");
      chosen = k;
      overlay.children[chosen]?.classList.add("playground-chosen");
      const flips = state.kind === "curve" ? "" : "F flips its class, ";
      const keys = `Page Up and Page Down choose one, arrow keys move it, ${flips}Delete deletes it, Insert adds one.`;
      const does = isStored() ? "They are stored, and stay as they are." : keys;
      overlay.setAttribute("aria-label", `${state.points.length} points. ${does}`);
      if (state.points.length) overlay.setAttribute("aria-activedescendant", id(`point-${chosen}`));
      else overlay.removeAttribute("aria-activedescendant");
    }

    // Points: by pointer, by keys, and in the table.
    function shifted(k, x, y) {
      const [limit, height] = limits[state.kind];
      return state.points.with(k, [clamp(x, limit), clamp(y, height), ...state.points[k].slice(2)]);
    }
    const move = (k, x, y) => change({ points: shifted(k, x, y) });
    const remove = (k) => change({ points: state.points.toSpliced(k, 1) });
    function flip(k) {
      const point = state.points[k];
      if (state.kind !== "curve") change({ points: state.points.with(k, point.with(2, 1 - point[2])) });
    }
    function add(x, y, label, task) {
      if (state.points.length >= 400) return;
      const [limit, height] = limits[state.kind];
      const more = { classes: [label], groups: [label, task], curve: [] }[state.kind];
      change({ points: [...state.points, [clamp(x, limit), clamp(y, height), ...more]] });
      choose(state.points.length - 1);
    }
    /** Coordinates of the data, and the panel, of a place on the screen. */
    function locate(event) {
      const { left, top, width: seenWidth } = overlay.getBoundingClientRect(), [limit, height] = limits[state.kind];
      const { extent, width, panels } = shapeOf(state.kind), unit = extent[0] / seenWidth;
      const [u, v] = [(event.clientX - left) * unit, (event.clientY - top) * unit];
      const under = Math.min(Math.floor(u / width) + 3 * Math.floor(v / SIDE), panels - 1);
      const panel = dragged ? (state.points[dragged.k][3] ?? 0) : under, [a, b] = cornerOf(panel);
      return { x: (2 * limit * (u - a)) / width - limit, y: height - (2 * height * (v - b)) / SIDE, panel };
    }
    overlay.addEventListener("pointerdown", (event) => {
      const mark = event.target.closest("g");
      if (!mark || event.button !== 0) return;
      choose(Number(mark.dataset.k));
      dragged = { k: chosen, from: [event.clientX, event.clientY], isFar: false, to: null };
      overlay.setPointerCapture(event.pointerId);
      overlay.focus({ preventScroll: true });
      event.preventDefault();
    });
    overlay.addEventListener("pointermove", (event) => {
      if (!dragged) return;
      dragged.isFar ||= Math.hypot(event.clientX - dragged.from[0], event.clientY - dragged.from[1]) > 4;
      if (dragged.isFar) dragged.to = locate(event);
      wake();
    });
    overlay.addEventListener("pointerup", (event) => {
      const { x, y, panel } = locate(event);
      if (dragged?.isFar) move(dragged.k, x, y);
      else if (dragged) tapping.value === "delete" ? remove(dragged.k) : flip(dragged.k);
      else if (["0", "1"].includes(tapping.value)) add(x, y, Number(tapping.value), panel);
      dragged = null;
    });
    overlay.addEventListener("pointercancel", () => (dragged = null));
    overlay.addEventListener("keydown", (event) => {
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key, length = event.shiftKey ? 0.5 : 0.1;
      const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
      const point = state.points[chosen], count = state.points.length;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (key === "Insert" || key === "a") add(0, 0, 1, 0);
      else if (!point) return;
      else if (by) move(chosen, point[0] + length * by[0], point[1] + length * by[1]);
      else if (key === "f") flip(chosen);
      else if (key === "Delete" || key === "Backspace") remove(chosen);
      else if (key === "PageDown" || key === "PageUp") choose((chosen + (key === "PageDown" ? 1 : count - 1)) % count);
      else return;
      event.preventDefault();
    });

    // Tables, made anew only while they are open.
    function tell() {
      const fill = [pointsTable, surfaceTable, chainsTable];
      folds.forEach((part, k) => {
        const isUsed = part.contains(document.activeElement) && part.querySelector("input, select");
        if (part.parentElement.open && !isUsed && (k === 0 || average)) part.innerHTML = fill[k]();
      });
    }
    function pointsTable() {
      const [limit, height] = limits[state.kind];
      const rows = state.points.map((point, k) => {
        const number = (c, most) => `<input type="number" step="0.1" min="${-most}" max="${most}" value="${point[c]}"
          aria-label="${c ? "second" : "first"} coordinate of point ${k + 1}" data-k="${k}" data-c="${c}">`;
        const known = `data-k="${k}" aria-label="class of point ${k + 1}"`;
        const label = `<select ${known}>${[0, 1].map((v) => optionOf(v, v, point[2])).join("")}</select>`;
        const more = [label, point[3] + 1].slice(0, point.length - 2); // groups have both, curves neither
        const drop = `<button type="button" data-k="${k}" aria-label="Delete point ${k + 1}">Delete</button>`;
        return [k + 1, number(0, limit), number(1, height), ...more, drop];
      });
      const columns = { classes: ["x₁", "x₂", "Class"], groups: ["x₁", "x₂", "Class", "Task"], curve: ["x", "y"] };
      const head = ["Point", ...columns[state.kind], "Remove"];
      const points = tableOf("The points. What is changed here changes in the picture.", head, rows);
      return `${points}<button type="button">Add a point</button>`;
    }
    folds[0].addEventListener("change", ({ target: { dataset, value } }) => {
      const k = Number(dataset.k), [x, y] = state.points[k];
      if (dataset.c) move(k, ...[x, y].with(Number(dataset.c), Number(value)));
      else flip(k);
    });
    folds[0].addEventListener("click", ({ target }) => {
      if (!target.matches("button")) return;
      if (target.dataset.k) remove(Number(target.dataset.k));
      else add(0, 0, 1, 0);
      folds[0].innerHTML = pointsTable();
    });
    function surfaceTable() {
      const size = SIZES[state.kind], [limit] = limits[state.kind];
      const as = { true: "settled", false: "not settled yet", stored: "stored" }[root.dataset.settled];
      const { mean: p, epistemic, aleatoric } = average, at = (i) => ((2 * limit * i) / (size - 1) - limit).toFixed(1);
      if (state.kind === "curve") {
        const numbers = (i) => [p[i], Math.sqrt(epistemic[i]), Math.sqrt(epistemic[i] + aleatoric[i])];
        const rows = [0, 17, 33, 50, 67, 83, 100].map((i) => [at(i), ...numbers(i).map((v) => v.toFixed(2))]);
        return tableOf(`Curve and bands (${as}).`, ["x", "mean", "sd of the curve", "sd of a measurement"], rows);
      }
      const { panels } = shapeOf(state.kind), shares = [0.1, 0.3, 0.5, 0.7, 0.9];
      const picks = shares.map((share) => Math.round((size - 1) * share)), head = ["x₂", ...picks.map(at)];
      const tables = Array.from({ length: panels }, (_, panel) => {
        const row = (j) => [at(j), ...picks.map((i) => p[(panel * size + j) * size + i].toFixed(2))];
        const of = panels > 1 ? `, task ${panel + 1}` : "";
        const text = `Mean probability of class 1${of} (${as}); across: x₁, down: x₂.`;
        return tableOf(text, head, picks.toReversed().map(row));
      });
      return tables.join("");
    }
    function chainsTable() {
      if (isStored()) return status.innerHTML;
      const { draws, kind } = sampler.shown(), { acceptance, stepSize, divergences } = sampler.state();
      if (!["fresh", "imposed"].includes(kind) || Math.min(...draws.made) < 20) return "Too few new draws yet.";
      const series = { "log density": Diagnostics.series(draws, (row) => draws.logDensity[row]) };
      const n = ranges.indexOf(Math.max(...ranges));
      const p = Diagnostics.series(draws, (row) => table.of(draws.id[row])?.[n] ?? NaN);
      const isWhole = p.every((chain) => chain.every(Number.isFinite));
      if (isWhole) series["prediction where the chains differ most"] = p;
      const numbers = (s) => [Diagnostics.rhat(s).toFixed(2), Diagnostics.effectiveSampleSize(s).toFixed(0)];
      const rows = Object.entries(series).map(([name, s]) => [name, ...numbers(s)]);
      const list = (values) => Array.from(values, (value) => value.toPrecision(2)).join(", ");
      const rates = `Acceptance of the four chains: ${list(acceptance)}. Step sizes: ${list(stepSize)}.`;
      const text = `${Math.min(...draws.made)} draws of each chain, of which the last ${draws.capacity} are kept.`;
      const told = tableOf(text, ["Quantity", "R-hat", "Effective sample size"], rows);
      return `${told}<p>${rates} Divergences: ${divergences}.</p>`;
    }

    // The picture.
    /** Largest less smallest of the chains' means at a point of the grid; of curves in sds of a measurement. */
    function range(n) {
      const unit = state.kind === "curve" ? Math.sqrt(average.epistemic[n] + average.aleatoric[n]) : 1;
      const values = average.chains.map((chain) => chain[n]);
      return (Math.max(...values) - Math.min(...values)) / unit;
    }
    function paint() {
      const { draws, weights, kind } = sampler.shown();
      if (!draws.id.some((made) => made && table.of(made))) return;
      average = table.average(draws, weights);
      ranges = average.mean.map((_, n) => range(n));
      const newest = kind === "reweighted" ? null : table.of(Math.max(...draws.id));
      const ctx = Paint.context(canvas, ...shapeOf(state.kind).extent);
      (state.kind === "curve" ? paintCurve : paintSurfaces)(ctx, newest);
      if (!isSmall && state.kind === "classes" && (pictures++ % 4 === 0 || isDone())) {
        for (const map of maps) {
          const name = map.dataset.map;
          Paint.surface(Paint.context(map, MAP, MAP), average[name], SIZES.classes, name, 0.25, 0, 0, MAP);
        }
        const isLine = Math.min(...draws.made) > 10;
        if (isLine) Paint.traces(strip, Diagnostics.series(draws, (row) => draws.logDensity[row]));
      }
      report(kind, draws);
    }
    function paintSurfaces(ctx, one) {
      const size = SIZES[state.kind], cells = size * size, unit = SIDE / (size - 1), { panels } = shapeOf(state.kind);
      for (let panel = 0; panel < panels; panel++) {
        const [left, top] = cornerOf(panel), part = average.mean.subarray(panel * cells, (panel + 1) * cells);
        const to = ([a, b, c, d]) => [[a, b], [c, d]].map(([i, j]) => [left + unit * i, top + SIDE - unit * j]);
        const boundary = (values) => Paint.contour(values, size, 0.5).map(to), apart = [];
        Paint.surface(ctx, part, size, "probability", 1, left, top, SIDE);
        for (let n = 0; n < cells; n++) {
          const [i, j] = [n % size, Math.floor(n / size)];
          if (ranges[panel * cells + n] > APART) apart.push([i - 0.5, j - 0.5, i + 0.5, j + 0.5]);
        }
        Paint.lines(ctx, apart.map(to), "#666", 1);
        if (one && panels === 1) Paint.lines(ctx, boundary(one), "#444", 1, [3, 3]);
        Paint.lines(ctx, boundary(part), "black", 2);
        Object.assign(ctx, { strokeStyle: "#888", lineWidth: 1, fillStyle: "#222", font: "18px sans-serif" });
        if (panels > 1) ctx.strokeRect(left, top, SIDE, SIDE);
        if (panels > 1) ctx.fillText(`task ${panel + 1}`, left + 8, top + 22);
      }
      if (panels === 1) axes(ctx, [-2, 0, 2]);
    }
    function paintCurve(ctx, one) {
      const { mean: middle, epistemic, aleatoric } = average;
      const points = (value) => Array.from(grid, (x, i) => place("curve", [x, value(i)]));
      for (const [noise, style] of [[1, "#DCE9F4"], [0, "#8DB9DD"]]) {
        const away = (sign) => points((i) => middle[i] + 2 * sign * Math.sqrt(epistemic[i] + noise * aleatoric[i]));
        Paint.band(ctx, away(-1), away(1), style);
      }
      if (one) Paint.lines(ctx, [points((i) => one[i])], "#444", 1, [4, 3]);
      Paint.lines(ctx, [points((i) => middle[i])], "#0B3C5D", 2);
      const apart = points(() => 0).filter((_, i) => ranges[i] > APART_OF_CURVES);
      Paint.lines(ctx, apart.map(([x]) => [[x, 0], [x - 8, SIDE]]), "#888", 0.7);
      axes(ctx, [-1, 0, 1]);
    }
    /** Ticks and their numbers, inside the frame. */
    function axes(ctx, ticks) {
      Object.assign(ctx, { fillStyle: "#444", font: "9px sans-serif" });
      for (const tick of ticks) {
        const [x, y] = place(state.kind, [tick, tick]);
        ctx.fillRect(x, SIDE - 4, 1, 4);
        ctx.fillText(tick, x - 3, SIDE - 7);
        ctx.fillRect(0, y, 4, 1);
        ctx.fillText(tick, 6, y + 3);
      }
    }

    function showStored() {
      const { mean: p, rhat } = storedOf(state);
      average = { mean: p };
      ranges = p.map(() => 0);
      paintSurfaces(Paint.context(canvas, ...shapeOf(state.kind).extent), null);
      root.dataset.settled = "stored";
      const text = `Stored, not sampled here: eight chains of the book's sampler, R-hat ${rhat.toFixed(2)} at most.`;
      if (status.textContent !== text) status.textContent = spoken.textContent = trouble + text;
      tell();
    }

    /** Whether there are enough draws of the target as it is, by step sizes as they are. */
    const isLong = () => ["fresh", "imposed"].includes(sampler.shown().kind) && sampler.state().draws >= SETTLED;
    const isDone = () => isLong() && Math.min(...sampler.shown().draws.made) >= ENOUGH;
    /** Say how it goes; aloud only once, when it has settled. */
    function report(kind, draws) {
      const { tuned, draws: held, acceptance } = sampler.state(), number = Math.min(...draws.made);
      const spread = Math.max(...ranges), percent = Math.round(100 * tuned);
      const isCurve = state.kind === "curve", moves = Math.min(...acceptance) >= MOVING;
      const settled = isLong() && moves && spread <= (isCurve ? APART_OF_CURVES : APART);
      const apart = `the chains' means differ by ${spread.toFixed(2)}${isCurve ? " standard deviations" : ""} at most`;
      const rate = `acceptance ${mean(acceptance).toFixed(2)}`, now = `${held} of ${SETTLED} a chain`;
      const tuning = tuned < 1 ? `once the step size is tuned, ${percent} %` : "";
      let text = `${settled ? "Settled" : "Not settled"}: ${number} draws a chain; ${apart}; ${rate}.`;
      if (kind === "warm-up") text = `Not settled: draws of the tuning; new ones: ${tuning || now}.`;
      else if (kind === "reweighted")
        text = `Not settled: draws from before the change, reweighted; new ones: ${tuning || now}.`;
      else if (isLong() && !moves) text = `Not settled: chains that do not move agree on nothing; ${rate}.`;
      else if (!isLong()) text = `Not settled: draws: ${now}; ${rate}.`;
      if (settled && !wasSettled) {
        const isSame = settledMean?.length === average.mean.length;
        if (isSame) moved = mean(settledMean.map((old, n) => Math.abs(old - average.mean[n])));
        settledMean = average.mean;
        wasSettled = true;
        tell();
        spoken.textContent = trouble + text + movement();
      }
      status.textContent = trouble + text + (settled ? movement() : "");
      root.dataset.settled = settled;
    }
    function movement() {
      const what = state.kind === "curve" ? "curve" : "surface";
      return moved === null ? "" : ` The ${what} moved by ${moved.toFixed(2)} on average since the change.`;
    }

    // The loop: a slice of sampling and one of predicting, and a picture now and then.
    function frame(now) {
      waiting = 0;
      if (isStored()) return showStored();
      if (dragged?.to) {
        state = { ...state, points: shifted(dragged.k, dragged.to.x, dragged.to.y) };
        overlay.children[dragged.k].setAttribute("transform", shiftOf(state.points[dragged.k]));
        [dragged.to, dirty] = [null, true];
      }
      let begun = performance.now();
      if (dirty && now >= allowed) {
        target = targetOf(state);
        sampler.retarget(target);
        [dirty, wasSettled] = [false, false];
        allowed = 6 * performance.now() - 5 * begun; // weighing old draws again takes a sixth of the time at most
      }
      if (!isDone()) sampler.advance({ milliseconds: dragged ? 2 : 7 }); // while dragged, all is soon out of date
      const { draws, next: following } = sampler.shown();
      let missing = table.update(draws, target, { milliseconds: 4 });
      if (following !== draws) missing += table.update(following, target, { milliseconds: 2 });
      begun = performance.now();
      if (calm.matches ? isLong() : now >= next || (isDone() && !missing)) {
        paint();
        next = Math.max(now + 60, 4 * performance.now() - 3 * begun); // pictures take a quarter
      }
      if (!isDone() || missing || dirty) wake();
    }
    function wake() {
      if (!waiting && seen && !paused && !document.hidden) waiting = requestAnimationFrame(frame);
    }
    function setPaused(value) {
      paused = value;
      pause.setAttribute("aria-pressed", String(value));
      pause.textContent = value ? "Go on" : "Pause";
      wake();
    }
    new IntersectionObserver(([entry]) => {
      seen = entry.isIntersecting;
      wake();
    }).observe(stage);
    document.addEventListener("visibilitychange", wake);

    /** Open what the address says after #: a preset, or a whole state; say so where it can not be read. */
    function openLink() {
      trouble = "";
      try {
        const text = decodeURIComponent(location.hash.slice(1)), isState = text.includes("=");
        if (!isState && !Object.hasOwn(presets, text)) return false;
        const whole = isState ? decode(text) : complete(presets[text]);
        initial = null;
        open(whole);
        return true;
      } catch (error) {
        trouble = `This link can not be opened (${error.message}). `;
        wake(); // one more picture, or a playground at rest would not say it
        return false;
      }
    }
    const names = root.dataset.controls ? { controls: root.dataset.controls.split(" ") } : {};
    if (isSmall || !openLink()) open(complete({ ...presets[root.dataset.preset], ...names }));
    if (!isSmall) window.addEventListener("hashchange", () => openLink() && root.scrollIntoView());
    root.playground = { state: () => state, average: () => average, sampler: () => sampler }; // for tests
  }

  // A static picture stands in its place until it is nearly in sight.
  const near = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      near.unobserve(target);
      mount(target);
    }
  }, { rootMargin: "200px" });
  document.querySelectorAll("div.playground").forEach((root) => near.observe(root));
})();
