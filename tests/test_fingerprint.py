"""Prints of code: fifty edits, of which half change nothing that is computed, seen by five results.

The five use the same code in different ways, so that an edit of it concerns all of them.
"""

import ast
import re

import pytest
from chapters import ROOT

from experiments.engine import fingerprint

LOCK = """\
jax==0.0.1 \\
    --hash=sha256:12
numpy==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:12
numpy==2.0 ; python_full_version >= '3.12' \\
    --hash=sha256:12
jaxtyping==0.3
"""
FAR = '''\
"""Far away."""
import warnings
from functools import partial
from math import sin
from typing import NamedTuple

import numpy as np
from flax import linen as nn

DEPTH = 3
LOW, HIGH = 1, 2
RATES = {"slow": 1.0, "fast": 2.0, "other": 5.0}


class Found(NamedTuple):
    """What is found."""

    at: float
    text: str = ""


class Net(nn.Module):
    """A network."""

    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


@partial(np.vectorize, excluded={1})
def deep(x, scale=2.0):
    """Found two calls away."""
    text = f"{x:.2f} {scale!r:>{DEPTH}} {x:}" "more"
    total = sum(part + HIGH for part in range(DEPTH) if part > LOW)
    match x:
        case 1 | 2:
            return Found(x, text)
    if x < 0:
        raise ValueError(f"x: given {x}, expected none below 0")
    if x > 9:
        warnings.warn("large", stacklevel=2)
    try:
        total = np.log(total)
    except FloatingPointError as error:
        total = error.args
    width = Net().width
    return Found(x * scale + sin(total), text[:width])


def again(x):
    return x if x < 1 else again(x - 1)


def others(x):
    return x + 1


def unused(x):
    return x + 1
'''
NEAR = """\
from shed import far as distant
import shed.far

distant.DEPTH = 4
TABLE = {"a": 1}
TABLE["b"] = 2


def call(far: int, *, power=1) -> float:  # the parameter is not the module
    def inner(x):
        from shed.far import deep
        return deep(x)
    keep = lambda x: x + 1
    here = inner(far) if far else shed.far.deep(keep(power)).at
    here += distant.RATES["slow"]
    return distant.again(here, TABLE)


def aside():
    return distant.others(1)
"""
FIVE = {
    "one": "from shed import near\n\n\ndef unit(seed=0):\n    return near.call(seed)\n",
    "two": "import shed.near\n\ndef unit():\n    return [shed.near.call(i) for i in range(3)]\n",
    "three": """\
from functools import partial
from shed.near import call as asked
run = partial(asked, power=2)


class Runner:
    def go(self):
        return run(1)


def unit():
    return Runner().go()
""",
    "four": """\
from toys.one import unit as other
SETTINGS = {"seed": 1, "count": 3}


def unit():
    from toys import two
    return other(SETTINGS["seed"]), two.unit()
""",
    "five": "from shed import near\n\n\ndef unit():\n    return vars(near)['call'](1)\n",
}
START = (
    'import platform\n\nFLAGS = "--a"\nif platform.machine() == "x86_64":\n    FLAGS += " --b"\n'
    "\n\ndef begin():\n    return FLAGS\n\n\nbegin()\n"
)
CODE = {"requirements.txt": LOCK, "shed/__init__.py": START}
CODE |= {"shed/far.py": FAR, "shed/near.py": NEAR}
CODE |= {f"toys/{name}.py": text for name, text in FIVE.items()}
GOLDEN = "6d03dda21b8a058dee527304228fa1a9231544946c24d236727dc5606ea4b605"


