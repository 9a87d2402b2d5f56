// The theme's buttons name what they do in the page; under the site's policy a page runs nothing of its own.
const actions = { print: () => window.print(), toggleFullScreen: () => window.toggleFullScreen() };
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-click]");
  if (button) actions[button.dataset.click]();
});
