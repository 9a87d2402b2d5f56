/** The search: sections by BM25, over words reduced to their stems, with the field's synonyms; the best passage of each.
 *
 * A classic script over BookSections, BookSynonyms and BookStopWords (sections.js, made with the site), MiniSearch and
 * Sphinx's Stemmer, so that it also runs from a disk. */
"use strict";
const BookSearch = (() => {
  const WEIGHTS = { heading: 4, keywords: 4, page: 1.5, text: 1 };
  const SYNONYM = 0.8, ADJACENT = 0.5, ALMOST = 0.5, PASSAGE = 300, SHOWN = 30;
  const stemmer = new Stemmer();
  const stop = new Set(BookStopWords);

  /** Words of a text as it is written, and where: a compound also as one word and as its parts. */
  const wordsOf = (text) => text.toLowerCase().replaceAll("’", "'").match(/[\p{L}\p{N}_]+(?:[-'.][\p{L}\p{N}_]+)*/gu) ?? [];
  const stemOf = (word) => (/^[a-z]+$/.test(word) ? stemmer.stemWord(word) : word);
  const partsOf = (word) => word.split(/[-'._]/).filter(Boolean);
  const stems = (text) => wordsOf(text).flatMap((word) => {
    const parts = partsOf(word);
    return (parts.length > 1 ? [parts.join(""), ...parts] : parts).map(stemOf);
  });
  /** The stems of a question that say something; all of them if none does. */
  const asked = (text) => {
    const all = wordsOf(text).flatMap((word) => partsOf(word)).filter((word) => word.length > 1 || /\d/.test(word));
    const telling = all.filter((word) => !stop.has(word));
    return (telling.length ? telling : all).map(stemOf);
  };

  let index, documents, groups;
  function build() {
    documents = BookSections.map((section, id) => ({ id, ...section, text: section.passages.join("\n") }));
    index = new MiniSearch({ fields: Object.keys(WEIGHTS), tokenize: stems, processTerm: (term) => term });
    index.addAll(documents);
    const flat = (text) => ` ${stems(text).join(" ")} `;
    for (const one of documents) one.flat = flat(`${one.heading} \n ${one.keywords} \n ${one.text}`);
    groups = BookSynonyms.map((group) => group.map(asked));
  }

  /** What a question asks for: each a list of ways to say it, each a list of stems. */
  function concepts(text) {
    const rest = asked(text), found = [];
    const at = (phrase) => rest.findIndex((_, i) => phrase.every((stem, k) => rest[i + k] === stem));
    const known = groups.flatMap((group) => group.map((phrase) => ({ phrase, group })));
    known.sort((a, b) => b.phrase.length - a.phrase.length);
    for (const { phrase, group } of known) {
      const i = at(phrase);
      if (i < 0) continue;
      found.push([phrase, ...group.filter((other) => other !== phrase)]);
      rest.splice(i, phrase.length, null);
    }
    return [...found, ...rest.filter(Boolean).map((stem) => [[stem]])];
  }

  /** The scores of sections that have all of some stems, by their number. */
  function scores(phrase) {
    const options = { boost: WEIGHTS, combineWith: "AND" };
    const exact = index.search({ queries: phrase, ...options });
    const hits = exact.length ? exact : index.search({ queries: phrase, ...options, prefix: true, fuzzy: 0.25 });
    const share = exact.length ? 1 : ALMOST, together = ` ${phrase.join(" ")} `;
    const factor = (hit) => (phrase.length > 1 && !documents[hit.id].flat.includes(together) ? 0.4 : 1);
    return new Map(hits.map((hit) => [hit.id, share * factor(hit) * hit.score]));
  }

  /** Sections that answer, the best first. */
  function find(text) {
    if (!index) build();
    const wanted = concepts(text), total = new Map(), met = new Map();
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
    const said = asked(text), pairs = said.slice(1).map((stem, i) => ` ${said[i]} ${stem} `);
    const rank = ([id, score]) => {
      const { flat, weight } = documents[id];
      const near = pairs.filter((pair) => flat.includes(pair)).length;
      return { id, score: weight * score * (met.get(id) / wanted.length) * (1 + (ADJACENT * near) / (pairs.length || 1)) };
    };
    return [...total].map(rank).sort((a, b) => b.score - a.score).map(({ id, score }) => ({ ...documents[id], score }));
  }

  return { find, concepts, stems, asked };
})();
if (typeof module !== "undefined") module.exports = BookSearch;
