"""Debian's Chromium without its windows, in which pages load in half the time of the whole one."""

from pathlib import Path

from playwright.sync_api import Browser, Playwright

PATH = Path("/usr/bin/chromium-headless-shell")
MISSING = f"{PATH} is missing: `apt-get install {PATH.name} fonts-liberation fonts-noto-core`"


def start(playwright: Playwright, *options: str) -> Browser:
    """Start it; a container's root needs it without a sandbox."""
    return playwright.chromium.launch(executable_path=PATH, args=["--no-sandbox", *options])
