/** The search: sections by BM25, over words reduced to their stems, with the field's synonyms; the best passage of each.
 *
 * A classic script over BookSections, BookSynonyms and BookStopWords (sections.js, made with the site), MiniSearch and
 * Sphinx's Stemmer, so that it also runs from a disk. */
"use strict";
const BookSearch = (() => {
  const WEIGHTS = { heading: 4, keywords: 4, phrases: 3, page: 1.5, text: 1 };
  const SYNONYM = 0.8, ADJACENT = 0.5, ALIKE = 2, COVER = 0.5, APART = 0.4, PASSAGE = 300, SHOWN = 30;
  const stemmer = new Stemmer();
  const stop = new Set(BookStopWords);

  /** Words of a text as it is written; a compound is one. */
  const wordsOf = (text) => text.toLowerCase().replaceAll("’", "'").match(/[\p{L}\p{N}_]+(?:[-'.][\p{L}\p{N}_]+)*/gu) ?? [];
  /** British spellings as American ones; both sides of the search go through this. */
  const spelt = (word) => word
    .replace(/centr(e|es|ed|ing)$/, (_, end) => `center${{ e: "", es: "s" }[end] ?? end}`)
    .replace(/(behavi|col|fav|neighb)our/, "$1or").replace(/is(?=(?:e|ed|es|ing|ation)$)/, "iz").replace(/ll(?=(?:ed|ing)$)/, "l");
  const stemOf = (word) => (/^[a-z]+$/.test(word) ? stemmer.stemWord(spelt(word)) : word);
  const partsOf = (word) => word.split(/[-'._]/).filter(Boolean);
  const stems = (text) => wordsOf(text).flatMap((word) => {
    const parts = partsOf(word);
    return (parts.length > 1 ? [parts.join(""), ...parts] : parts).map(stemOf);
  });
  /** The stems of a question that say something, each once; all of them if none does. */
  const asked = (text, mend = (word) => word) => {
    const all = wordsOf(text.replace(/n't\b|n’t\b/g, "")).flatMap(partsOf).map(mend);
    const telling = all.filter((word) => !stop.has(word));
    return [...new Set((telling.length ? telling : all).map(stemOf))];
  };
  /** How many letters differ between two words: missing, too many, other ones, or two exchanged; 3 stands for more. */
  function difference(a, b) {
    if (Math.abs(a.length - b.length) > 2) return 3;
    const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
    for (let i = 1; i <= a.length; i += 1) {
      rows.push([i]);
      for (let j = 1; j <= b.length; j += 1) {
        const same = a[i - 1] === b[j - 1], turned = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
        const ways = [rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + !same];
        rows[i].push(Math.min(...ways, turned ? rows[i - 2][j - 2] + 1 : 3));
      }
    }
    return Math.min(3, rows[a.length][b.length]);
  }

  let index, documents, phrasings, counts, written, rarity;
  function build() {
    const joined = ({ asked, passages }) => ({ phrases: asked.join("\n"), text: passages.join("\n") });
    documents = BookSections.map((section, id) => ({ id, ...section, ...joined(section) }));
    index = new MiniSearch({ fields: Object.keys(WEIGHTS), tokenize: stems, processTerm: (term) => term });
    index.addAll(documents);
    const flat = (texts) => ` ${texts.map((text) => stems(text).join(" ")).join(" | ")} `;
    for (const one of documents) one.flat = flat([one.heading, one.keywords, ...one.asked, ...one.passages]);
    counts = new Map();
    for (const one of documents) for (const stem of new Set(one.flat.split(" "))) counts.set(stem, (counts.get(stem) ?? 0) + 1);
    written = new Map();
    for (const word of documents.flatMap(({ heading, phrases, text }) => wordsOf(`${heading}\n${phrases}\n${text}`)))
      if (/^[a-z]{3,}$/.test(word)) written.set(word, (written.get(word) ?? 0) + 1);
    rarity = (stem) => Math.log(1 + documents.length / (1 + (counts.get(stem) ?? 0)));
    for (const one of documents) one.titles = [one.heading, ...one.keywords.split("; "), ...one.asked].map((title) => new Set(asked(title)));
    const groups = BookSynonyms.map((group) => group.map((phrase) => asked(phrase)));
    phrasings = groups.flatMap((group) => group.map((phrase) => ({ phrase, group })));
    phrasings.sort((a, b) => b.phrase.length - a.phrase.length);
  }

  /** A word that the book has: this one, or the nearest by its letters, the commonest of these. */
  function known(word) {
    if (counts.has(stemOf(word)) || word.length < 4 || !/^[a-z]+$/.test(word)) return word;
    const near = [...written].map(([other, count]) => ({ other, count, away: difference(word, other) }));
    const [best] = near.sort((a, b) => a.away - b.away || b.count - a.count);
    return best.away <= (word.length < 7 ? 1 : 2) ? best.other : word;
  }

  /** What a question asks for: each a list of ways to say it, each a list of stems. */
  function concepts(said) {
    const rest = [...said], found = [];
    const at = (phrase) => rest.findIndex((_, i) => phrase.every((stem, k) => rest[i + k] === stem));
    const met = new Set(); // a thing that is named twice is asked for once
    for (const { phrase, group } of phrasings) {
      const i = at(phrase);
      if (i < 0) continue;
      if (!met.has(group)) found.push([phrase, ...group.filter((other) => other !== phrase)]);
      met.add(group);
      rest.splice(i, phrase.length, null);
    }
    return [...found, ...rest.filter(Boolean).map((stem) => [[stem]])];
  }

  /** The scores of sections that have all of some stems, by their number. */
  function scores(phrase) {
    const options = { boost: WEIGHTS, combineWith: "AND", tokenize: (stem) => [stem] };
    const together = ` ${phrase.join(" ")} `;
    const factor = (hit) => (phrase.length > 1 && !documents[hit.id].flat.includes(together) ? APART : 1);
    return new Map(index.search({ queries: phrase, ...options }).map((hit) => [hit.id, factor(hit) * hit.score]));
  }

  /** How much of two sets of stems is in both, rare ones counting more. */
  function likeness(a, b) {
    const sum = (set) => [...set].reduce((total, stem) => total + rarity(stem), 0);
    const both = sum([...a].filter((stem) => b.has(stem)));
    return both / (sum(a) + sum(b) - both || 1);
  }

  /** What a text asks: its stems, and what they are about. */
  function question(text) {
    if (!index) build();
    const said = asked(text, known);
    return { said, wanted: concepts(said) };
  }

  /** Sections that answer a question, the best first. */
  function answers({ said, wanted }) {
    const asking = new Set(said), total = new Map(), met = new Map();
    for (const ways of wanted) {
      const best = new Map();
      ways.forEach((phrase, k) => {
        for (const [id, score] of scores(phrase)) {
          const value = (k ? SYNONYM : 1) * score;
          if (value > (best.get(id) ?? 0)) best.set(id, value);
        }
      });
      for (const [id, score] of best) {
        total.set(id, (total.get(id) ?? 0) + score);
        met.set(id, (met.get(id) ?? 0) + 1);
      }
    }
    const pairs = said.slice(1).map((stem, i) => ` ${said[i]} ${stem} `);
    const rank = ([id, score]) => {
      const { flat, weight, titles } = documents[id];
      const near = pairs.filter((pair) => flat.includes(pair)).length / (pairs.length || 1);
      const alike = Math.max(...titles.map((title) => likeness(asking, title)));
      return { id, score: weight * score * (met.get(id) / wanted.length) ** COVER * (1 + ADJACENT * near + ALIKE * alike) };
    };
    return [...total].map(rank).sort((a, b) => b.score - a.score).map(({ id, score }) => ({ ...documents[id], score }));
  }

  /** The passage of a section that says most of what was asked, cut to what can be read at a glance. */
  function passage(section, wanted) {
    const said = (text) => new Set(stems(text).filter((stem) => wanted.has(stem))).size;
    const best = section.passages.reduce((a, b) => (said(b) > said(a) ? b : a), section.passages[0] ?? "");
    const first = [...best.matchAll(/[\p{L}\p{N}_'’-]+/gu)].find((match) => stems(match[0]).some((stem) => wanted.has(stem)));
    const start = best.length > PASSAGE && first?.index > PASSAGE / 2 ? best.indexOf(" ", first.index - PASSAGE / 3) + 1 : 0;
    const cut = best.slice(start, start + PASSAGE), whole = start + PASSAGE >= best.length;
    return `${start ? "… " : ""}${whole ? cut : `${cut.slice(0, cut.lastIndexOf(" "))} …`}`;
  }

  /** An element with text, or with other elements. */
  function element(name, parts, attributes = {}) {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...[parts].flat());
    return made;
  }

  /** A text in which the words that were asked for are marked. */
  const marked = (text, wanted) => text.split(/([\p{L}\p{N}_'’-]+)/gu)
    .map((part) => (stems(part).some((stem) => wanted.has(stem)) ? element("mark", part) : part));

  /** Show what is found, best first. */
  function show(text, place) {
    const asking = question(text), found = answers(asking).slice(0, SHOWN), wanted = new Set(asking.wanted.flat(2));
    const items = found.map((section) => {
      const link = element("a", section.heading, { href: section.address });
      const parts = section.heading === section.page ? [link] : [link, element("span", section.page)];
      return element("li", [element("h2", parts), element("p", marked(passage(section, wanted), wanted))]);
    });
    const none = "Nothing was found. Other words may do, or the glossary.";
    const told = found.length ? `${found.length === SHOWN ? "The best " : ""}${found.length} sections, the best first.` : none;
    place.replaceChildren(element("p", told, { id: "search-told" }), element("ol", items, { className: "found" }));
  }

  if (typeof document !== "undefined") {
    const place = document.getElementById("search-results"), text = new URLSearchParams(location.search).get("q");
    for (const input of document.querySelectorAll("form.bd-search input")) input.value = text ?? "";
    place.setAttribute("aria-live", "polite");
    if (text?.trim()) show(text, place);
  }

  return { find: (text) => answers(question(text)) };
})();
if (typeof module !== "undefined") module.exports = BookSearch;
