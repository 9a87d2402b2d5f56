/** What the two maps show, computed in slices of time: in a Worker, or between frames where there is none; no DOM. */
const Work = (() => {
  "use strict";
  const here = typeof module === "undefined";
  const engine = here ? Playground : require("./engine.js"), { predictionTable, series, rhat, effectiveSampleSize } =
    here ? Diagnostics : require("./diagnostics.js");
  const methods = here ? Methods : require("./methods.js"), data = here ? PlaygroundData : require("./data.js");
  const { drawing, storedOf, farStart, targetOf } = here ? PlaygroundState : require("./state.js");
  const SETTLED = 150; // draws of each chain from which on a picture is settled, if they agree
  const WORTH = 100; // of weighted older draws in all, from which on it is: a probability is then off by 0.05 or less
  const MOVING = 0.01; // mean acceptance of every chain from which on chains move: those that stand still agree, too
  // a probability by which chains may differ: of a label, or of any event of a measurement; more: hatched
  const APART = 0.2;
  const FAR_STEP = 0.02; // taken for the learnt step size where chains start far out, and none has been learnt
  const ENOUGH = 1000; // draws of each chain after which the sampler rests
  const SIZES = { classes: 25, groups: 13, curve: 101 }; // points of a grid's side
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

  /** The state of one map: the left one may have an output scale of its own. */
  function stateOf(state, side) {
    const isOther = side === "left" && state.other && state.kind === "classes";
    return isOther ? { ...state, sds: state.sds.with(2, state.other) } : state;
  }
  const fitKey = (state) => {
    const { kind, points, width, sds, noise, group, without } = state;
    return JSON.stringify([kind, points, width, sds, noise, group, without]);
  };
  const gridKey = ({ kind, zoom, set, spread }) => `${kind} ${zoom} ${set} ${spread}`;
  const gridFor = ({ kind, zoom }) => drawing.gridOf(kind, SIZES[kind], zoom);
  const freshOf = (state) => (data.isKnown(state) ? data.fresh(state) : null);
  const scored = (state, average) => data.score(freshOf(state).y, average, state.kind === "curve");
  /** The largest difference of an event's probability between two unit normals at a distance. */
  const overlap = (distance) => Math.tanh(0.4 * distance); // 2 Phi(distance / 2) - 1, to 0.02

  /** Mean absolute move of a map from its last settled one, if both are of the same places. */
  function movement() {
    let last = null, key = "";
    return (now, newKey) => {
      const moved = last?.length === now.length && key === newKey ?
        mean(last.map((p, n) => Math.abs(p - now[n]))) : null;
      [last, key] = [now, newKey];
      return moved;
    };
  }

  /** A map of any method but the posterior: fitted anew at every change, shown when it is done. */
  function fitted(method) {
    const move = movement();
    let state, running = null, found = null, progress = 0, key = "", moved = null, isNew = false;
    function set(next) {
      const newKey = fitKey(next) + gridKey(next);
      state = next;
      if (key === newKey) return;
      const grid = gridFor(state), fresh = freshOf(state), x = Float64Array.of(...grid, ...(fresh?.x ?? []));
      [key, progress, running] = [newKey, 0, methods.fit(method, targetOf(state), x)];
    }
    function work(end) {
      while (running) {
        const step = running.next();
        if (!step.done) progress = step.value;
        else [found, running, isNew] = [finish(step.value), null, true];
        if (performance.now() >= end) break;
      }
      return Boolean(running);
    }
    function finish(all) {
      const count = gridFor(state).length / (state.kind === "curve" ? 1 : 2);
      const part = (from, to) => Object.fromEntries(["mean", "epistemic", "aleatoric"].map((name) =>
        [name, all[name].slice(from, to)]));
      moved = move(all.mean.slice(0, count), gridKey(state));
      const score = all.mean.length > count ? scored(state, part(count)) : null;
      return { ...part(0, count), members: all.members.map((p) => p.slice(0, count)), score };
    }
    const picture = () => found && { ...found, method, settled: !running, progress, moved, newest: null, apart: null };
    /** Whether there is a new picture. */
    const changed = () => isNew && !(isNew = false);
    return { set, work, picture, changed, rests: () => !running, renew: () => (isNew ||= !running && found !== null) };
  }

  /** The posterior: its chains go on from change to change, as engine.js has it. */
  function sampled(stored) {
    let move = movement();
    let state, target, sampler, table, scores, keys = {}, worth = 0, settled = false, wasSettled = false, moved = null;
    let restored = false, dirty = false, allowed = 0, missing = 1, isNew = false, next = 0, average = null;
    function begin() {
      target = targetOf(state);
      const start = state.far ? farStart(target.size) : null, capacity = state.kind === "curve" ? 600 : 250;
      sampler = engine.sampler(target, { start, capacity });
      if (state.far && state.step !== 1) sampler.imposeStepSize(FAR_STEP * state.step);
      [settled, dirty, worth, average, missing] = [false, false, 0, null, 1];
      restore();
    }
    function restore() {
      restored = Boolean(stored && state.step === 1 && !state.far && keys.fit === stored.key);
      if (restored) sampler.restore(stored);
    }
    function set(given, isNewest) {
      const { kind, width, far, step } = given, old = keys;
      state = given;
      keys = { fit: fitKey(state), grid: gridKey(state), begin: `${kind} ${width} ${far} ${far && step}`, step };
      if (old.grid !== keys.grid) {
        [table, missing] = [predictionTable(gridFor(state)), 1];
        // one draw of five is enough for two digits
        scores = freshOf(state) ? predictionTable(freshOf(state).x, 5) : null;
      }
      if (isNewest) [move, moved] = [movement(), null];
      if (isNewest || old.begin !== keys.begin) return begin();
      if (old.step !== step) {
        sampler.imposeStepSize(null);
        const learnt = Math.exp(mean(sampler.state().stepSize.map(Math.log)));
        if (step !== 1) sampler.imposeStepSize(step * learnt);
        [settled, restored] = [false, false];
      }
      if (old.fit !== keys.fit) [dirty, settled, wasSettled] = [true, false, settled || wasSettled];
    }
    const numDraws = () => sampler.state().draws;
    const isLong = () => ["fresh", "imposed"].includes(sampler.shown().kind) && numDraws() >= SETTLED;
    const rests = () => !dirty && isLong() && (restored || Math.min(...sampler.shown().draws.made) >= ENOUGH);
    function work(end, isHeld) {
      if (dirty && performance.now() >= allowed) {
        const begun = performance.now();
        target = targetOf(state);
        worth = sampler.retarget(target).effectiveSampleSize;
        [dirty, settled] = [false, false];
        restore();
        allowed = 6 * performance.now() - 5 * begun; // weighing old draws again takes a sixth of the time at most
      }
      const left = end - performance.now();
      // while held, all is soon out of date
      if (!rests()) sampler.advance({ milliseconds: isHeld ? left / 4 : left / 2 });
      const { draws, next: following } = sampler.shown();
      missing = table.update(draws, target, { milliseconds: left / 4 });
      if (following !== draws) missing += table.update(following, target, { milliseconds: left / 8 });
      if (scores) missing += scores.update(draws, target, { milliseconds: left / 8 });
      isNew = true;
      return !rests() || missing > 0;
    }
    /** By how much the chains' means differ at a point, as a probability. */
    function apartAt({ chains, epistemic, aleatoric }, n) {
      const values = chains.map((chain) => chain[n]), range = Math.max(...values) - Math.min(...values);
      return state.kind === "curve" ? overlap(range / Math.sqrt(epistemic[n] + aleatoric[n])) : range;
    }
    function picture(wants = {}) {
      const { draws, weights, kind } = sampler.shown(), has = (of) => draws.id.some((id) => id && of.of(id));
      if (!has(table)) return null;
      average = table.average(draws, weights);
      const apart = average.mean.map((_, n) => apartAt(average, n)), spread = Math.max(...apart);
      const { tuned, acceptance, stepSize, divergences } = sampler.state(), number = Math.min(...draws.made);
      const moves = Math.min(...acceptance) >= MOVING || kind === "reweighted";
      const long = isLong() || settled || (kind === "reweighted" && worth >= WORTH);
      const now = long && moves && spread <= APART;
      if (now && !settled && !missing) moved = move(average.mean, keys.grid);
      settled = now && (settled || !missing);
      const score = scores && has(scores) ? scored(state, scores.average(draws, weights)) : null;
      const drawn = tuned < 1 ? 0 : Math.min(numDraws() / SETTLED, 1), progress = (2 * Math.min(tuned, 1) + drawn) / 3;
      const ids = Array.from(draws.id).filter((id) => id && table.of(id)).sort((a, b) => b - a);
      const every = Math.max(1, Math.floor(ids.length / 20));
      const members = ids.filter((_, i) => i % every === 0).slice(0, 20).map(table.of);
      const { epistemic, aleatoric } = average, newest = kind === "reweighted" || settled ? null : table.of(ids[0]);
      const found = { method: "posterior", mean: average.mean, epistemic, aleatoric, members, newest, score, settled,
        progress, moved };
      const how = { kind, tuned, number, draws: numDraws(), acceptance, stepSize, divergences, spread, worth,
        restored, long, moves };
      const traces = wants.traces && number > 10 ? series(draws, (row) => draws.logDensity[row]) : null;
      const chains = wants.chains ? diagnose(draws, kind, apart) : null;
      // while draws come, nothing is hatched
      const isEnough = long && moves && (kind === "imposed" || number >= ENOUGH);
      return { ...found, how, apart: isEnough ? apart : null, traces, chains };
    }
    /** R-hat and effective sample size of the log density, and of the prediction where the chains differ most. */
    function diagnose(draws, kind, apart) {
      if (!["fresh", "imposed"].includes(kind) || Math.min(...draws.made) < 20) return [];
      const most = apart.indexOf(Math.max(...apart));
      const p = series(draws, (row) => table.of(draws.id[row])?.[most] ?? NaN),
        isWhole = p.every((chain) => chain.every(Number.isFinite));
      const all = [["log density", series(draws, (row) => draws.logDensity[row])]];
      if (isWhole) all.push(["prediction where the chains differ most", p]);
      return all.map(([name, s]) => [name, rhat(s), effectiveSampleSize(s)]);
    }
    /** A picture now and then, a quarter of the time at most; and one when all is there. */
    function changed(isCalm) {
      const now = performance.now(), isLast = rests() && !missing;
      if (!isNew || (isCalm ? !isLong() && worth < WORTH : now < next && !isLast)) return false;
      isNew = false;
      return true;
    }
    const painted = (begun) => (next = Math.max(begun + 60, 4 * performance.now() - 3 * begun));
    const renew = () => (isNew ||= average !== null);
    return { set, work, picture, changed, painted, renew, rests: () => rests() && !missing };
  }

  /** What is stored: nothing is computed. */
  function kept() {
    let state, isNew = true;
    const set = (next) => [state, isNew] = [next, true];
    function picture() {
      const { mean: p, rhat: r } = storedOf(state);
      return { method: "stored", mean: p, settled: true, rhat: r, progress: 1, moved: null, members: [], newest: null,
        apart: null };
    }
    return { set, work: () => false, picture, changed: () => isNew && !(isNew = false), rests: () => true, renew() {} };
  }

  /** The sides that a state shows, and how each is made. */
  function sidesOf(state) {
    if (storedOf(state)) return { right: "stored" };
    return state.kind === "groups" || state.one ? { right: "posterior" } : { left: state.left, right: state.right };
  }

  /**
   * All work of a playground. handle({state, serial, opened, wants, running, held, calm}) takes what the page says:
   * serial comes back with every picture, and a new `opened` begins anew. slice(milliseconds) works, and says whether
   * more is to be done.
   * @param {function} post called with {side, serial, picture} when there is a new one
   * @param {?object} stored {key, positions, stepSize, acceptance}: draws of one state, made before
   */
  function workshop(post, stored = null) {
    let views = {}, said = {}, opened = null;
    const makers = { posterior: () => sampled(stored), stored: kept };
    function handle(message) {
      const isNewest = message.opened !== opened, sides = sidesOf(message.state), old = views;
      [said, opened, views] = [message, message.opened, {}];
      for (const [side, method] of Object.entries(sides)) {
        const isSame = old[side]?.method === method && !(isNewest && method !== "posterior");
        const view = isSame ? old[side].view : (makers[method] ?? (() => fitted(method)))();
        views[side] = { method, view };
        view.set(stateOf(message.state, side), isNewest);
        if (isSame) view.renew(); // what there is comes back with the new serial, also where nothing is to be done
      }
    }
    function slice(milliseconds) {
      const begun = performance.now(), all = Object.entries(views), open = all.filter(([, { view }]) => !view.rests());
      if (said.running === false) return false;
      let isBusy = false;
      for (const [, { view }] of open)
        isBusy = view.work(performance.now() + (begun + milliseconds - performance.now()) / open.length, said.held) ||
          isBusy;
      for (const [side, { view }] of all) {
        if (!view.changed(said.calm)) continue;
        const now = performance.now(), picture = view.picture(said.wants);
        if (picture) post({ side, serial: said.serial, picture });
        view.painted?.(now);
      }
      return isBusy || open.length > 0;
    }
    return { handle, slice, again: () => Object.values(views).some(({ view }) => !view.rests()) };
  }

  /** In a Worker: work until there is nothing to do; what the page says comes between slices. */
  function serve(scope) {
    const { port1, port2 } = new MessageChannel();
    let shop = null, isDue = false;
    const loop = () => { if (!isDue) { isDue = true; port1.postMessage(0); } };
    port2.onmessage = () => {
      isDue = false;
      if (shop.slice(24)) loop();
    };
    scope.onmessage = ({ data: message }) => {
      shop ??= workshop((found) => scope.postMessage(found), message.stored);
      shop.handle(message);
      loop();
    };
  }
  if (here && typeof document === "undefined" && typeof self !== "undefined") serve(self);

  return { workshop, SIZES, SETTLED, APART, fitKey, gridFor };
})();
if (typeof module !== "undefined") module.exports = Work;
