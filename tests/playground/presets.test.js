// What the presets' answers say, computed by the playground's own engine and methods. Seeds are fixed.
"use strict";
const { test } = require("node:test"),
  assert = require("node:assert/strict");
const { mean } = require("./common.js");
const Playground = require("../../playground/engine.js"),
  Diagnostics = require("../../playground/diagnostics.js"),
  Methods = require("../../playground/methods.js"),
  PlaygroundData = require("../../playground/data.js"),
  PlaygroundPresets = require("../../playground/presets.js"),
  State = require("../../playground/state.js"),
  Work = require("../../playground/work.js");

function fit(method, state, x = Work.gridFor(state)) {
  const target = State.targetOf(state);
  if (method === "posterior") {
    const sampler = Playground.sampler(target, { capacity: 300, seed: 3 }),
      table = Diagnostics.predictionTable(x);
    sampler.advance({ transitions: 4 * 600 });
    table.update(sampler.shown().draws, target);
    return table.average(sampler.shown().draws);
  }
  const fitting = Methods.fit(method, target, x);
  let step = fitting.next();
  while (!step.done) step = fitting.next();
  return step.value;
}
const preset = (name, part = {}) => State.complete({ ...State.presets[name], ...part });
const sure = (p) => Math.max(p, 1 - p);
/** The numbers of an answer, as it says them. */
const said = (name) => PlaygroundPresets.quizzes[name].answer.match(/\d+\.\d+/g).map(Number);
const says = (name, found, index, by = 0.015) => {
  const number = said(name)[index];
  assert.ok(Math.abs(found - number) <= by, `${name}: found ${found}, the answer says ${number}`);
};

test("every question has three options, one of them right, and opens a preset", () => {
  const names = PlaygroundPresets.rows.of["Predict first"];
  assert.deepEqual(Object.keys(PlaygroundPresets.quizzes), names);
  assert.equal(names.length, 6);
  for (const name of names) {
    const { options, right, ask, answer } = PlaygroundPresets.quizzes[name];
    assert.ok(options.length === 3 && [1, 2, 3].includes(right) && ask.length > 30 && answer.length > 60);
    assert.ok(Object.hasOwn(State.presets, name));
  }
  for (const list of Object.values(PlaygroundPresets.rows.of)) for (const name of list) assert.ok(Object.hasOwn(State.presets, name));
});

test("far away one network is certain in all corners, and the posterior doubts in two", () => {
  const state = preset("far-away"),
    corners = [0, 24, 600, 624];
  const one = fit("map", state).mean,
    all = fit("posterior", state).mean;
  assert.equal(said("far-away")[0], 0.99);
  for (const n of corners) assert.ok(sure(one[n]) >= 0.99, `${sure(one[n])}`);
  const doubtful = [0, 624].map((n) => sure(all[n]));
  assert.ok(Math.abs(mean(doubtful) - said("far-away")[1]) < 0.07, `${doubtful}`);
  assert.ok([24, 600].every((n) => sure(all[n]) > 0.93));
});

test("mean field takes the humps of a wave for noise", () => {
  const state = preset("signal-or-noise"),
    x = Float64Array.from(Work.gridFor(state)),
    at = (v) => x.findIndex((one) => one > v - 0.02);
  const field = fit("meanfield", state),
    all = fit("posterior", state),
    noise = [field, all].map(({ aleatoric }) => Math.sqrt(aleatoric[0]));
  says("signal-or-noise", noise[0], 0, 0.06);
  assert.ok(Math.abs(noise[1] - said("signal-or-noise")[1]) < 0.03, `${noise[1]}`);
  assert.ok(noise[0] > 4 * state.spread && noise[0] < 6.5 * state.spread, `${noise[0]}: five times`);
  const [left, right] = [-0.4, 0.9].map(at); // a hump's lowest, and behind the other's top: the truth falls again
  assert.ok(all.mean[left] < -0.8 && field.mean[left] > -0.6, `${all.mean[left]}, ${field.mean[left]}`);
  assert.ok(all.mean[right] < 0 && field.mean[right] > 0.6, `${all.mean[right]}, ${field.mean[right]}: half a wave`);
});

test("the posterior's band opens in a gap twice as wide as mean field's, and beyond the points alone", () => {
  const state = preset("the-gap"),
    [field, all] = ["meanfield", "posterior"].map((method) => Array.from(fit(method, state).epistemic, Math.sqrt));
  assert.ok(Math.abs(all[50] - said("the-gap")[0]) < 0.06, `${all[50]}`);
  assert.ok(field[50] / all[50] > 0.35 && field[50] / all[50] < 0.65, `${field[50]}, ${all[50]}: half`);
  for (const n of [0, 100]) assert.ok(all[n] > 0.3 && field[n] < 0.12, `${all[n]}, ${field[n]}`);
});

