/** Settings that the playground opens, and what some ask before they show anything. Numbers are those of its tests. */
const PlaygroundPresets = (() => {
  "use strict";
  const moons = { set: "moons", sds: [1, 1, 24] }; // fifty, as at the start
  const wave = { set: "wave", spread: 0.1, left: "meanfield" };
  const classes = ["output", "input"];
  const presets = {
    start: { ...moons },
    "far-away": { ...moons, zoom: 3 },
    "signal-or-noise": { ...wave, count: 25 },
    "the-gap": { ...wave, count: 40, gap: true, noise: 0.1 },
    "one-label": { set: "twelve" },
    "two-priors": { ...moons, left: "posterior", other: 1, controls: ["count", "other", "output", "truth", "twenty"] },
    "five-networks": { ...moons, left: "ensemble" },
    "flip-12": { controls: classes },
    "flip-50": { set: "moons", spread: 0.1, controls: ["output", "count"] }, // the twelve points' two arcs
    "output-scale": { set: "task1", controls: classes },
    gap: { set: "moons", sds: [1, 1, 8], controls: ["count", "gap"] },
    step: { set: "task1", controls: ["step", "output"] },
    "far-start": { set: "curve", count: 40, spread: 0.1, far: true, step: 0.05, controls: ["step", "far"] },
    group: { set: "six" },
    "group-50": { set: "fifty" },
    "group-without": { set: "six", without: true, controls: ["group"] },
    curve: { set: "curve", count: 40, spread: 0.1, controls: ["both", "noise"] },
    "curve-gap": { set: "wave", count: 40, spread: 0.1, gap: true, controls: ["gap", "count"] },
  };
  const texts = {
    "far-away": "Far away", "signal-or-noise": "Signal or noise", "the-gap": "The gap", "one-label": "One label",
    "two-priors": "Two priors", "five-networks": "Five networks", start: "Fifty moons", "flip-12": "Twelve points",
    "output-scale": "A task of the book", gap: "Variances", step: "Step size", "far-start": "Chains that start far out",
    group: "Six tasks", "group-50": "Six tasks, stored", curve: "A curve", "curve-gap": "A curve with a gap",
  };
  const asking = ["far-away", "signal-or-noise", "the-gap", "one-label", "two-priors", "five-networks"];
  const others = Object.keys(texts).filter((name) => !asking.includes(name));
  const rows = { texts, of: { "Predict first": asking, "More settings": others } };

  /** Questions; maps stay veiled until one of the options is pressed, where that is possible. right: 1 to 3. */
  const quizzes = {
    "far-away": {
      ask: "One network and the posterior of the same fifty points, seen from three times as far. Which of the " +
        "two is unsure in some corner?",
      options: ["One network", "The posterior", "Neither"], right: 2, veil: true,
      answer: "One network says 0.99 or more in all four corners. The posterior does not in two of them: there it " +
        "says about 0.75, since its networks turn their boundaries differently where no point holds them.",
    },
    "signal-or-noise": {
      ask: "Twenty-five points of a wave with a hump and a dip. Each method has to find the curve and the size of " +
        "the noise, which is 0.1. Mean field, on the left, lets each weight vary by itself. Does it find the wave?",
      options: ["Yes", "Yes, in a wider band", "It takes it for noise"], right: 3, veil: true,
      answer: "It learns a noise of about 0.5, five times the true one, and half a wave. The posterior finds the " +
        "wave and a noise of 0.1. A hump is made by several weights together. Where each varies by itself they " +
        "spoil it, and noise costs less.",
    },
    "the-gap": {
      ask: "Forty points of a wave, none in the middle, the noise known. Mean field is on the left. Whose band " +
        "opens more in the gap?",
      options: ["Mean field's", "The posterior's", "Both alike"], right: 2, veil: true,
      answer: "The posterior's curve is uncertain by about 0.4 in the middle of the gap, mean field's by half of " +
        "that; and to both sides of the points, where the posterior's band opens too, mean field's stays as " +
        "it is.",
    },
    "one-label": {
      ask: "Twelve points under N(0, 1). You flip one: which map moves more?",
      options: ["One network's", "The posterior's", "Both the same"], right: 1, veil: false,
      answer: "One network's: by 0.10 on average over the twelve points, the posterior by 0.07. It is further for " +
        "the six in the middle of the two arcs, and about the same for the six at their ends. Flip one, and " +
        "read “moved by” under both maps.",
    },
    "two-priors": {
      ask: "The posterior twice: output weights of scale 1 on the left, 24 on the right. Which is right more " +
        "often than it says?",
      options: ["Scale 1", "Scale 24", "Neither"], right: 1, veil: true,
      answer: "At scale 1 the posterior says 0.82 and is right in about 0.85. It dares no bend, and is right less " +
        "often than scale 24, which bends, says 0.90 and is right 0.90. And here one network wins against " +
        "expectation: under N(0, 1) MAP gives fresh labels a better log score than the posterior, a loss of " +
        "0.36 against 0.38 (set both scales to 1, and MAP on the left).",
    },
    "five-networks": {
      ask: "Five networks, trained from five starts, and the posterior. Where are the five sure, and the posterior " +
        "is not?",
      options: ["At the points", "Between the moons", "In empty corners"], right: 3, veil: true,
      answer: "In two of them the five say 0.99 and more, where a quarter of the posterior's networks say the " +
        "opposite. At the points the two maps differ by 0.04 on average. Five starts that end on nearly the " +
        "same network are one opinion.",
    },
  };
  for (const [name, quiz] of Object.entries(quizzes)) quiz.title = texts[name];
  return { presets, rows, quizzes };
})();
if (typeof module !== "undefined") module.exports = PlaygroundPresets;
