/** Data sets of the playground, as functions of a seed; the truth they are drawn from, and scores by it; no DOM. */
const PlaygroundData = (() => {
  "use strict";
  const engine = typeof Playground === "undefined" ? require("./engine.js") : Playground;
  const round = (value) => Math.round(value * 100) / 100 + 0; // never -0, which a link would lose
  // of a class's arc; labels that score, drawn apart from any shown
  const NODES = 200, FRESH = 2000, OTHER_SEED = 987654;

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

  // of the chapters, a wave half as long
  const bends = { curve: (x) => x * Math.sin(5 * x), wave: (x) => Math.sin(4 * x) };
  const line = (set, stream) => (count, noise, seed) => {
    const random = engine.generator(seed, stream);
    const places = Array.from({ length: count }, () => 2 * random.uniform() - 1);
    return places.map((x) => [round(x), round(bends[set](x) + noise * random.normal())]);
  };

  /** Six tasks of ten labels: moons, each turned by a little. */
  const six = (count, noise, seed) =>
    [-25, 10, -5, 20, -15, 15].flatMap((degrees, task) =>
      moons(10, noise, seed + task, (degrees * Math.PI) / 180).map((point) => [...point, task]),
    );

  const makers = { moons, spiral, curve: line("curve", 3), wave: line("wave", 4), six };

  /** Where a label's points would be without noise, at share u of its arc; and the noise's sd in both coordinates. */
  const arcs = {
    moons: {
      at: (label, u) => [Math.cos(Math.PI * u) - 0.5, Math.sin(Math.PI * u) - 0.25].map((v, i) =>
        (1 - 2 * label) * v * [1.1, 1.9][i]),
      sds: (noise) => [1.1 * noise, 1.9 * noise],
    },
    spiral: {
      at(label, u) {
        const turn = 0.6 + 4.4 * Math.sqrt(u);
        return [Math.cos, Math.sin].map((of) => 0.5 * turn * of(turn + Math.PI * label));
      },
      sds: (noise) => [0.5 * noise, 0.5 * noise],
    },
  };
  const isKnown = ({ set }) => Object.hasOwn(arcs, set) || Object.hasOwn(bends, set);

  /** The generator's own p(class 1 | x), or its curve, at points: nobody's expected score is better. */
  function truth({ set, spread }, x) {
    if (Object.hasOwn(bends, set)) return Float64Array.from(x, bends[set]);
    const { at, sds } = arcs[set], [a, b] = sds(spread);
    const nodes = [0, 1].map((label) => Array.from({ length: NODES }, (_, i) => at(label, (i + 0.5) / NODES)));
    return Float64Array.from({ length: x.length / 2 }, (_, n) => {
      const squares = nodes.map((arc) => arc.map(([u, v]) =>
        ((x[2 * n] - u) / a) ** 2 + ((x[2 * n + 1] - v) / b) ** 2));
      const least = Math.min(...squares.flat());
      const [zero, one] = squares.map((list) => list.reduce((sum, square) => sum + Math.exp(0.5 * (least - square)),
        0));
      return one / (zero + one);
    });
  }

  let kept = {};
  /** Points {x, y} that the generator draws anew, 2000, always the same of a set and its noise. */
  function fresh({ set, spread }) {
    const key = `${set} ${spread}`;
    if (kept.key === key) return kept.found;
    const points = makers[set](FRESH, spread, OTHER_SEED), inputs = Object.hasOwn(bends, set) ? 1 : 2;
    const found = { x: Float64Array.from(points.flatMap((p) => p.slice(0, inputs))), y: points.map((p) => p[inputs]) };
    kept = { key, found };
    return found;
  }

  /**
   * How sure predictions of fresh points are on average, and how often right: of classes the larger probability, and
   * whether it is that of the label; of curves the band of 95 %, and whether the measurement lies in it.
   */
  function score(y, { mean, epistemic, aleatoric }, isCurve) {
    const count = y.length;
    let [says, right] = [0, 0];
    for (let n = 0; n < count; n++) {
      says += isCurve ? 0.95 : Math.max(mean[n], 1 - mean[n]);
      const sd = isCurve ? Math.sqrt(epistemic[n] + aleatoric[n]) : 0;
      right += isCurve ? Math.abs(y[n] - mean[n]) <= 1.96 * sd : mean[n] > 0.5 === (y[n] === 1);
    }
    return { says: says / count, right: right / count };
  }

  return { makers, round, isKnown, truth, fresh, score };
})();
if (typeof module !== "undefined") module.exports = PlaygroundData;
