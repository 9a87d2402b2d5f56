"""What a chapter asserts is written down with both sides, and decided as it would be without."""

import ast
import json

import claims
import pytest


def run(source, path, seed=0, stop=True):
    """Run a cell as the kernel would; return what it wrote, and whether it stopped."""
    rewrite, recorder = claims.Rewrite(seed, stop), claims.Recorder(path, stop)
    rewrite.begin(source)
    names = {"book_compare": recorder.compare, "book_agree": recorder.agree}
    exec("import numpy as np", names)
    try:
        exec(
            compile(ast.fix_missing_locations(rewrite.visit(ast.parse(source))), "cell", "exec"),
            names,
        )
        stopped = False
    except AssertionError:
        stopped = True
    return (
        [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else [],
        stopped,
        names,
    )


@pytest.mark.parametrize(
    "source, sides, holds",
    [
        ("assert 1 < 2", [["<", 1, 2]], True),
        ("assert 2.5 >= 3", [[">=", 2.5, 3]], False),
        ("assert (np.arange(5) <= np.array([9, 8, 2.5, 8, 9])).all()", [["<=", 2, 2.5]], True),
        ("assert (np.array([[1, np.nan]]) < 3).all()", [["<", float("nan"), 3]], False),
        ("assert 0 < 2 < 1", [["<", 0, 2], ["<", 2, 1]], False),
        ("assert [1, 2] == [1, 2]", [["==", "[1, 2]", "[1, 2]"]], True),
        ("assert 'a' not in {'a': 1}", [["not in", "'a'", "{'a': 1}"]], False),
        ("assert np.float32(1) is not None", [["is not", "np.float32(1.0)", "None"]], True),
    ],
)
def test_both_sides_are_written(source, sides, holds, tmp_path):
    (record,), stopped, _ = run(source, tmp_path / "claims")
    assert repr(record["sides"]) == repr(
        [
            [sign, *map(float, two)] if isinstance(two[0], (int, float)) else [sign, *two]
            for sign, *two in sides
        ]
    )
    assert record["holds"] is holds and stopped is not holds
    assert (record["cell"], record["line"]) == (1, 1) and record["text"] in source


def test_every_comparison_of_an_assertion_is_one_claim(tmp_path):
    source = (
        "x = 1 if 2 < 3 else 0\n"
        "def f(a):\n    assert a < 5 and all(b > 0 for b in (1, a))\nf(2)\nf(-1)"
    )
    found, stopped, _ = run(source, tmp_path / "claims")
    texts = [record["text"] for record in found]
    assert texts == ["a < 5", "b > 0", "b > 0", "a < 5", "b > 0", "b > 0"] and stopped
    assert [record["holds"] for record in found] == [True] * 5 + [False]


def test_text_over_lines_is_joined(tmp_path):
    (record,), *_ = run("assert (\n    1\n    < 2\n)", tmp_path / "claims")
    assert record["text"] == "1 < 2" and record["line"] == 2


def test_agreement_is_written_in_units_of_what_is_allowed(tmp_path):
    source = (
        "np.testing.assert_allclose([1.0, 2.0], [1.0, 2.1], atol=0.2)\n"
        "np.testing.assert_array_equal([1], [1])"
    )
    found, stopped, _ = run(source, tmp_path / "claims")
    assert [record["sides"][0][0] for record in found] == ["agrees"] * 2 and not stopped
    assert found[0]["sides"][0][1] == pytest.approx(0.5, rel=1e-5) and found[1]["sides"][0][1] == 0
    (record,), stopped, _ = run("np.testing.assert_allclose(1.0, 2.0)", tmp_path / "others")
    assert stopped and not record["holds"]


def test_literal_seeds_move_and_others_do_not(tmp_path):
    source = (
        "class jax:\n    key = staticmethod(lambda s: s)\n"
        "a = jax.key(7)\nb = jax.key(3 + 4)\nc = jax.key(a)"
    )
    for seed in (0, 1000):
        *_, names = run(source, tmp_path / "claims", seed)
        assert (names["a"], names["b"], names["c"]) == (7 + seed, 7, 7 + seed)


def test_a_shaken_chapter_goes_on(tmp_path):
    source = "assert 1 > 2\nnp.testing.assert_allclose(1.0, 2.0)\ndone = True"
    found, stopped, names = run(source, tmp_path / "claims", stop=False)
    assert [record["holds"] for record in found] == [False, False] and not stopped and names["done"]
