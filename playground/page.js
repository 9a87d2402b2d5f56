/** The playground's page: every element of class "playground" becomes one. Needs the other scripts of its folder. */
(() => {
  "use strict";
  const { limits, sets, presets, complete, pointsOf, farStart, targetOf, encode, decode } = PlaygroundState;
  const SETTLED = 150; // draws of each chain from which on a surface is called settled, if they agree
  const APART = 0.1, MIXED = 0.2; // ranges of the chains' mean probabilities: hatched; called chains that disagree
  const APART_OF_CURVES = 0.7; // the same in standard deviations of a measurement: hatched, and disagreement
  const ENOUGH = 1000; // draws of each chain after which the sampler rests
  const SIDE = 300, SIZES = { classes: 25, groups: 13, curve: 101 };
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const shapes = { 0: "M-6,0a6,6 0 1,0 12,0a6,6 0 1,0 -12,0", 1: "M0,-8L7.5,5.5H-7.5Z", curve: "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0" };
  let instances = 0;

  function element(name, attributes = {}, ...children) {
    const isSvg = ["svg", "g", "path", "circle", "title"].includes(name);
    const made = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
    made.append(...children);
    return made;
  }

  /** What may be changed: text; values and their names; read(state), write(state, value) -> changes; when it is there. */
  const scale = (text, layer) => ({
    text, values: [0.125, 0.25, 0.5, 1, 2, 4, 8, 12, 24, 48], kinds: ["classes"], read: ({ sds }) => sds[layer],
    write: ({ sds }, value) => ({ sds: sds.with(layer, value) }),
  });
  const simple = (name, text, values, names, kinds, more = {}) => ({
    text, values, names, kinds, read: (state) => state[name], write: (_, value) => ({ [name]: value }), ...more,
  });
  const all = ["classes", "curve", "groups"];
  const controls = {
    output: scale("Scale σ of the output weights", 2),
    hidden: scale("Scale σ of the hidden weights", 1),
    input: scale("Scale σ of the input weights", 0),
    both: {
      text: "Scale σ of all weights", values: [0.1, 0.25, 0.5, 1, 2, 4, 8], kinds: ["curve"], read: ({ sds }) => sds[0],
      write: (_, value) => ({ sds: [value, value] }),
    },
    noise: simple("noise", "Noise s", [0, 0.03, 0.1, 0.3, 1], { 0: "learnt" }, ["curve"]),
    group: simple("group", "Scale σ of the group", [0.01, 0.03, 0.1, 0.3, 1, 3, 0], { 0: "learnt" }, ["groups"]),
    without: simple("without", "Task 1 loses its labels", [false, true], null, ["groups"]),
    step: simple("step", "Step size", [0.05, 0.25, 1, 2, 4], { 0.05: "learnt ÷ 20", 0.25: "learnt ÷ 4", 1: "learnt", 2: "learnt × 2", 4: "learnt × 4" }, all),
    far: simple("far", "All chains start at one far place", [false, true], null, all),
    count: simple("count", "Number of points", [12, 25, 50, 100, 200], null, ["classes", "curve"], { draws: true }),
    gap: simple("gap", "Empty a gap in the middle", [false, true], null, ["classes", "curve"], { draws: true }),
    spread: simple("spread", "Noise of the data set", [0.1, 0.2, 0.3, 0.5], null, all, { draws: true }),
    width: simple("width", "Units a hidden layer", [1, 2, 5, 10], null, all),
    set: simple("set", "Data set", Object.keys(sets), Object.fromEntries(Object.entries(sets).map(([k, s]) => [k, s.text])), all, { draws: true }),
  };
  const isDrawn = ({ set }) => !(set === "twelve" || set.startsWith("task")); // by a generator that makes any number

  function mount(root) {
    const isSmall = root.dataset.size === "small", serial = ++instances, id = (name) => `playground-${serial}-${name}`;
    let initial, state, target, sampler, table, grid, average, chosen = 0, tap = "flip", paused = false, seen = false;
    let dirty = null, allowed = 0, next = 0, pictures = 0, waiting = 0, wasSettled = false, settledMean = null, moved = null, spread = NaN;

    // The parts of the page.
    const canvas = element("canvas", { "aria-hidden": "true" });
    const overlay = element("svg", { tabindex: 0, role: "application", "aria-roledescription": "points to move" });
    const stage = element("div", { class: "playground-stage" }, canvas, overlay);
    const small = ["epistemic", "aleatoric"].map((name) => element("canvas", { role: "img", "aria-label": `Map of the ${name} variance`, "data-map": name }));
    const strip = element("canvas", { role: "img", "aria-label": "Traces of the log density of four chains" });
    const sides = element("div", { class: "playground-side" });
    const status = element("p", { class: "playground-status" }), spoken = element("p", { class: "playground-spoken", role: "status" });
    const box = element("div", { class: "playground-controls" }), others = element("div", { class: "playground-controls" });
    const pause = element("button", { type: "button", "aria-pressed": "false", onclick: () => setPaused(!paused) }, "Pause");
    const reset = element("button", { type: "button", onclick: () => open(initial) }, "Reset");
    const folds = {
      points: element("div"), surface: element("div"), chains: element("div"),
    };
    const fold = (title, content) => element("details", { ontoggle: () => tell(true) }, element("summary", {}, title), content);

    const figure = (part, caption) => element("figure", {}, part, element("figcaption", {}, caption));
    const captionOfStage = element("p", { class: "playground-caption" });
    const tapping = element("select", { id: id("tap"), onchange: (event) => (tap = event.target.value) });
    for (const [value, text] of [["flip", "flips a point"], ["delete", "deletes a point"], ["0", "adds a point of class 0"], ["1", "adds a point of class 1"]])
      tapping.append(element("option", { value }, text));
    const link = element("a", { href: "#" }, isSmall ? "Open in the playground" : "Link to what is shown");
    const tapBox = element("div", { class: "playground-control" }, element("label", { for: id("tap") }, "A click or tap"), tapping);
    if (isSmall) root.replaceChildren(stage, status, box, element("div", { class: "playground-buttons" }, reset, link), spoken);
    else {
      sides.append(figure(small[0], "Epistemic variance: what more data would settle"), figure(small[1], "Aleatoric variance: what stays"), figure(strip, "Log density of the four chains"));
      root.replaceChildren(
        element("div", { class: "playground-top" }, element("div", {}, stage, captionOfStage), sides), status, spoken, box,
        element("div", { class: "playground-buttons" }, pause, reset, link), fold("Data, network and prior", element("div", {}, tapBox, others)),
        fold("Points as a table", folds.points), fold("What is shown, as a table", folds.surface), fold("How the chains agree: R-hat", folds.chains),
      );
    }

    const panels = () => (state.kind === "groups" ? 6 : 1), columns = () => (state.kind === "groups" ? 3 : 1);
    const wide = () => (state.kind === "curve" ? 1.5 * SIDE : SIDE);
    const corner = (panel) => [SIDE * (panel % 3), SIDE * Math.floor(panel / 3)];
    const extent = () => [wide() * columns(), (SIDE * panels()) / columns()];
    function place([x, y], panel = 0) {
      const [limit, height] = limits[state.kind], [left, top] = corner(panel);
      return [left + (wide() * (x + limit)) / (2 * limit), top + (SIDE * (height - y)) / (2 * height)];
    }
    /** Coordinates of the data, and the panel, of a place on the screen. */
    function locate(event) {
      const { left, top, width } = overlay.getBoundingClientRect(), [limit, height] = limits[state.kind];
      const [u, v] = [event.clientX - left, event.clientY - top].map((d) => (d * extent()[0]) / width);
      const panel = Math.floor(u / wide()) + 3 * Math.floor(v / SIDE), [a, b] = corner(panel);
      const [x, y] = [((u - a) / wide()) * 2 * limit - limit, height - ((v - b) / SIDE) * 2 * height];
      return { x, y, panel };
    }
    const clamp = (value, limit) => Math.round(100 * Math.min(Math.max(value, -limit), limit)) / 100;

    /** Show a state from the beginning. */
    function open(whole) {
      initial = initial ?? whole;
      [state, chosen, average, settledMean, moved] = [whole, 0, null, null, null];
      begin();
      layOut();
    }
    function begin() {
      const size = SIZES[state.kind], [limit] = limits[state.kind];
      const at = (i) => -limit + (2 * limit * i) / (size - 1);
      const flat = state.kind === "curve" ? Array.from({ length: size }, (_, i) => at(i))
        : Array.from({ length: size * size }, (_, n) => [at(n % size), at(Math.floor(n / size))]).flat();
      grid = Float64Array.from(Array.from({ length: panels() }, () => flat).flat());
      table = Diagnostics.predictionTable(grid);
      target = targetOf(state);
      const start = state.far ? farStart(target.size) : null;
      sampler = Playground.sampler(target, { start, capacity: state.kind === "curve" ? 600 : 250 });
      if (state.far && state.step !== 1) sampler.imposeStepSize(0.1 * state.step);
      [dirty, wasSettled, average] = [null, false, null];
    }
    /** Change a part of the state; draws are kept where they can be. */
    function change(part, { anew = false } = {}) {
      const before = state;
      state = { ...state, ...part };
      if (anew || "far" in part || state.width !== before.width || (state.far && "step" in part)) begin();
      else if ("step" in part) {
        sampler.imposeStepSize(null);
        if (state.step !== 1) sampler.imposeStepSize(state.step * Math.exp(mean(sampler.state().stepSize.map(Math.log))));
        wasSettled = false;
      } else dirty = part;
      layOut(!("points" in part) || part.points.length !== before.points.length);
      wake();
    }
    const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

    // Controls.
    function control(name) {
      const { text, values, names, read, write, draws } = controls[name], value = read(state), own = id(name);
      const label = element("label", { for: own }, text), show = (v) => String(names?.[v] ?? v);
      function set(next) {
        const part = write(state, next);
        if (!draws) return change(part);
        const whole = name === "set" ? complete({ set: next, controls: defaults(next), width: state.width }) : { ...state, ...part };
        return name === "set" ? switchTo(whole) : change({ ...part, points: pointsOf(whole) });
      }
      if (typeof values[0] === "boolean") {
        const input = element("input", { type: "checkbox", id: own, checked: value, onchange: (event) => set(event.target.checked) });
        return element("div", { class: "playground-control" }, input, label);
      }
      if (typeof values[0] === "string" || name === "width") {
        const select = element("select", { id: own, onchange: (event) => set(values[event.target.selectedIndex]) });
        select.append(...values.map((v) => element("option", { selected: v === value }, show(v))));
        return element("div", { class: "playground-control" }, label, select);
      }
      const output = element("output", { for: own }, show(value)), index = values.indexOf(value);
      const input = element("input", { type: "range", id: own, min: 0, max: values.length - 1, "aria-valuetext": show(value) });
      input.value = index < 0 ? values.findIndex((v) => v > value) : index;
      input.addEventListener("input", () => {
        const next = values[input.value];
        output.textContent = show(next);
        input.setAttribute("aria-valuetext", show(next));
        set(next);
      });
      return element("div", { class: "playground-control" }, label, input, output);
    }
    const defaults = (set) => ({ classes: ["output", "input"], curve: ["both", "noise"], groups: ["group", "without"] })[sets[set].kind];
    function switchTo(whole) {
      open(whole);
      wake();
    }

    /** Everything but the picture, after a change. */
    function layOut(withControls = true) {
      const [width, height] = extent(), { kind, points } = state;
      overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
      stage.style.aspectRatio = `${width} / ${height}`;
      sides.hidden = kind !== "classes";
      root.classList.toggle("playground-wide", kind === "groups");
      for (const name of ["epistemic", "aleatoric"]) small[Number(name === "aleatoric")].closest("figure")?.toggleAttribute("hidden", kind !== "classes");
      const fits = (name) => controls[name]?.kinds.includes(kind) && (!["count", "gap", "spread"].includes(name) || isDrawn(state));
      const first = state.controls.filter(fits), focused = document.activeElement?.id;
      if (withControls && !box.contains(document.activeElement) && !others.contains(document.activeElement)) {
        box.replaceChildren(...first.map(control));
        others.replaceChildren(...Object.keys(controls).filter((name) => fits(name) && !first.includes(name)).map(control));
      } else if (withControls && focused?.endsWith("-set")) others.replaceChildren();
      chosen = Math.max(0, Math.min(chosen, points.length - 1));
      overlay.replaceChildren(...points.map(pointOf));
      tellPoint();
      captionOfStage.textContent = {
        classes: "Colour: mean probability of class 1. Line: where it is 1/2. Dashed: the same line of the newest draw alone. Circles: class 0; triangles: class 1. Hatched: the chains do not agree.",
        groups: "Six tasks, a panel each. Colour: mean probability of class 1. Line: where it is 1/2. Hatched: the chains do not agree.",
        curve: "Line: mean curve. Dark band: where the curve lies (2 standard deviations). Light band: where a new measurement lies. Dashed: the curve of the newest draw alone.",
      }[kind];
      if (isSmall) link.href = `${root.dataset.page}#${encode(state)}`;
      else link.href = `#${encode(state)}`;
      tell(true);
    }
    const nameOf = (point, k) => {
      const [x, y, label, task] = point;
      const of = state.kind === "curve" ? "" : `, class ${label}${task === undefined ? "" : `, task ${task + 1}`}`;
      return `Point ${k + 1} of ${state.points.length}${of}, at ${x}, ${y}`;
    };
    function pointOf(point, k) {
      const [x, y] = place(point, point[3]), isOff = state.without && point[3] === 0;
      const made = element("g", { id: id(`point-${k}`), transform: `translate(${x} ${y})`, role: "img", "aria-label": nameOf(point, k), "data-k": k });
      made.append(element("circle", { r: 14, class: "playground-reach" }), element("path", { d: shapes[state.kind === "curve" ? "curve" : point[2]], class: `playground-point-${state.kind === "curve" ? "curve" : point[2]}` }));
      if (isOff) made.classList.add("playground-off");
      return made;
    }
    function tellPoint() {
      overlay.querySelector(".playground-chosen")?.classList.remove("playground-chosen");
      overlay.children[chosen]?.classList.add("playground-chosen");
      overlay.setAttribute("aria-activedescendant", state.points.length ? id(`point-${chosen}`) : "");
      overlay.setAttribute("aria-label", `${state.points.length} points. Page Up and Page Down choose one, arrow keys move it${state.kind === "curve" ? "" : ", F flips its class"}, Delete deletes it, Insert adds one.`);
    }

    // Points: by pointer, by keys, and in the table.
    const replaced = (k, point) => state.points.with(k, point);
    const move = (k, x, y) => {
      const [limit, height] = limits[state.kind];
      change({ points: replaced(k, [clamp(x, limit), clamp(y, height), ...state.points[k].slice(2)]) });
    };
    const flip = (k) => state.kind !== "curve" && change({ points: replaced(k, state.points[k].with(2, 1 - state.points[k][2])) });
    const remove = (k) => change({ points: state.points.toSpliced(k, 1) });
    function add(x, y, label, task) {
      if (state.points.length >= 400) return;
      const [limit, height] = limits[state.kind], at = [clamp(x, limit), clamp(y, height)];
      chosen = state.points.length;
      change({ points: [...state.points, { classes: [...at, label], groups: [...at, label, task], curve: at }[state.kind]] });
    }
    let dragged = null;
    overlay.addEventListener("pointerdown", (event) => {
      const hit = event.target.closest("g");
      if (!hit || event.button !== 0) return;
      chosen = Number(hit.dataset.k);
      dragged = { k: chosen, from: [event.clientX, event.clientY], far: false };
      overlay.setPointerCapture(event.pointerId);
      overlay.focus({ preventScroll: true });
      event.preventDefault();
      tellPoint();
    });
    overlay.addEventListener("pointermove", (event) => {
      if (!dragged) return;
      dragged.far ||= Math.hypot(event.clientX - dragged.from[0], event.clientY - dragged.from[1]) > 4;
      if (dragged.far) dragged.to = locate(event);
      wake();
    });
    overlay.addEventListener("pointerup", (event) => {
      const { k, far } = dragged ?? {}, { x, y, panel } = locate(event);
      if (dragged && !far) tap === "delete" ? remove(k) : flip(k);
      else if (!dragged && "01".includes(tap) && panel < panels()) add(x, y, Number(tap), panel);
      dragged = null;
      root.dispatchEvent(new Event("change"));
    });
    overlay.addEventListener("pointercancel", () => (dragged = null));
    overlay.addEventListener("keydown", (event) => {
      const { key } = event, last = state.points.length - 1, stepOf = event.shiftKey ? 0.5 : 0.1, point = state.points[chosen];
      const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (key === "Insert" || key.toLowerCase() === "a") add(0, 0, 1, 0);
      else if (!point) return;
      else if (by) move(chosen, point[0] + stepOf * by[0], point[1] + stepOf * by[1]);
      else if (key.toLowerCase() === "f") flip(chosen);
      else if (key === "Delete" || key === "Backspace") remove(chosen);
      else if (key === "PageDown") chosen = chosen === last ? 0 : chosen + 1;
      else if (key === "PageUp") chosen = chosen === 0 ? last : chosen - 1;
      else return;
      event.preventDefault();
      tellPoint();
    });

    // Tables, each made anew only while it is open.
    const isOpen = (part) => part.parentElement?.open;
    function tell(withPoints) {
      if (isSmall || !state) return;
      if (withPoints && isOpen(folds.points) && !folds.points.contains(document.activeElement)) pointsTable();
      if (!average) return;
      if (isOpen(folds.surface)) surfaceTable();
      if (isOpen(folds.chains)) chainsTable();
    }
    const rowOf = (cells, tag = "td") => element("tr", {}, ...cells.map((cell, k) => element(k ? tag : "th", k ? {} : { scope: "row" }, cell)));
    const tableOf = (head, rows, caption) => element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", { scope: "col" }, cell)))), element("tbody", {}, ...rows));
    function pointsTable() {
      const isCurve = state.kind === "curve", [limit, height] = limits[state.kind];
      const rows = state.points.map((point, k) => {
        const number = (c, most) => element("input", {
          type: "number", step: 0.1, min: -most, max: most, value: point[c], "aria-label": `${c ? "second" : "first"} coordinate of point ${k + 1}`,
          onchange: (event) => move(k, c ? state.points[k][0] : Number(event.target.value), c ? Number(event.target.value) : state.points[k][1]),
        });
        const label = () => {
          const select = element("select", { "aria-label": `class of point ${k + 1}`, onchange: () => flip(k) });
          select.append(...[0, 1].map((v) => element("option", { selected: v === point[2] }, String(v))));
          return select;
        };
        const drop = element("button", { type: "button", "aria-label": `Delete point ${k + 1}`, onclick: () => (remove(k), pointsTable()) }, "Delete");
        return rowOf([String(k + 1), number(0, limit), number(1, height), ...(isCurve ? [] : [label()]), ...(point.length > 3 ? [String(point[3] + 1)] : []), drop]);
      });
      const head = ["Point", isCurve ? "x" : "x₁", isCurve ? "y" : "x₂", ...(isCurve ? [] : ["Class"]), ...(state.kind === "groups" ? ["Task"] : []), ""];
      const more = element("button", { type: "button", onclick: () => (add(0, 0, 1, 0), pointsTable()) }, "Add a point");
      folds.points.replaceChildren(tableOf(head, rows, "The points; a change here is one there."), more);
    }
    function surfaceTable() {
      const size = SIZES[state.kind], [limit] = limits[state.kind], settled = wasSettled ? "settled" : "not settled yet";
      if (state.kind === "curve") {
        const rows = [0, 17, 33, 50, 67, 83, 100].map((i) => {
          const [curve, noise] = [average.epistemic[i], average.aleatoric[i]];
          return rowOf([grid[i].toFixed(1), average.mean[i].toFixed(2), Math.sqrt(curve).toFixed(2), Math.sqrt(curve + noise).toFixed(2)]);
        });
        folds.surface.replaceChildren(tableOf(["x", "mean", "sd of the curve", "sd of a measurement"], rows, `Curve and bands (${settled}).`));
        return;
      }
      const tables = Array.from({ length: panels() }, (_, panel) => {
        const picks = [0, 1, 2, 3, 4].map((k) => Math.round(((size - 1) * (k + 0.5)) / 5)), at = (i) => ((2 * limit * i) / (size - 1) - limit).toFixed(1);
        const rows = picks.toReversed().map((j) => rowOf([at(j), ...picks.map((i) => average.mean[panel * size * size + j * size + i].toFixed(2))]));
        const caption = `Mean probability of class 1${panels() > 1 ? `, task ${panel + 1}` : ""} (${settled}); columns: x₁, rows: x₂.`;
        return tableOf(["", ...picks.map(at)], rows, caption);
      });
      folds.surface.replaceChildren(...tables);
    }
    function chainsTable() {
      const { draws, kind } = sampler.shown(), { acceptance, stepSize, divergences } = sampler.state();
      if (kind === "reweighted" || kind === "warm-up" || Math.min(...draws.made) < 20) return folds.chains.replaceChildren("Too few new draws yet.");
      const widest = worst(), quantities = [["log density", Diagnostics.series(draws, (row) => draws.logDensity[row])]];
      const p = Diagnostics.series(draws, (row) => table.of(draws.id[row])?.[widest] ?? NaN);
      if (p.every((chain) => chain.every(Number.isFinite))) quantities.push([`prediction where the chains differ most`, p]);
      const rows = quantities.map(([name, s]) => rowOf([name, Diagnostics.rhat(s).toFixed(2), Diagnostics.effectiveSampleSize(s).toFixed(0)]));
      const of = (list, digits) => Array.from(list, (v) => v.toPrecision(digits)).join(", ");
      const more = element("p", {}, `Acceptance of the four chains: ${of(acceptance, 2)}. Step sizes: ${of(stepSize, 2)}. Divergences: ${divergences}.`);
      return folds.chains.replaceChildren(tableOf(["Quantity", "R-hat", "Effective sample size"], rows, `${Math.min(...draws.made)} draws of each chain, of which the last ${draws.capacity} are kept.`), more);
    }
    const range = (n) => {
      const values = average.chains.map((chain) => chain[n]), unit = state.kind !== "curve" ? 1 : Math.sqrt(average.epistemic[n] + average.aleatoric[n]);
      return (Math.max(...values) - Math.min(...values)) / unit;
    };
    function worst() {
      let found = 0;
      for (let n = 1; n < average.mean.length; n++) if (range(n) > range(found)) found = n;
      return found;
    }

    // The picture.
    function paint() {
      const { draws, weights, kind } = sampler.shown();
      if (!draws.id.some((made) => made && table.of(made))) return;
      average = table.average(draws, weights);
      spread = average.chains.every((chain) => Number.isFinite(chain[0])) ? range(worst()) : Infinity;
      const newest = draws.id.indexOf(Math.max(...draws.id)), one = table.of(draws.id[newest]);
      const ctx = Paint.context(canvas, ...extent());
      (state.kind === "curve" ? paintCurve : paintSurfaces)(ctx, one, kind);
      if (!isSmall && (pictures++ % 4 === 0 || isDone())) {
        const side = state.kind === "classes";
        for (const part of side ? small : [])
          Paint.surface(Paint.context(part, 160, 160), average[part.dataset.map], SIZES.classes, part.dataset.map, 0.25, 0, 0, 160);
        if (side && Math.min(...draws.made) > 10) Paint.traces(strip, Diagnostics.series(draws, (row) => draws.logDensity[row]));
      }
      report(kind, draws);
    }
    function paintSurfaces(ctx, one, kind) {
      const size = SIZES[state.kind], cells = size * size, unit = SIDE / (size - 1);
      for (let panel = 0; panel < panels(); panel++) {
        const [left, top] = corner(panel), part = average.mean.subarray(panel * cells, (panel + 1) * cells);
        const to = (i, j) => [left + unit * i, top + SIDE - unit * j];
        Paint.surface(ctx, part, size, "probability", 1, left, top, SIDE);
        const apart = [];
        for (let n = 0; n < cells; n++)
          if (range(panel * cells + n) > APART) {
            const [i, j] = [n % size, Math.floor(n / size)];
            apart.push([i - 0.5, j - 0.5, i + 0.5, j + 0.5]);
          }
        ctx.save();
        ctx.beginPath();
        ctx.rect(left, top, SIDE, SIDE);
        ctx.clip();
        Paint.line(ctx, apart, to, { style: "#666", width: 1 });
        ctx.restore();
        if (one && kind !== "reweighted" && panels() === 1) Paint.line(ctx, Paint.contour(one, size, 0.5), to, { style: "#444", width: 1, dash: [3, 3] });
        Paint.line(ctx, Paint.contour(part, size, 0.5), to);
        if (panels() === 1) axes(ctx, 0, [-2, 0, 2], [-2, 0, 2]);
        else {
          Object.assign(ctx, { strokeStyle: "#888", lineWidth: 1, fillStyle: "#222", font: "18px sans-serif" });
          ctx.strokeRect(left, top, SIDE, SIDE);
          ctx.fillText(`task ${panel + 1}`, left + 8, top + 22);
        }
      }
    }
    /** Ticks and their numbers, inside the frame. */
    function axes(ctx, panel, across, upwards) {
      const [left, bottom] = [0, SIDE];
      Object.assign(ctx, { fillStyle: "#444", font: "9px sans-serif" });
      for (const v of across) {
        ctx.fillRect(place([v, 0])[0], bottom - 4, 1, 4);
        ctx.fillText(v, place([v, 0])[0] - 3, bottom - 7);
      }
      for (const v of upwards) {
        ctx.fillRect(left, place([0, v])[1], 4, 1);
        ctx.fillText(v, left + 6, place([0, v])[1] + 3);
      }
    }
    function paintCurve(ctx, one) {
      const at = (i, value) => place([grid[i], value]), indices = Array.from(grid.keys());
      const away = (i, sign, withNoise) => at(i, average.mean[i] + 2 * sign * Math.sqrt(average.epistemic[i] + (withNoise ? average.aleatoric[i] : 0)));
      for (const [withNoise, style] of [[true, "#DCE9F4"], [false, "#8DB9DD"]])
        Paint.band(ctx, indices.map((i) => away(i, -1, withNoise)), indices.map((i) => away(i, 1, withNoise)), style);
      if (one) Paint.path(ctx, indices.map((i) => at(i, one[i])), "#444", 1, [4, 3]);
      Paint.path(ctx, indices.map((i) => at(i, average.mean[i])), "#0B3C5D", 2);
      for (const i of indices.filter((n) => range(n) > APART_OF_CURVES)) Paint.path(ctx, [[at(i, 0)[0], 0], [at(i, 0)[0] - 8, SIDE]], "#888", 0.7);
      axes(ctx, 0, [-1, 0, 1], [-1, 0, 1]);
    }

    /** Say how it goes; aloud only once, when it has settled. */
    function report(kind, draws) {
      const { tuned, draws: held, acceptance } = sampler.state(), made = Math.min(...draws.made);
      const isCurve = state.kind === "curve", allowed = isCurve ? APART_OF_CURVES : MIXED;
      const agree = `differ by ${spread.toFixed(2)}${isCurve ? " standard deviations" : ""} at most`, isLong = (kind === "fresh" || kind === "imposed") && held >= SETTLED;
      const settled = isLong && spread <= allowed, rate = `acceptance ${mean(acceptance).toFixed(2)}`;
      let text;
      if (kind === "warm-up") text = `Tuning the step size: ${Math.round(100 * tuned)} %. Nothing has settled.`;
      else if (kind === "reweighted") text = `Not settled: the draws from before the change, reweighted; new ones: ${tuned < 1 ? "the step size is being tuned" : `${held} of ${SETTLED} a chain`}.`;
      else if (!isLong) text = `Not settled: ${held} of ${SETTLED} draws a chain, ${rate}.`;
      else if (!settled) text = `Not settled: ${made} draws a chain, and the chains' means ${agree}; ${rate}.`;
      else text = `Settled: ${made} draws a chain; the chains' means ${agree}; ${rate}.`;
      if (settled && !wasSettled) {
        if (settledMean?.length === average.mean.length) moved = mean(settledMean.map((old, n) => Math.abs(old - average.mean[n])));
        settledMean = average.mean;
        spoken.textContent = text + (moved === null ? "" : ` Since the change it moved by ${moved.toFixed(2)} on average.`);
        wasSettled = true;
        if (!isSmall) tell(false);
      }
      if (settled && moved !== null) text += ` The ${isCurve ? "curve" : "surface"} moved by ${moved.toFixed(2)} on average since the change.`;
      status.textContent = text;
      root.dataset.settled = settled;
    }

    // The loop: a slice of sampling and one of predicting, a picture now and then.
    const isDone = () => {
      const { draws, kind } = sampler.shown();
      return (kind === "fresh" || kind === "imposed") && Math.min(...draws.made) >= ENOUGH;
    };
    function frame(now) {
      waiting = 0;
      if (dragged?.to) {
        const { x, y } = dragged.to, [limit, height] = limits[state.kind];
        dragged.to = null;
        const point = [clamp(x, limit), clamp(y, height), ...state.points[dragged.k].slice(2)];
        state = { ...state, points: replaced(dragged.k, point) };
        dirty = {};
        const [a, b] = place(point, point[3]);
        overlay.children[dragged.k].setAttribute("transform", `translate(${a} ${b})`);
      }
      const changed = dirty !== null && now >= allowed;
      if (changed) {
        const begun = performance.now();
        target = targetOf(state);
        sampler.retarget(target);
        allowed = 6 * performance.now() - 5 * begun; // weighing old draws again takes a sixth of the time at most
        [dirty, wasSettled] = [null, false];
      }
      if (!isDone()) sampler.advance({ milliseconds: dragged ? 2 : 7 }); // while dragged, all is soon out of date
      const { draws, next: following } = sampler.shown();
      let missing = table.update(draws, target, { milliseconds: 4 });
      if (following !== draws) missing += table.update(following, target, { milliseconds: 2 });
      if (calm.matches ? sampler.state().draws >= SETTLED : now >= next || (isDone() && !missing)) {
        const begun = performance.now();
        paint();
        next = Math.max(now + 60, 4 * performance.now() - 3 * begun); // pictures a quarter
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

    function fromLink() {
      const text = decodeURIComponent(location.hash.slice(1));
      const part = text.includes("=") ? decode(text) : text in presets ? complete(presets[text]) : null;
      if (!part) return false;
      initial = null;
      switchTo(part);
      return true;
    }
    root.playground = { state: () => state, average: () => average, sampler: () => sampler, change }; // for tests
    if (!isSmall) window.addEventListener("hashchange", () => fromLink() && root.scrollIntoView());
    if (isSmall || !fromLink()) open(complete(presets[root.dataset.preset]));
    if (root.dataset.controls) {
      state.controls = root.dataset.controls.split(" ");
      layOut();
    }
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
