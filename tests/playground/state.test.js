// What presets show is what the page says of them; links hold everything. Seeds are fixed, so nothing is left to chance.
"use strict";
const { test } = require("node:test"),
  assert = require("node:assert/strict");
const { mean } = require("./common.js");
const Playground = require("../../playground/engine.js"),
  Diagnostics = require("../../playground/diagnostics.js"),
  State = require("../../playground/state.js"),
  Paint = require("../../playground/paint.js");

const line = Array.from({ length: 25 }, (_, i) => -3 + i / 4),
  plane = line.flatMap((y) => line.map((x) => [x, y]));
const gridOf = ({ kind }) => (kind === "curve" ? line.map((x) => x / 2) : kind === "groups" ? Array(6).fill(plane).flat(2) : plane.flat());

/** Averages over draws of a preset changed in some values, and what the sampler says. */
function look(name, part = {}, { draws = 500, prepare = () => {}, start = null } = {}) {
  const state = { ...State.complete({ ...State.presets[name], ...part }) },
    target = State.targetOf(state),
    sampler = Playground.sampler(target, { capacity: draws, start }),
    table = Diagnostics.predictionTable(Float64Array.from(gridOf(state)));
  prepare(sampler);
  sampler.advance({ transitions: 4 * (300 + draws) });
  const shown = sampler.shown().draws;
  table.update(shown, target);
  const average = table.average(shown),
    of = (n) => average.chains.map((chain) => chain[n]);
  const apart = Math.max(...average.mean.map((_, n) => Math.max(...of(n)) - Math.min(...of(n))));
  return { ...average, apart, acceptance: mean(Array.from(sampler.state().acceptance)), state };
}
const distance = (one, other) => mean(one.mean.map((p, n) => Math.abs(p - other.mean[n])));
const within = (test) => plane.flatMap(([x, y], n) => (test(x, y) ? [n] : []));
const over = (places, values) => mean(places.map((n) => values[n]));
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

test("the middle one of flipped labels moves the surface by 0.07 of twelve, by 0.02 of fifty", () => {
  for (const [name, low, high] of [
    ["flip-12", 0.05, 0.09],
    ["flip-50", 0.015, 0.03],
  ]) {
    const before = look(name),
      moves = [0, 3, 6, 9, 11].map((k) => {
        const points = before.state.points.map((p, n) => (n === k ? [p[0], p[1], 1 - p[2]] : p));
        return distance(before, look(name, { points }));
      });
    assert.ok(median(moves) > low && median(moves) < high, `${name}: ${moves}`);
  }
});

test("a larger output scale makes colours strong", () => {
  const [pale, strong] = [1, 24].map((output) => look("output-scale", { sds: [1, 1, output] }));
  const strength = ({ mean: p }) => mean(p.map((value) => Math.abs(value - 0.5)));
  assert.ok(strength(pale) < 0.3 && strength(strong) > 0.38, `${strength(pale)}, ${strength(strong)}`);
});

test("a gap raises the epistemic variance there, more points lower it elsewhere, and the aleatoric stays", () => {
  const [whole, gap, more] = [{}, { gap: true }, { gap: true, count: 200 }].map((part) => look("gap", part, { draws: 300 }));
  const middle = within((x, y) => Math.abs(x) < 0.7 && Math.abs(y) < 1.5),
    data = within((x, y) => Math.abs(x) > 0.9 && Math.abs(x) < 2 && Math.abs(y) < 2);
  assert.ok(over(middle, gap.epistemic) > 1.3 * over(middle, whole.epistemic), "the gap is seen");
  assert.ok(over(data, more.epistemic) < 0.85 * over(data, gap.epistemic), "points settle something");
  assert.ok(over(middle, more.epistemic) > 1.3 * over(data, more.epistemic), "not in the gap");
  const ratio = over(data, more.aleatoric) / over(data, gap.aleatoric);
  assert.ok(ratio > 0.75 && ratio < 1.33, `the aleatoric stays: ${ratio}`);
});

test("the band of a curve opens in a gap, and points close it", () => {
  const [gap, whole] = [true, false].map((gap) => look("curve-gap", { gap })),
    sd = ({ epistemic }, x) => Math.sqrt(epistemic[line.indexOf(2 * x)]);
  assert.ok(sd(gap, 0) > 3 * sd(gap, 0.625) && sd(whole, 0) < 0.4 * sd(gap, 0), `${sd(gap, 0)}, ${sd(whole, 0)}`);
});

test("a step size divided by 20 is always accepted and leaves the chains apart; four times it is never accepted", () => {
  const impose = (factor) => (sampler) => {
    sampler.advance({ transitions: 4 * 300 });
    const { stepSize } = sampler.state();
    sampler.imposeStepSize(factor * Math.exp(mean(stepSize.map(Math.log))));
  };
  const [learnt, small, large] = [() => {}, impose(1 / 20), impose(4)].map((prepare) => look("step", {}, { prepare, draws: 250 }));
  assert.ok(learnt.acceptance > 0.7 && learnt.acceptance < 0.9 && learnt.apart < 0.2, `${learnt.acceptance}, ${learnt.apart}`);
  assert.ok(small.acceptance > 0.995 && small.apart > 0.2, `${small.acceptance}, ${small.apart}`);
  assert.ok(large.acceptance < 0.02, `${large.acceptance}`);
});

