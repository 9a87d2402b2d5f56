"""How draws and scores become files that are whole or not there, and come back as they were."""

import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def read(path: Path) -> Any:
    """Return what a file of JSON or arrays holds; None where missing, or (said) unreadable."""
    try:
        if path.suffix == ".json":
            return json.loads(path.read_text(encoding="utf-8"))
        with path.open("rb") as file, np.load(file) as arrays:
            return dict(arrays)
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever is wrong with the file, the remedy is to make it again
        print(f"{path}: unreadable, counts as missing: {type(error).__name__}: {error}", flush=True)
        return None


def save(path: Path, content: Mapping) -> None:
    """Write arrays (``.npz``) or JSON so that the file is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    if path.suffix == ".npz":
        with zipfile.ZipFile(beside, "w") as archive:  # np.savez takes no array of the name "file"
            for name, array in content.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
    else:
        beside.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(beside, path)


def as_json(part: Any, at: str) -> Any:
    """Return a part as JSON gives it back; ValueError names where it is no JSON or not finite."""
    if isinstance(part, dict) and all(isinstance(key, str) for key in part):
        return {key: as_json(value, f"{at}/{key}") for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return [as_json(value, f"{at}/{i}") for i, value in enumerate(part)]
    if (
        part is None
        or isinstance(part, (str, bool, int))
        or (isinstance(part, float) and math.isfinite(part))
    ):
        return part
    raise ValueError(f"{at}: given {part!r}, expected JSON with finite numbers")
