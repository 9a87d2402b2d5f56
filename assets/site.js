// The theme's buttons name what they do in the page; under the site's policy a page runs nothing of its own.
const actions = { print: () => window.print(), toggleFullScreen: () => window.toggleFullScreen() };
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-click]");
  if (button) actions[button.dataset.click]();
});

// Tables that are wider than their place say that they scroll, and which way.
function tellScrolling() {
  const places = new Set();
  for (const table of document.querySelectorAll(".bd-article table")) {
    const place = table.closest("div.output, .pst-scrollable-table-container");
    if (place) places.add(place);
  }
  const tell = (place) => {
    const left = place.scrollWidth - place.clientWidth - place.scrollLeft;
    if (place.scrollWidth <= place.clientWidth + 1) delete place.dataset.scrolls;
    else place.dataset.scrolls = left > 1 ? "on" : "back";
  };
  // A table's own width changes, too: when its typeface arrives.
  const watch = new ResizeObserver(() => places.forEach(tell));
  for (const place of places) {
    place.addEventListener("scroll", () => tell(place), { passive: true });
    for (const watched of [place, ...place.querySelectorAll("table")]) watch.observe(watched);
  }
}

// One switch unfolds all code of a page, and of the pages that are read after it.
function addSwitch() {
  const folds = document.querySelectorAll(".bd-article details.above-input");
  const header = document.querySelector(".article-header-buttons");
  if (!folds.length || !header) return;
  const button = document.createElement("button");
  const set = (shown) => {
    folds.forEach((fold) => (fold.open = shown));
    button.setAttribute("aria-pressed", shown);
    button.textContent = shown ? "Fold code" : "Show all code";
  };
  button.className = "btn btn-sm code-switch";
  button.type = "button";
  set(localStorage.getItem("book-code") === "shown");
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    localStorage.setItem("book-code", shown ? "shown" : "folded");
    set(shown);
  });
  header.prepend(button);
}

// Figures follow the theme that a reader chooses; without a choice, that of the machine. Paper is light.
function followTheme() {
  const sources = document.querySelectorAll(".bd-article picture source");
  const follow = () => {
    const media = document.documentElement.dataset.theme === "dark" ? "screen" : "not all";
    sources.forEach((source) => { if (source.media !== media) source.media = media; });
  };
  follow();
  new MutationObserver(follow).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

document.addEventListener("DOMContentLoaded", () => { tellScrolling(); addSwitch(); followTheme(); });