test("chains that start together agree while they stick, and not on the posterior", () => {
  const start = State.farStart(State.targetOf(State.complete(State.presets["far-start"])).size);
  const prepare = (sampler) => sampler.imposeStepSize(0.02 * State.presets["far-start"].step);
  const [stuck, free] = [look("far-start", {}, { start, prepare, draws: 100 }), look("far-start")];
  const sd = (n) => Math.sqrt(stuck.epistemic[n] + stuck.aleatoric[n]);
  const apart = Math.max(...stuck.mean.map((_, n) => Math.abs(stuck.chains[0][n] - stuck.chains[1][n]) / sd(n)));
  assert.ok(apart < 0.5, `${apart}: the page calls that settled`);
  assert.ok(distance(stuck, free) > 1, `${distance(stuck, free)}`);
});

test("a task without labels shows what the others have in common at a small scale, and little at a large one", () => {
  const strength = (part) => mean(part.map((p) => Math.abs(p - 0.5)));
  const first = (sd) => look("group", { without: true, group: sd }, { draws: 250 }).mean;
  const [near, far] = [first(0.01), first(3)],
    cells = plane.length;
  assert.ok(mean(Array.from(near.slice(0, cells), (p, n) => Math.abs(p - near[cells + n]))) < 0.02);
  assert.ok(strength(near.slice(0, cells)) > 0.25 && strength(far.slice(0, cells)) < 0.1);
});

test("six tasks of fifty labels are stored at every scale that the slider has, on the grid that is drawn", () => {
  const state = State.complete(State.presets["group-50"]);
  assert.equal(state.points.length, 300);
  assert.equal(State.storedOf(State.complete(State.presets.group)), null);
  for (const group of [0.01, 0.03, 0.1, 0.3, 1, 3, 0])
    for (const without of [false, true]) {
      const { mean: p, rhat } = State.storedOf({ ...state, group, without });
      assert.equal(p.length, State.drawing.gridOf("groups", 13).length / 2);
      assert.ok(p.every((value) => value >= 0 && value <= 1) && rhat > 0.99 && rhat < 1.05, `${group}, ${without}: ${rhat}`);
      if (without) continue;
      const right = state.points.map(([x, y, label, task]) => {
        const [i, j] = [x, y].map((v) => Math.round((12 * (v + 3)) / 6)); // the nearest point of the grid
        return p[(task * 13 + j) * 13 + i] > 0.5 === (label === 1) ? 1 : 0;
      });
      assert.ok(mean(right) > 0.8, `${group}: ${mean(right)} of the labels`);
    }
  const moved = (group) => {
    const [kept, lost] = [false, true].map((without) => State.storedOf({ ...state, group, without }).mean.slice(0, 169));
    return mean(Array.from(kept, (p, n) => Math.abs(p - lost[n])));
  };
  assert.deepEqual([0.01, 3, 0].map((group) => moved(group).toFixed(2)), ["0.02", "0.42", "0.04"]);
});

test("a link holds the whole state, of every preset and every data set", () => {
  const states = [...Object.values(State.presets), ...Object.keys(State.sets).map((set) => ({ set, width: 2, far: true, step: 0.25 }))];
  assert.ok(states.length > 25);
  for (const part of states) {
    const state = State.complete(part);
    assert.deepEqual(State.decode(State.encode(state)), state);
    assert.ok(State.encode(state).length < 2500);
  }
  const few = { ...State.complete({}), points: [] };
  assert.deepEqual(State.decode(State.encode(few)), few);
});

for (const link of ["set=none", "points=1,2", "points=1,2,x", "points=1,2,3", "width=3", "count=-1", "step=x", "sds=1,1", "sds=1,0,1", "__proto__=1", "set=toString", "set=fifty&group=0.5"])
  test(`a link that the playground did not write is refused: ${link}`, () => {
    assert.throws(() => State.decode(link), /link: given .*expected/);
  });

test("curves need no label, and a gap leaves the middle out", () => {
  const { points } = State.complete(State.presets["curve-gap"]);
  assert.ok(points.length > 20 && points.every(([x, y]) => Math.abs(x) > 0.35 && Number.isFinite(y)));
});

test("lines of a level are where it is crossed, and colours end where the book's do", () => {
  const values = Float64Array.from({ length: 16 }, (_, n) => (n % 4) / 3);
  const segments = Paint.contour(values, 4, 0.5);
  assert.equal(segments.length, 3);
  for (const [a, , c] of segments) assert.ok(Math.abs(a - 1.5) < 1e-12 && Math.abs(c - 1.5) < 1e-12);
  assert.deepEqual([0, 0.5, 1].map((p) => Paint.colour("probability", p)), [[127, 178, 218], [248, 248, 246], [239, 174, 124]]);
});