test("one label moves one network more than the posterior: much for six of twelve points, alike for the others", () => {
  const state = preset("one-label"),
    flipped = (k) => ({ ...state, points: state.points.map((p, n) => (n === k ? [p[0], p[1], 1 - p[2]] : p)) });
  const moves = ["map", "posterior"].map((method) => {
    const before = fit(method, state).mean;
    return state.points.map((_, k) => mean(Array.from(fit(method, flipped(k)).mean, (p, n) => Math.abs(p - before[n]))));
  });
  says("one-label", mean(moves[0]), 0);
  says("one-label", mean(moves[1]), 1);
  for (const k of state.points.keys()) {
    const more = moves[0][k] - moves[1][k], isMiddle = [1, 2, 3, 7, 8, 9].includes(k); // of an arc
    assert.ok(isMiddle ? more > 0.025 : Math.abs(more) < 0.025, `${k}: ${moves[0][k]}, ${moves[1][k]}`);
  }
});

test("N(0, 1) is right more often than it says, 24 as often; and under N(0, 1) one network scores better", () => {
  const scores = [1, 24].map((output) => {
    const state = preset("two-priors", { sds: [1, 1, output] }),
      { x, y } = PlaygroundData.fresh(state),
      average = fit("posterior", state, x);
    const loss = (p) => mean(y.map((label, n) => -Math.log(label ? p[n] : 1 - p[n])));
    return { ...PlaygroundData.score(y, average, false), loss: loss(average.mean), one: loss(fit("map", state, x).mean) };
  });
  const [narrow, wide] = scores;
  [narrow.says, narrow.right, wide.says, wide.right].forEach((value, i) => says("two-priors", value, i));
  assert.ok(narrow.right - narrow.says > 0.01 && wide.right > narrow.right + 0.03, JSON.stringify(scores));
  says("two-priors", narrow.one, 4, 0.01);
  says("two-priors", narrow.loss, 5, 0.01);
  assert.ok(narrow.one < narrow.loss - 0.01, `${narrow.one}, ${narrow.loss}`);
});

test("five networks agree in empty corners where the posterior does not", () => {
  const state = preset("five-networks"),
    grid = Work.gridFor(state);
  const five = fit("ensemble", state),
    all = fit("posterior", state).mean,
    near = [];
  for (let n = 0; n < all.length; n++)
    if (state.points.some(([a, b]) => Math.hypot(a - grid[2 * n], b - grid[2 * n + 1]) < 0.25)) near.push(n);
  for (const n of [0, 624]) {
    const opposite = five.mean[n] > 0.5 ? 1 - all[n] : all[n];
    assert.ok(five.members.every((p) => sure(p[n]) > said("five-networks")[0] && p[n] > 0.5 === five.mean[n] > 0.5));
    assert.ok(opposite > 0.18 && opposite < 0.36, `${opposite}: a quarter`);
  }
  says("five-networks", mean(near.map((n) => Math.abs(five.mean[n] - all[n]))), 1, 0.02);
});

test("stored draws of the first picture are the posterior's", () => {
  const state = preset("start"),
    stored = State.unpack(require("../../assets/playground/draws.json")),
    target = State.targetOf(state);
  assert.equal(stored.key, Work.fitKey(state));
  assert.deepEqual(State.unpack({ ...stored, size: target.size, chains: 4, text: State.pack(stored.positions) }).positions, stored.positions);
  const sampler = Playground.sampler(target),
    table = Diagnostics.predictionTable(Work.gridFor(state));
  sampler.restore(stored);
  const { draws, kind } = sampler.shown();
  assert.equal(kind, "fresh");
  assert.deepEqual(Array.from(draws.made), [200, 200, 200, 200]);
  table.update(draws, target);
  const found = table.average(draws).mean,
    long = fit("posterior", state).mean;
  assert.ok(mean(Array.from(found, (p, n) => Math.abs(p - long[n]))) < 0.02);
  const height = Diagnostics.series(draws, (row) => draws.logDensity[row]);
  assert.ok(Diagnostics.rhat(height) < 1.05 && Diagnostics.effectiveSampleSize(height) > 200);
  const { effectiveSampleSize } = sampler.retarget(State.targetOf({ ...state, points: state.points.with(0, [...state.points[0].slice(0, 2), 1]) }));
  assert.ok(effectiveSampleSize > 1 && sampler.state().phase === "warm-up");
});

test("a change taken back shows the stored draws again, and flips are answered by weights", () => {
  const state = preset("start"),
    stored = State.unpack(require("../../assets/playground/draws.json")),
    found = {},
    shop = Work.workshop(({ side, picture }) => (found[side] = picture), stored);
  const show = (now, serial) => {
    delete found.right;
    delete found.left;
    shop.handle({ state: now, serial, opened: 1, wants: {}, running: true });
    for (let i = 0; i < 2000 && !(found.right?.settled && found.left?.settled); i++) shop.slice(20);
    return found.right;
  };
  const first = show(state, 1);
  assert.ok(first.how.restored && first.settled && Math.abs(first.score.says - 0.9) < 0.02);
  const flipped = show({ ...state, points: state.points.with(5, [...state.points[5].slice(0, 2), 1 - state.points[5][2]]) }, 2);
  assert.ok(!flipped.how.restored && flipped.settled && flipped.moved > 0.002, `${flipped.how.kind}, ${flipped.moved}`);
  assert.ok(show(state, 3).how.restored);
  assert.ok(show({ ...state, twenty: true }, 4).settled && found.left.settled, "where nothing is to be done");
});
