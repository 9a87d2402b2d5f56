"""Write a stored result: what was computed, how, by which versions of what."""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("jax", "jaxlib", "blackjax", "flax", "numpyro", "tfp-nightly", "scikit-learn")


def digest(script: Path) -> str:
    """Return the hash by which a stored result names the script that made it, with the scripts that it imports."""
    code = Path(script).read_bytes()
    for other in ("fits", "informative"):
        if f"\nimport {other} ".encode() in code:
            code += Path(script).with_name(f"{other}.py").read_bytes()
    return hashlib.sha256(code).hexdigest()


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