def project(folder, files):
    """Write files and return the project that they are."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return fingerprint.Project(
        folder, tuple(dict.fromkeys(n.split("/")[0] for n in files if "/" in n))
    )


def prints(folder, files, package="toys"):
    """Return the prints of the five results."""
    code = fingerprint.read(project(folder, files))
    return [fingerprint.fingerprint(f"{package}.{name}", ["unit"], code) for name in FIVE]


def edited(*changes):
    """Return the files after changes (file, old, new); without a file, all of them."""
    files = dict(CODE)
    for name, old, new in changes:
        for one in [name] if name else [one for one in files if one.endswith(".py")]:
            assert not name or old in files[one], (one, old)
            files[one] = files[one].replace(old, new)
    return files


def moved(files, old, new):
    """Return the files with one of them elsewhere."""
    return {new if name == old else name: text for name, text in files.items()}


def everywhere(pattern, new):
    """Return the files in which a pattern is replaced, in their names, too."""
    return {re.sub(pattern, new, name): re.sub(pattern, new, text) for name, text in CODE.items()}


def split():
    """Return the files, half of far.py in a module of its own, which near.py imports from both."""
    at = FAR.index("def again")
    files = edited(("shed/near.py", "import shed.far\n", "import shed.far\nfrom shed import end\n"))
    for name in ("again", "others"):
        files["shed/near.py"] = files["shed/near.py"].replace(f"distant.{name}", f"end.{name}")
    return files | {"shed/far.py": FAR[:at], "shed/end.py": FAR[at:]}


def reordered():
    """Return the files with the definitions of far.py in another order."""
    at = FAR.index("@partial")
    nets, deeps = FAR.index("class Found"), FAR.index("def again")
    return CODE | {"shed/far.py": FAR[:nets] + FAR[deeps:] + "\n\n" + FAR[at:deeps] + FAR[nets:at]}


def unparsed():
    """Return the files without comments, in the layout of `ast.unparse`."""
    return {
        name: ast.unparse(ast.parse(text)) if name.endswith(".py") else text
        for name, text in CODE.items()
    }


SAME = {
    "a docstring is a comment": edited(("shed/far.py", '"""Found two calls away."""', "# Found.")),
    "layout": edited(("shed/far.py", "x * scale + ", "x*scale +\\\n        ")),
    "the annotation of a field": edited(("shed/far.py", "at: float", "at: int")),
    "what is not used": edited(
        ("shed/far.py", "unused(x):\n    return x + 1", "unused(x):\n    return x + 2")
    ),
    "an annotated local": edited(("shed/far.py", "    text = ", "    text: str = ")),
    "annotations": edited(
        ("shed/near.py", "far: int, *, power=1) -> float", "far, *, power: int=1)")
    ),
    "a local by another name": edited(("shed/far.py", "total", "the_sum")),
    "a definition by another name": everywhere("deep", "profound"),
    "a constant by another name": everywhere("DEPTH", "HOW_DEEP"),
    "a named tuple by another name": everywhere("Found", "Seen"),
    "a module by another name": everywhere(r"(?<=shed[./])far\b|(?<=import )far\b", "remote"),
    "a package by another name": everywhere(r"\bshed\b", "cellar"),
    "every package by another name": {
        name.replace("toys", "games"): text.replace("toys", "games")
        for name, text in everywhere(r"\bshed\b", "cellar").items()
    },
    "a module in a folder of its own": moved(
        everywhere(r"shed\.far", "shed.deeper.far")
        | edited(("shed/near.py", "from shed import far", "from shed.deeper import far"))
        | {
            "shed/near.py": NEAR.replace(
                "from shed import far", "from shed.deeper import far"
            ).replace("shed.far", "shed.deeper.far")
        },
        "shed/far.py",
        "shed/deeper/far.py",
    ),
    "a module that was split": split(),
    "definitions in another order": reordered(),
    "another alias": edited(("shed/near.py", "distant", "afar")),
    "an import by its full name": edited(
        ("shed/near.py", "from shed.far import deep\n", "import shed.far as f\n"),
        ("shed/near.py", "return deep(x)", "return f.deep(x)"),
    ),
    "an alias outside": edited(
        ("shed/far.py", "import numpy as np", "import numpy"), ("shed/far.py", "np.", "numpy.")
    ),
    "the text of an error": edited(("shed/far.py", "given {x}, expected none below 0", "is {x}")),
    "the text of a warning": edited(("shed/far.py", '"large"', 'f"{x} is large"')),
    "a block that only imports": edited(
        (
            "shed/near.py",
            "import shed.far\n",
            "import warnings\nwith warnings.catch_warnings():\n"
            "    warnings.simplefilter('ignore')\n    import shed.far\n",
        )
    ),
    "an entry that is not read": edited(("shed/far.py", '"other": 5.0', '"other": 6.0')),
    "settings that are not read": edited(("toys/four.py", '"count": 3', '"count": 4')),
    "what is done by python -m": edited(
        ("toys/two.py", "def unit", "if __name__ == '__main__':\n    print(1)\n\n\ndef unit")
    ),
    "the same flags": edited(("shed/__init__.py", '"--a"', '"-" + "-a"')),
    "the parameter of a lambda": edited(("shed/near.py", "lambda x: x + 1", "lambda y: y + 1")),
    "a version that computes nothing": edited(
        ("requirements.txt", "jaxtyping==0.3", "jaxtyping==0.4")
    ),
    "hashes": edited(("requirements.txt", "sha256:12", "sha256:13")),
    "all comments and all layout": unparsed(),
}
OTHER = {
    "an operator": ("shed/far.py", "x * scale", "x / scale"),
    "a default": ("shed/far.py", "scale=2.0", "scale=3.0"),
    "a default of a keyword": ("shed/near.py", "power=1", "power=2"),
    "a constant": ("shed/far.py", "DEPTH = 3", "DEPTH = 4"),
    "a constant's type": ("shed/far.py", "DEPTH = 3", "DEPTH = 3.0"),
    "one of two targets": ("shed/far.py", "LOW, HIGH =", "HIGH, LOW ="),
    "the condition of a comprehension": ("shed/far.py", "part > LOW", "part >= LOW"),
    "an entry that is read": ("shed/far.py", '"slow": 1.0', '"slow": 1.5'),
    "which entry is read": ("shed/near.py", '["slow"]', '["fast"]'),
    "a field": ("shed/far.py", "at: float", "where: float"),
    "a field's default": ("shed/far.py", 'text: str = ""', 'text: str = "x"'),
    "a class attribute": ("shed/far.py", "width: int = 4", "width: int = 5"),
    "the name of a class of flax": (None, "Net", "Mesh"),
    "a decorator": ("shed/far.py", "excluded={1}", "excluded={0}"),
    "a format": ("shed/far.py", ":.2f", ":.3f"),
    "a string": ("shed/far.py", '"more"', '"less"'),
    "a pattern": ("shed/far.py", "1 | 2", "1 | 3"),
    "when an error is raised": ("shed/far.py", "x < 0", "x < 1"),
    "which error is raised": ("shed/far.py", "raise ValueError", "raise TypeError"),
    "which error is caught": ("shed/far.py", "except FloatingPointError", "except ValueError"),
    "what is called outside": (
        "shed/far.py",
        "from math import sin",
        "from math import cos as sin",
    ),
    "a slice": ("shed/far.py", "text[:width]", "text[width:]"),
    "the name of a parameter": (None, "power", "strength"),
    "the order of arguments": ("shed/near.py", "again(here, TABLE)", "again(TABLE, here)"),
    "the step of a recursion": ("shed/far.py", "again(x - 1)", "again(x - 2)"),
    "a lambda": ("shed/near.py", "lambda x: x + 1", "lambda x: x + 2"),
    "an augmented assignment": ("shed/near.py", "here += ", "here -= "),
    "an attribute set on import": ("shed/near.py", "distant.DEPTH = 4", "distant.DEPTH = 5"),
    "an entry set on import": ("shed/near.py", 'TABLE["b"] = 2', 'TABLE["b"] = 3'),
    "another of the same shape": ("shed/near.py", "distant.again(", "distant.others("),
    "what happens on import": ("shed/__init__.py", "return FLAGS", "return None"),
    "a flag": ("shed/__init__.py", "--a", "--c"),
    "a flag of x86-64": ("shed/__init__.py", " --b", " --c"),
    "a version": ("requirements.txt", "jax==0.0.1", "jax==0.0.2"),
    "a version of some Pythons": ("requirements.txt", "numpy==2.0", "numpy==2.1"),
}


def test_prints_are_the_same_on_every_python(tmp_path):
    assert fingerprint.digest("".join(prints(tmp_path, CODE))) == GOLDEN


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """The prints of the five results before any edit."""
    return prints(tmp_path_factory.mktemp("before"), CODE)


@pytest.mark.parametrize("what", SAME)
def test_what_changes_no_number_leaves_the_prints(tmp_path, before, what):
    files = SAME[what]
    assert files != CODE
    package = "games" if "games/one.py" in files else "toys"
    assert prints(tmp_path, files, package) == before


@pytest.mark.parametrize("what", OTHER)
def test_what_may_change_a_number_changes_the_prints(tmp_path, before, what):
    found = prints(tmp_path, edited(OTHER[what]))
    assert [one for one, was in zip(found, before, strict=True) if one == was] == []


def test_five_results_of_the_book_keep_their_prints_when_all_packages_move(tmp_path):
    names = ["svi.moons", "flat_bnn.prior_scale", "svi.guides", "informative_priors.transfer"]
    names += ["what_the_gain_is_made_of.arms"]
    files = {"requirements.txt": (ROOT / "requirements.txt").read_text()}
    any_of_them = "|".join(fingerprint.PROJECT.packages)
    for package in fingerprint.PROJECT.packages:
        for path in (ROOT / package).rglob("*.py"):
            text = ast.unparse(ast.parse(path.read_text()))
            text = re.sub(rf"(?m)^( *(?:from|import) )({any_of_them})\b", r"\1my_\2", text)
            files[f"my_{path.relative_to(ROOT)}"] = text
    here, there = fingerprint.read(), fingerprint.read(project(tmp_path, files))
    for name in names:
        found = fingerprint.fingerprint(f"my_experiments.pages.{name}", ["unit"], there)
        assert found == fingerprint.fingerprint(f"experiments.pages.{name}", ["unit"], here)


def circle(of_odd, of_even="True"):
    """Return the files of a result that is two functions that use each other."""
    text = f"def even(n):\n    return odd(n - 1) if n else {of_even}\n\n\n"
    text += f"def odd(n):\n    return even(n - 1) if n else {of_odd}\n\n\n"
    return CODE | {"toys/one.py": text + "def unit():\n    return even(3)\n"}


def test_definitions_that_use_each_other_have_prints(tmp_path):
    one, again, other, swapped = (
        prints(tmp_path / str(i), files)[0]
        for i, files in enumerate(
            [circle("False"), circle("False"), circle("None"), circle("True", "False")]
        )
    )
    assert one == again and len({one, other, swapped}) == 3


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("toys/one.py", "near.call", "near.cal", "given shed.near.cal, expected a definition"),
        ("toys/one.py", "import near", "import nearby as near", "given shed.nearby.call, expected"),
        ("toys/one.py", "from shed import near", "from shed.near import *", "import \\*, expected"),
        ("toys/one.py", "def unit", "def other", "given toys.one.unit, expected a definition"),
        ("shed/__init__.py", "FLAGS", "SIGNS", "given no FLAGS, expected those of XLA"),
    ],
)
def test_a_path_to_nothing_is_named(tmp_path, name, old, new, message):
    with pytest.raises(ValueError, match=message):
        prints(tmp_path, edited((name, old, new)))


def test_surroundings_are_the_lock_and_the_flags_of_x86_64(tmp_path):
    found = fingerprint.surroundings(project(tmp_path, CODE))
    numpy = ["1.0 ; python_full_version < '3.12'", "2.0 ; python_full_version >= '3.12'"]
    assert found == {"versions": {"jax": ["0.0.1"], "numpy": numpy}, "flags": "--a --b"}
    assert set(fingerprint.surroundings()["versions"]) == set(fingerprint.COMPUTING)


def test_what_pages_may_show_counts_where_words_do(tmp_path):
    files = [CODE, *(SAME[f"the text of {what}"] for what in ("an error", "a warning"))]
    found = set()
    for i, one in enumerate(files):
        code = fingerprint.read(project(tmp_path / str(i), one), words=True)
        found.add(fingerprint.fingerprint("toys.one", ["unit"], code))
    assert len(found) == 3
