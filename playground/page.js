/** The playground's page: every element of class "playground" becomes one. Needs the other scripts of its folder. */
(() => {
  "use strict";
  if (typeof document === "undefined") return; // in a Worker the same script does the work
  const SOURCE = document.currentScript.src;
  const { drawing, sets, complete, pointsOf, encode, decode } = PlaygroundState;
  const { presets, rows, quizzes } = PlaygroundPresets, { SIDE, limits, shapeOf, cornerOf, place } = drawing;
  const MAP = 160; // side of a map's picture
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const disc = (r) => `M-${r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 -${2 * r},0`;
  const marks = { 0: disc(6), 1: "M0,-8L7.5,5.5H-7.5Z", curve: disc(4.5) };
  const lost = "Hatched: chains that have settled do not agree.";
  const surface = "Colour, on one scale: probability of class 1, from blue (0) to orange (1). Line: where it is 1/2.";
  const terms = "MAP: the one most probable network. Posterior: the average of networks that four chains draw. " +
    "Prior scale σ: how large weights are before any point is seen, and so how steep a network may be.";
  const captions = {
    classes: `${surface} Circles: class 0; triangles: class 1. Says: how sure the map is, on average; is right: for ` +
      `which share of 2000 fresh labels; here: the probability of class 1. Dashed green: the truth. ${lost} ${terms}`,
    groups: `Six tasks, a panel each. ${surface} ${lost}`,
    stored: `Six tasks, a panel each. ${surface}`,
    curve: "Line: mean curve. Dark band: where the curve lies (2 standard deviations). Light band: where a new " +
      "measurement lies. Says: which share of new measurements it should hold; is right: which it does. Dashed " +
      `green: the truth. ${lost} ${terms}`,
  };
  const guides = { classes: "Click to flip a point, drag it, click empty ground to add one." };
  guides.groups = guides.classes;
  guides.curve = "Drag a point, click empty ground to add one.";
  guides.stored = "These points stay as they are.";
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
    output: scale("Prior scale σ of the output weights", 2),
    hidden: scale("Prior scale σ of the hidden weights", 1),
    input: scale("Prior scale σ of the input weights", 0),
    both: { text: "Prior scale σ of all weights", values: [0.1, 0.25, 0.5, 1, 2, 4, 8], kinds: ["curve"], ...both },
    other: simple("other", "The same of the left map", [0, 0.125, 0.25, 0.5, 1, 2, 4, 8, 12, 24, 48], ["classes"],
      { 0: "as right" }),
    noise: simple("noise", "Noise s", [0, 0.03, 0.1, 0.3, 1], ["curve"], { 0: "learnt" }),
    group: simple("group", "Scale σ of the group", [0.01, 0.03, 0.1, 0.3, 1, 3, 0], ["groups"], { 0: "learnt" }),
    without: simple("without", "Task 1 loses its labels", [false, true], ["groups"]),
    step: simple("step", "Step size", [0.05, 0.25, 1, 2, 4], all, steps),
    far: simple("far", "All chains start at one far place", [false, true], all),
    count: simple("count", "Number of points", [12, 25, 40, 50, 100, 200], made),
    gap: simple("gap", "Empty a gap in the middle", [false, true], made),
    spread: simple("spread", "Noise of the data set", [0.1, 0.2, 0.3, 0.5], all),
    width: simple("width", "Units a hidden layer", [1, 2, 5, 10], all),
    zoom: { ...simple("zoom", "Seen from", [1, 3], ["classes"], { 1: "near", 3: "three times as far" }) },
    truth: simple("truth", "Truth", [false, true], made),
    twenty: simple("twenty", "Twenty networks", [false, true], made),
    set: simple("set", "Data set", Object.keys(sets), all, textsOfSets),
  };
  const OF_DATA = ["count", "gap", "spread"], SHOWN = ["truth", "twenty", "zoom"];
  const OF_STORED = ["group", "without", "set"]; // what may be changed where nothing is sampled
  const isDrawn = ({ set }) => !(set === "twelve" || set.startsWith("task")); // by a generator that makes any number

  /** Work in a Worker; pages from a folder may start none, and work between their frames. */
  function employ(post) {
    const stored = typeof PlaygroundDraws === "undefined" ? null : PlaygroundState.unpack(PlaygroundDraws);
    if (location.protocol !== "file:") {
      const worker = new Worker(SOURCE);
      worker.onmessage = ({ data }) => post(data);
      let sent = false; // stored draws go with the first message alone
      return (message) => {
        worker.postMessage(sent ? message : { ...message, stored });
        sent = true;
      };
    }
    const shop = Work.workshop(post, stored);
    let waiting = 0;
    const frame = () => {
      waiting = 0;
      if (shop.slice(9)) wake();
    };
    const wake = () => (waiting ||= requestAnimationFrame(frame));
    return (message) => {
      shop.handle(message);
      wake();
    };
  }

  function mount(root) {
    const isSmall = root.dataset.size === "small", serial = ++instances, id = (name) => `playground-${serial}-${name}`;
    let initial, state, grid, truth = null, pictures = {}, serials = {}, chosen = 0, paused = false, seen = false;
    let dragged = null, pressed = null, quiz = null, isDone = false, trouble = "";
    let version = 0, since = 0, opened = 0, due = 0; // serials of what is sent; a frame that is asked for
    let past = [], future = [], lastChange = "";

    root.innerHTML = PlaygroundParts; // page.html; a small one has less
    const part = (name) => root.querySelector(`.playground-${name}`);
    const all = (selector) => [...root.querySelectorAll(selector)];
    if (isSmall) {
      for (const name of ["guide", "presets", "quiz", "caption"]) part(name).remove();
      for (const one of all("details, select, [data-side=left], button:not([data-does=reset])")) one.remove();
    }
    const sides = Object.fromEntries(all("[data-side]").map((figure) => [figure.dataset.side, {
      figure, select: figure.querySelector("select"), stage: figure.querySelector(".playground-stage"),
      canvas: figure.querySelector("canvas"), overlay: figure.querySelector("svg"),
        bar: figure.querySelector("progress"),
      says: figure.querySelector(".playground-says"), here: figure.querySelector(".playground-here"),
    }]));
    const shown = () => Object.values(sides).filter(({ figure }) => !figure.hidden), { overlay } = sides.right;
    const [status, spoken, caption, link] = [part("status"), part("spoken"), part("caption"),
      root.querySelector("a[href='#']")];
    const folds = Object.fromEntries(all("details").map((one) => [one.dataset.part, one]));
    const bodyOf = (name) => folds[name].querySelector("div");
    const button = (name) => root.querySelector(`[data-does=${name}]`);
    const [first, others] = ["first", "others"].map((name) =>
      root.querySelector(`.playground-controls[data-part=${name}]`));
    const tapping = root.querySelector(".playground-control select"), work = employ(receive);
    if (isSmall) link.textContent = "Open in the playground";
    else {
      const row = ([title, names]) =>
        `<p>${title}: ${names.map((name) => `<a href="#${name}">${rows.texts[name]}</a>`).join(" ")}</p>`;
      part("presets").innerHTML = Object.entries(rows.of).map(row).join("");
      for (const [side, { select }] of Object.entries(sides)) {
        select.innerHTML = Object.entries(Methods.names).map(([name, text]) => optionOf(name, text)).join("");
        select.addEventListener("change", () => change({ [side]: select.value }));
      }
      part("presets").addEventListener("click", ({ target }) => {
        if (target.hash && target.hash === location.hash) openLink();
      });
    }
    root.addEventListener("click", ({ target: { dataset } }) => {
      if (dataset?.does === "pause") setPaused(!paused);
      else if (dataset?.does === "reset") open(initial, quiz);
      else if (dataset?.does === "undo") go(past, future);
      else if (dataset?.does === "redo") go(future, past);
      else if (dataset?.option) answer(Number(dataset.option));
    });
    root.addEventListener("toggle", () => { tell(); send(); }, true); // it does not bubble

    const isStored = () => Boolean(sets[state.set].isStored), isAlone = () => isSmall || state.kind === "groups";
    /** Show a state from the beginning; with a question, maps are veiled until it has an answer. */
    function open(whole, asked = null) {
      initial ??= whole;
      [state, chosen, quiz, past, future, lastChange] = [whole, 0, asked, [], [], ""];
      [pictures, opened, since] = [{}, opened + 1, version + 1];
      refresh();
      paint();
      ask();
    }
    /** Everything that depends on the kind of state, and on its values. */
    function refresh() {
      const focused = document.activeElement?.id;
      const ofSet = ({ kinds }, name) => kinds.includes(state.kind) && (isDrawn(state) || !OF_DATA.includes(name));
      const hasTruth = () => PlaygroundData.isKnown(state) && !isSmall;
      const fits = (name) => Object.hasOwn(controls, name) && (name !== "truth" || hasTruth()) &&
        (isStored() ? OF_STORED.includes(name) : ofSet(controls[name], name));
      const named = state.controls.filter(fits), rest = Object.keys(controls).filter((name) => !named.includes(name));
      first.innerHTML = named.map(controlOf).join("");
      if (others) others.innerHTML = rest.filter(fits).map(controlOf).join("");
      if (focused?.startsWith(id(""))) document.getElementById(focused)?.focus();
      if (!isSmall) folds.side.open ||= state.controls.some((name) => ["step", "gap"].includes(name));
      layOut();
      send();
    }
    function ask() {
      if (isSmall) return;
      root.dataset.veiled = Boolean(quiz?.veil);
      part("quiz").hidden = !quiz;
      if (!quiz) return;
      const option = (text, k) => `<button type="button" data-option="${k + 1}" aria-pressed="false">${text}</button>`;
      [part("ask").innerHTML, part("answer").innerHTML] = [`<strong>${quiz.title}.</strong> ${quiz.ask}`, ""];
      part("options").innerHTML = quiz.options.map(option).join("");
    }
    function answer(k) {
      root.dataset.veiled = false;
      for (const one of part("options").children)
        one.setAttribute("aria-pressed", String(Number(one.dataset.option) === k));
      const verdict = k === quiz.right ? "Yes." : `No: ${quiz.options[quiz.right - 1]}.`;
      part("answer").textContent = `${verdict} ${quiz.answer}`;
    }
    /** Change a part of the state; draws are kept where they can be. */
    function change(values, name = "") {
      if ("points" in values && isStored()) return;
      if (!name || name !== lastChange) [past, future] = [[...past.slice(-99), state], []];
      [state, lastChange] = [{ ...state, ...values }, name];
      layOut();
      send(Object.keys(values).every((one) => ["truth", "twenty"].includes(one)));
    }
    /** Undo, or redo. */
    function go(from, to) {
      if (!from.length) return;
      to.push(state);
      [state, lastChange] = [from.pop(), ""];
      refresh();
    }

    // Work: what is sent, and what comes back.
    const isRunning = () => seen && !paused && !document.hidden;
    function send(isSame = false) {
      if (!isSame) version++;
      const wants = { traces: Boolean(folds.side?.open), chains: Boolean(folds.chains?.open) };
      const shownState = { ...state, one: isSmall };
      work({ state: shownState, serial: version, opened, wants, running: isRunning(), held: Boolean(dragged),
        calm: calm.matches });
      report();
    }
    function receive({ side, serial, picture }) {
      if (serial < since || !sides[side] || sides[side].figure.hidden) return;
      const isShown = isAlone() ? ["posterior", "stored"].includes(picture.method) : picture.method === state[side];
      // of before
      if (!isShown || picture.mean.length !== Work.gridFor(state).length / (state.kind === "curve" ? 1 : 2)) return;
      [pictures[side], serials[side]] = [picture, serial];
      due ||= requestAnimationFrame(() => {
        due = 0;
        paint();
        report();
      });
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
      const written = write(state, value);
      if (isRange) {
        input.nextElementSibling.textContent = shownAs(name, value);
        input.setAttribute("aria-valuetext", shownAs(name, value));
      }
      if (name === "set") open(complete({ ...written, width: state.width, left: state.left, right: state.right }));
      else change(OF_DATA.includes(name) ? { ...written, points: pointsOf({ ...state, ...written }) } : written,
        isRange ? name : "");
      if (SHOWN.includes(name)) paint();
    });

    /** Everything but the maps' pictures, after a change. */
    function layOut() {
      const { kind, points } = state, { extent } = shapeOf(kind);
      if (sides.left) sides.left.figure.hidden = isAlone();
      root.dataset.kind = kind;
      [grid, truth] = [Work.gridFor(state), null];
      if (state.truth && PlaygroundData.isKnown(state)) truth = PlaygroundData.truth(state, grid);
      chosen = Math.max(0, Math.min(chosen, points.length - 1));
      for (const { select, stage, overlay: svg, figure } of shown()) {
        svg.setAttribute("viewBox", `0 0 ${extent.join(" ")}`);
        stage.style.aspectRatio = extent.join(" / ");
        svg.innerHTML = points.map((point, k) => markOf(point, k, svg === overlay)).join("") + pointer;
        if (select) [select.value, select.hidden] = [state[figure.dataset.side], isAlone()];
      }
      choose(chosen);
      link.href = `${isSmall ? root.dataset.page : ""}#${encode(state)}`;
      if (isSmall) return;
      tapping.parentElement.hidden = folds.points.hidden = isStored(); // no points to edit
      folds.side.hidden = kind === "groups";
      for (const figure of all("figure:has([data-map])")) figure.hidden = kind !== "classes";
      caption.textContent = captions[isStored() ? "stored" : kind];
      part("guide").textContent = guides[isStored() ? "stored" : kind];
      [button("undo").disabled, button("redo").disabled] = [!past.length, !future.length];
      tell();
    }
    const pointer = '<path class="playground-pointer" d="M-9,0H-3M3,0H9M0,-9V-3M0,3V9" visibility="hidden" />';
    const shiftOf = (point) =>
      `translate(${place(state.kind, point, point[3], state.zoom).join(" ")}) scale(${state.zoom === 1 ? 1 : 0.6})`;
    function markOf(point, k, isNamed) {
      const [x, y, label, task] = point, kind = state.kind === "curve" ? "curve" : label;
      const of = (kind === "curve" ? "" : `, class ${label}`) + (task === undefined ? "" : `, task ${task + 1}`);
      const name = `Point ${k + 1} of ${state.points.length}${of}, at ${x}, ${y}`;
      const isOff = state.without && task === 0 ? "playground-off" : "";
      const named = isNamed ? `id="${id(`point-${k}`)}" role="img" aria-label="${name}"` : "";
      return `<g ${named} data-k="${k}" class="${isOff}" transform="${shiftOf(point)}">
        <circle r="14" class="playground-reach" />
        <path d="${marks[kind]}" class="playground-point-${kind}" /></g>`;
    }
    function choose(k) {
      overlay.children[chosen]?.classList.remove("playground-chosen");
      chosen = k;
      if (state.points.length) overlay.children[chosen].classList.add("playground-chosen");
      const flips = state.kind === "curve" ? "" : "F flips its class, ";
      const keys = `Page Up and Page Down choose one, arrow keys move it, ${flips}Delete deletes it, Insert adds one.`;
      const does = isStored() ? "They are stored, and stay as they are." : keys;
      overlay.setAttribute("aria-label", `${state.points.length} points. ${does}`);
      if (state.points.length) overlay.setAttribute("aria-activedescendant", id(`point-${chosen}`));
      else overlay.removeAttribute("aria-activedescendant");
    }

    // Points: by pointer, by keys, and in the table.
    function shifted(k, x, y) {
      const [limit, height] = limits[state.kind].map((most) => most * state.zoom);
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
      const [limit, height] = limits[state.kind].map((most) => most * state.zoom);
      const more = { classes: [label], groups: [label, task], curve: [] }[state.kind];
      change({ points: [...state.points, [clamp(x, limit), clamp(y, height), ...more]] });
      choose(state.points.length - 1);
    }
    /** Coordinates of the data, and the panel, of a place on the screen. */
    function locate(event) {
      const { left, top, width: seenWidth } = event.currentTarget.getBoundingClientRect();
      const [limit, height] = limits[state.kind].map((most) => most * state.zoom);
      const { extent, width, panels } = shapeOf(state.kind), unit = extent[0] / seenWidth;
      const [u, v] = [(event.clientX - left) * unit, (event.clientY - top) * unit];
      const under = Math.min(Math.floor(u / width) + 3 * Math.floor(v / SIDE), panels - 1);
      const panel = dragged ? (state.points[dragged.k][3] ?? 0) : under, [a, b] = cornerOf(panel);
      return { x: (2 * limit * (u - a)) / width - limit, y: height - (2 * height * (v - b)) / SIDE, panel };
    }
    /** What both maps say at a place; a cross marks it in both. */
    function look(x, y, panel = 0) {
      const said = [], size = Work.SIZES[state.kind], [limit] = limits[state.kind].map((most) => most * state.zoom);
      const at = (v) => Math.min(Math.max(Math.round(((v + limit) * (size - 1)) / (2 * limit)), 0), size - 1);
      for (const { figure, here, overlay: svg } of shown()) {
        const picture = pictures[figure.dataset.side];
        const n = state.kind === "curve" ? at(x) : (panel * size + at(y)) * size + at(x);
        if (!picture || root.dataset.veiled === "true") continue;
        const value = picture.mean[n].toFixed(2);
        const sd = state.kind === "curve" ? Math.sqrt(picture.epistemic[n]).toFixed(2) : "";
        here.textContent = sd ? `here ${value} ± ${sd}` : `here ${value}`;
        said.push(`${nameOf(picture)}: ${here.textContent}`);
        svg.lastElementChild.setAttribute("transform",
          `translate(${place(state.kind, [x, y], panel, state.zoom).join(" ")})`);
        svg.lastElementChild.setAttribute("visibility", "visible");
      }
      return said.join("; ");
    }
    const nameOf = ({ method }) => Methods.names[method] ?? "Stored";
    function unlook() {
      for (const { here, overlay: svg } of shown()) {
        here.textContent = "";
        svg.lastElementChild.setAttribute("visibility", "hidden");
      }
    }
    for (const { overlay: svg } of Object.values(sides)) {
      svg.addEventListener("pointerdown", (event) => {
        const mark = event.target.closest("g");
        if (event.button !== 0) return;
        pressed = [event.clientX, event.clientY];
        if (!mark) return;
        choose(Number(mark.dataset.k));
        dragged = { k: chosen, isFar: false, to: null };
        svg.setPointerCapture(event.pointerId);
        overlay.focus({ preventScroll: true });
        event.preventDefault();
      });
      svg.addEventListener("pointermove", (event) => {
        const { x, y, panel } = locate(event);
        look(x, y, panel);
        if (!dragged || isStored()) return;
        dragged.isFar ||= Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4;
        if (!dragged.isFar) return;
        if (!dragged.to) requestAnimationFrame(drag);
        dragged.to = { x, y };
      });
      svg.addEventListener("pointerup", (event) => {
        const { x, y, panel } = locate(event), held = dragged;
        const isStill = pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) <= 4;
        const [label = 1] = state.points[chosen]?.slice(2) ?? [];
        dragged = pressed = null;
        if (held?.isFar) {
          if (held.before) state = held.before;
          move(held.k, x, y);
        } else if (held) tapping?.value === "delete" ? remove(held.k) : flip(held.k);
        else if (isStill && !isSmall) add(x, y, label, panel);
      });
      svg.addEventListener("pointercancel", () => (dragged = pressed = null));
      svg.addEventListener("pointerleave", unlook);
    }
    /** Where a point is dragged, at the next frame. */
    function drag() {
      if (!dragged?.to) return;
      dragged.before ??= state;
      state = { ...state, points: shifted(dragged.k, dragged.to.x, dragged.to.y) };
      dragged.to = null;
      for (const { overlay: svg } of shown())
        svg.children[dragged.k].setAttribute("transform", shiftOf(state.points[dragged.k]));
      send();
    }
    root.addEventListener("keydown", (event) => {
      const key = event.key.toLowerCase();
      if (isSmall || !(event.ctrlKey || event.metaKey) || !["z", "y"].includes(key) ||
        event.target.matches("input[type=number]")) return;
      if (key === "y" || event.shiftKey) go(future, past);
      else go(past, future);
      event.preventDefault();
    });
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
      else if (key === "PageDown" || key === "PageUp") {
        choose((chosen + (key === "PageDown" ? 1 : count - 1)) % count);
        spoken.textContent = look(...state.points[chosen].slice(0, 2), state.points[chosen][3]);
      } else return;
      event.preventDefault();
    });

    // Tables, made anew only while they are open.
    function tell() {
      const fill = { points: pointsTable, surface: surfaceTables, chains: chainsTable };
      for (const [name, make] of isSmall ? [] : Object.entries(fill)) {
        const body = bodyOf(name);
        const isUsed = body.contains(document.activeElement) && body.querySelector("input, select");
        if (folds[name].open && !isUsed && (name === "points" || pictures.right)) body.innerHTML = make();
      }
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
      const columns = { classes: ["x₁", "x₂", "Class"], curve: ["x", "y"] };
      columns.groups = [...columns.classes, "Task"];
      const head = ["Point", ...columns[state.kind], "Remove"];
      const points = tableOf("The points. What is changed here changes in the picture.", head, rows);
      return `${points}<button type="button">Add a point</button>`;
    }
    if (!isSmall) bodyOf("points").addEventListener("change", ({ target: { dataset, value } }) => {
      const k = Number(dataset.k), [x, y] = state.points[k];
      if (dataset.c) move(k, ...[x, y].with(Number(dataset.c), Number(value)));
      else flip(k);
    });
    if (!isSmall) bodyOf("points").addEventListener("click", ({ target }) => {
      if (!target.matches("button")) return;
      if (target.dataset.k) remove(Number(target.dataset.k));
      else add(0, 0, 1, 0);
      bodyOf("points").innerHTML = pointsTable();
    });
    const surfaceTables = () =>
      shown().map(({ figure }) => pictures[figure.dataset.side]).filter(Boolean).map(surfaceTable).join("");
    function surfaceTable(picture) {
      const size = Work.SIZES[state.kind], [limit] = limits[state.kind].map((most) => most * state.zoom),
        of = nameOf(picture);
      const as = picture.method === "stored" ? "stored" : picture.settled ? "settled" : "not settled yet";
      const { mean: p, epistemic, aleatoric } = picture, at = (i) => ((2 * limit * i) / (size - 1) - limit).toFixed(1);
      if (state.kind === "curve") {
        const numbers = (i) => [p[i], Math.sqrt(epistemic[i]), Math.sqrt(epistemic[i] + aleatoric[i])];
        const rows = [0, 17, 33, 50, 67, 83, 100].map((i) => [at(i), ...numbers(i).map((v) => v.toFixed(2))]);
        return tableOf(`${of}: curve and bands (${as}).`, ["x", "mean", "sd of the curve", "sd of a measurement"],
          rows);
      }
      const { panels } = shapeOf(state.kind), shares = [0.1, 0.3, 0.5, 0.7, 0.9];
      const picks = shares.map((share) => Math.round((size - 1) * share)), head = ["x₂", ...picks.map(at)];
      const tables = Array.from({ length: panels }, (_, panel) => {
        const row = (j) => [at(j), ...picks.map((i) => p[(panel * size + j) * size + i].toFixed(2))];
        const task = panels > 1 ? `, task ${panel + 1}` : "";
        const text = `${of}: mean probability of class 1${task} (${as}); across: x₁, down: x₂.`;
        return tableOf(text, head, picks.toReversed().map(row));
      });
      return tables.join("");
    }
    const posterior = () => [pictures.right, pictures.left].find((picture) => picture?.how) ?? null;
    function chainsTable() {
      const { how, chains } = posterior() ?? {};
      if (!how) return status.innerHTML || "No chains are shown.";
      if (!chains?.length) return "Too few new draws yet.";
      const list = (values) => Array.from(values, (value) => value.toPrecision(2)).join(", ");
      const told = tableOf(`${how.number} draws of each chain, of which the last are kept.`,
        ["Quantity", "R-hat", "Effective sample size"],
        chains.map(([name, rhat, size]) => [name, rhat.toFixed(2), size.toFixed(0)]));
      return `${told}<p>Acceptance of the four chains: ${list(how.acceptance)}. Step sizes: ${list(how.stepSize)}.
        Divergences: ${how.divergences}.</p>`;
    }

    // The maps, and what is said of them.
    function paint() {
      const more = { truth, apart: Work.APART }, size = Work.SIZES[state.kind];
      for (const { figure, canvas } of shown()) {
        const picture = pictures[figure.dataset.side];
        if (picture) Paint.map(canvas, state, picture, grid, size, more, drawing);
        else canvas.width = 0; // what was shown before is of something else
      }
      if (isSmall || !folds.side.open || !posterior()) return;
      if (state.kind === "classes")
        for (const map of all("[data-map]")) {
          const name = map.dataset.map;
          Paint.surface(Paint.context(map, MAP, MAP), posterior()[name], size, name, 0.25, 0, 0, MAP);
        }
      if (posterior().traces) Paint.traces(root.querySelector("[data-part=traces]"), posterior().traces);
    }
    function saysOf({ score, moved }) {
      const lines = score && !isSmall ? [`says ${score.says.toFixed(2)}, is right ${score.right.toFixed(2)}`] : [];
      if (moved !== null) lines.push(`moved by ${moved.toFixed(2)}`);
      return lines.join("; ");
    }
    /** Say how it goes; aloud only once, when all has settled. */
    function report() {
      const open = shown().map(({ figure }) => figure.dataset.side);
      const done = open.every((side) => pictures[side]?.settled && serials[side] === version);
      for (const side of open) {
        const picture = pictures[side], { bar, says } = sides[side];
        const isReady = Boolean(picture?.settled && serials[side] === version);
        const share = picture?.settled ? 0 : (picture?.progress ?? 0);
        [bar.value, bar.dataset.done] = [isReady ? 1 : Math.max(share, 0.03), isReady];
        says.textContent = picture ? saysOf(picture) : "";
      }
      const { how } = posterior() ?? {}, isOfStored = pictures.right?.method === "stored";
      const ofStored = "Stored, not sampled here: eight chains of the book's sampler";
      let text = how ? chainsLine(how, done) : "";
      if (isOfStored) text = `${ofStored}, R-hat ${pictures.right.rhat.toFixed(2)} at most.`;
      if (status.textContent !== trouble + text) status.textContent = trouble + text;
      root.dataset.settled = isOfStored ? "stored" : done;
      if (done && !isDone) {
        const each = open.map((side) =>
          `${nameOf(pictures[side])}${saysOf(pictures[side]) && ` ${saysOf(pictures[side])}`}`);
        spoken.textContent = `${trouble}${isOfStored ? text : `Settled: ${each.join("; ")}.`}`;
      }
      isDone = done;
      tell();
    }
    function chainsLine(how, done) {
      const { kind, tuned, number, draws, acceptance, spread, restored, long, moves, worth } = how;
      const percent = Math.round(100 * tuned), now = `${draws} of ${Work.SETTLED} a chain`;
      const apart = `the chains' means differ by ${spread.toFixed(2)} at most`,
        rate = `acceptance ${(acceptance.reduce((a, b) => a + b) / acceptance.length).toFixed(2)}`;
      const tuning = tuned < 1 ? `once the step size is tuned, ${percent} %` : now;
      const first = done ? "Settled" : "Not settled";
      if (restored) return `${first}: ${number} stored draws a chain; ${apart}.`;
      if (kind === "warm-up") return `Not settled: draws of the tuning; new ones: ${tuning}.`;
      const old = `draws from before the change, reweighted, worth ${worth.toFixed(0)}`;
      if (kind === "reweighted") return `${first}: ${old}; ${apart}; new ones: ${tuning}.`;
      if (long && !moves) return `Not settled: chains that do not move agree on nothing; ${rate}.`;
      if (!long) return `Not settled: draws: ${now}; ${rate}.`;
      return `${first}: ${number} draws a chain; ${apart}; ${rate}.`;
    }

    function setPaused(value) {
      paused = value;
      button("pause").setAttribute("aria-pressed", String(value));
      button("pause").textContent = value ? "Go on" : "Pause";
      send(true);
    }
    new IntersectionObserver(([entry]) => {
      seen = entry.isIntersecting;
      send(true);
    }).observe(root); // tables far below the maps go on, too
    document.addEventListener("visibilitychange", () => send(true));

    /** Open what the address says after #: a preset, or a whole state; say so where it can not be read. */
    function openLink() {
      trouble = "";
      try {
        const text = decodeURIComponent(location.hash.slice(1)), isState = text.includes("=");
        if (!isState && !Object.hasOwn(presets, text)) return false;
        const whole = isState ? decode(text) : complete(presets[text]);
        initial = null;
        open(whole, quizzes[text]);
        return true;
      } catch (error) {
        trouble = `This link can not be opened (${error.message}). `;
        if (state) report();
        return false;
      }
    }
    const names = root.dataset.controls ? { controls: root.dataset.controls.split(" ") } : {};
    if (isSmall || !openLink()) open(complete({ ...presets[root.dataset.preset], ...names }));
    if (!isSmall) window.addEventListener("hashchange", () => openLink() && root.scrollIntoView());
    root.playground = { state: () => state, picture: (side = "right") => pictures[side] ?? null }; // for tests
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
