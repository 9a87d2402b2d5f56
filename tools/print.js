// Make of the website's pages, joined in one document, what paper shows. Returns what is still too wide, the
// tables and formulas that had to be made too small to be read, and the links that lead nowhere. Called by pdf.py, with the media print.
() => {
  const site = document.body.dataset.site;
  const articles = [...document.querySelectorAll("article[data-page]")];
  const named = (page, id) => `${page}--${id.replace(/[^\w.-]/g, "_")}`;
  const made = (tag, content, name = "") => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...content);
    return element;
  };

  const said = (element) => {
    const page = element.closest("article")?.dataset.page ?? "front";
    return `${page}: ${element.tagName}.${element.className} ${element.textContent.trim().slice(0, 60)}`;
  };

  // Controls, and code that the website folds: its figures and numbers are there.
  for (const element of document.querySelectorAll(
    ".headerlink, button, script, .toctree-wrapper, article details.above-input, .cell_output > style, .cell_output div > style",
  )) element.remove();
  for (const cell of document.querySelectorAll("article div.cell")) if (!cell.children.length) cell.remove();
  for (const image of document.images) image.loading = "eager";

  // A choice of a quiz is a line with a letter; what is said of it moves to the end of the page.
  const answersOf = (article) => {
    const answers = [];
    let question = "", letter = 0;
    for (const element of article.querySelectorAll("#quiz > p, #quiz > details")) {
      if (element.tagName === "P") {
        question = element.textContent.match(/^\d+/)?.[0] ?? question;
        letter = 0;
        continue;
      }
      const mark = String.fromCharCode(97 + letter++);
      const [summary, ...rest] = element.children;
      answers.push(made("p", [made("b", [`${question}${mark}. `]), ...rest.flatMap((one) => [...one.childNodes, " "])]));
      element.replaceWith(made("p", [made("b", [mark]), ...summary.childNodes], "choice"));
    }
    return answers;
  };
  for (const article of articles) {
    const answers = answersOf(article), solutions = [...article.querySelectorAll("div.solution")];
    const place = article.querySelector("section") ?? article;
    if (solutions.length) place.append(made("section", [made("h2", ["Solutions"]), ...solutions]));
    if (answers.length) place.append(made("section", [made("h2", ["Answers to the quiz"]), ...answers], "answers"));
  }

  // Parts are above pages, so headings of pages go down by one.
  for (const old of document.querySelectorAll("article :is(h1, h2, h3, h4, h5)")) {
    const heading = made(`h${+old.tagName[1] + 1}`, old.childNodes, old.className);
    if (old.id) heading.id = old.id;
    old.replaceWith(heading);
  }

  // Names are a page's own; links between pages become links within the document.
  for (const article of articles) {
    const page = article.dataset.page;
    for (const element of article.querySelectorAll("[id]")) element.id = named(page, element.id);
    for (const name of ["for", "aria-labelledby", "aria-describedby"])
      for (const element of article.querySelectorAll(`[${name}]`))
        element.setAttribute(name, element.getAttribute(name).split(" ").map((id) => named(page, id)).join(" "));
  }
  const lost = [];
  for (const article of articles) {
    for (const link of article.querySelectorAll("a[href]")) {
      const href = link.getAttribute("href");
      if (/^[a-z]+:/.test(href)) continue;
      const [, page, id] = href.match(/^(?:([\w-]+)\.html)?(?:#(.*))?$/) ?? [];
      const at = page ?? (id === undefined ? "" : article.dataset.page);
      if (document.getElementById(at)?.matches("article")) {
        const target = id ? named(at, decodeURIComponent(id)) : at;
        if (!document.getElementById(target)) lost.push(`${article.dataset.page}: ${href}`);
        link.setAttribute("href", `#${target}`);
      } else if (site) link.setAttribute("href", new URL(href, `${site}book/`).href);
      else link.removeAttribute("href"); // a file of the website, whose address is not known
    }
  }

  // What is wider than its place is made smaller.
  const small = [];
  for (const element of document.querySelectorAll("article :is(table, div.math > mjx-container, .amsmath > mjx-container)")) {
    const room = element.parentElement.clientWidth - 1;
    const width = () => Math.max(element.getBoundingClientRect().width, element.scrollWidth * (+element.style.zoom || 1));
    const shrink = () => {
      for (let turn = 0; turn < 4 && width() > room + 0.5; turn++)
        element.style.zoom = ((+element.style.zoom || 1) * room) / width();
    };
    shrink();
    if (element.style.zoom && element.style.zoom < 0.85 && element.matches("table.dataframe")) {
      element.style.zoom = ""; // rather break numbers from their errors
      element.classList.add("breaks");
      shrink();
    }
    if (+element.style.zoom && element.style.zoom < 0.6) small.push(`${said(element)}: ${element.style.zoom} times smaller`);
  }
  const edge = document.querySelector("main").getBoundingClientRect().right + 1;
  const wide = [...document.querySelectorAll("main *:not(mjx-container *)")].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width && (box.right > edge || (element.scrollWidth > element.clientWidth + 1 &&
      element.clientWidth && getComputedStyle(element).overflowX !== "visible"));
  });
  return {
    lost,
    small,
    wide: wide.map(said),
  };
}
