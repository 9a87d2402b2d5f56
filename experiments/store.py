"""Write a stored result: what was computed, how, by which versions of what."""

import hashlib
import json
import re
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("jax", "jaxlib", "blackjax", "flax", "numpyro", "tfp-nightly", "scikit-learn")


def digest(script: Path) -> str:
    """Return the hash by which a stored result names the script that made it, with the scripts that it imports.

    This module is not one of them: it computes nothing that is stored.
    """
    code = Path(script).read_bytes()
    others = {Path(script).with_name(f"{name.decode()}.py") for name in re.findall(rb"^import (\w+)", code, re.M)}
    parts = [other.read_bytes() for other in sorted(others) if other.exists() and other.stem != "store"]
    return hashlib.sha256(b"".join([code, *parts])).hexdigest()


def diagnosed(check) -> dict:
    """Return a check of ``helpers.diagnostics`` as a row keeps it: by kind of quantity, then of the run."""
    by_kind = {
        name: dict(zip(check.kinds, getattr(check, name).tolist(), strict=True))
        for name in ("rhat", "rhat_bound", "ess")
    }
    return by_kind | {name: getattr(check, name) for name in ("divergences", "bfmi", "integration_steps")}


def write(script: str, settings: dict, rows: list[dict]) -> None:
    """Store the rows of ``experiments/NAME.py`` as ``book/results/NAME.json``."""
    script = Path(script).resolve()
    result = {
        "script": digest(script),
        "versions": {name: version(name) for name in PACKAGES},
        "settings": settings,
        "rows": rows,
    }
    target = script.parent.parent / "book" / "results" / f"{script.stem}.json"
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {target.name}: {len(rows)} rows")
