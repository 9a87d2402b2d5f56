/** Set formulas with MathJax: [[TeX, whether it is displayed], ...] to {formulas: [HTML, ...], style: CSS}, as JSON. */
"use strict";
const formulas = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const load = ["input/tex", "output/chtml", "a11y/assistive-mml"]; // the last: MathML that is heard and not seen
const chtml = { fontURL: "mathjax/fonts", adaptiveCSS: true, scale: 1.08 }; // small letters as high as those of the text
const tex = { packages: { "[-]": ["noundefined"] } }; // which would show an unknown command in red, and go on

require("./mathjax/node-main.js").init({ loader: { load }, chtml, tex }).then((MathJax) => {
  const { adaptor } = MathJax.startup;
  const set = formulas.map(([tex, display]) => {
    const made = MathJax.tex2chtml(tex, { display });
    if (display) adaptor.setAttribute(made, "tabindex", "0"); // on phones it scrolls, with the keyboard, too
    return adaptor.outerHTML(made);
  });
  const style = adaptor.textContent(MathJax.chtmlStylesheet());
  process.stdout.write(JSON.stringify({ formulas: set, style }));
});
