"""Stored results: what is computed, kept, resumed and checked."""

import json
import logging
import subprocess
import sys
from importlib.metadata import version

import dask
import pytest
from distributed import Client, LocalCluster

from experiments.engine import compare, units
from experiments.engine import run as engine

PACKAGES = ("shed", "toys")
CODE = {"shed/__init__.py": 'FLAGS = "--a"\n'}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with packages of its own, which the process can import and forgets afterwards."""
    for name, text in CODE.items():
        write(tmp_path / name, text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("RESULTS_STORE", str(tmp_path / "store"))
    yield engine.Project(tmp_path, PACKAGES)
    forget()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def forget():
    """As if the process were new: nothing of the toy packages is imported."""
    for name in [name for name in sys.modules if name.split(".")[0] in PACKAGES]:
        del sys.modules[name]
    units._imported.clear()
    units._found_here.cache_clear()


def edit(project, name, old, new):
    text = (project.root / name).read_text()
    assert old in text
    (project.root / name).write_text(text.replace(old, new))


EXPERIMENT = """\
import os
import signal
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[3]
SETTINGS = {"seeds": [1, 2, 3]}
SMALL = {"seed": 1}


def units():
    return {f"seed {seed}": {"seed": seed} for seed in SETTINGS["seeds"]}


def unit(seed):
    with (ROOT / "log").open("a") as file:
        file.write(f"{seed} ")
    # HERE
    return {"w": {"b": np.random.default_rng(seed).normal(size=50)}, "file": np.int32(seed)}


def score(drawn, seed):
    w = drawn["w"]["b"]
    return {
        "seed": int(drawn["file"]),
        "mean": float(w.mean()),
        "mean_error": float(w.std() / 50**0.5),
        "ends": {"low": [float(w.min())], "high": float(w.max())},
        "ends_error": {"low": [0.1], "high": 0.2},
    }
"""


@pytest.fixture(scope="module")
def client():
    """A cluster in this process."""
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def moons(project):
    """An experiment that can run: its lock is of the versions that are installed."""
    write(
        project.root / "requirements.txt",
        f"jax=={version('jax')}\nnumpy==0.1 ; a\nnumpy=={version('numpy')} ; b\n",
    )
    write(project.root / "toys/pages/moons/one.py", EXPERIMENT)
    return project


def ran(project):
    """Return the seeds of the units that ran, in order."""
    return sorted(map(int, (project.root / "log").read_text().split()))


def result(project, name="moons/one"):
    return json.loads((project.root / "book/results" / f"{name}.json").read_text())


def compute(project, client, names=("moons/one",)):
    forget()
    return engine.compute(names, project, client)


def test_a_result_is_written_once_and_nothing_is_computed_twice(moons, client, capsys):
    assert compute(moons, client) == []
    told = capsys.readouterr().out
    assert "moons/one: 3 units, 0 kept" in told and "3/3 moons/one: seed " in told
    first = result(moons)
    assert list(first) == ["settings", "versions", "fingerprint", "rows", "check"]
    assert [row["name"] for row in first["rows"]] == ["seed 1", "seed 2", "seed 3"]
    assert [row["seed"] for row in first["rows"]] == [1, 2, 3]
    assert first["settings"] == {"seeds": [1, 2, 3]} and set(first["versions"]) == {"jax", "numpy"}
    assert first["check"]["setting"] == {"seed": 1}
    assert {"name": "seed 1", **first["check"]["scored"]} == first["rows"][0]
    assert engine.status(moons) == {"moons/one": "made"}
    (moons.root / "book/results/moons/one.json").unlink()
    assert compute(moons, None) == []  # and no cluster is started
    assert result(moons) == first and ran(moons) == [1, 2, 3]
    assert "3 units, 3 kept" in capsys.readouterr().out


def test_a_new_score_needs_no_new_draws_and_a_new_unit_no_old_ones(moons, client):
    assert compute(moons, client) == []
    before = result(moons)["rows"]
    edit(moons, "toys/pages/moons/one.py", 'int(drawn["file"])', '10 * int(drawn["file"])')
    assert engine.status(moons) == {"moons/one": "old"}
    assert compute(moons, client) == []
    assert result(moons)["rows"] == [{**row, "seed": 10 * row["seed"]} for row in before]
    edit(moons, "toys/pages/moons/one.py", 'in SETTINGS["seeds"]', "in range(1, 5)")
    assert compute(moons, client) == []
    assert ran(moons) == [1, 2, 3, 4]
    (about,) = [
        path
        for path in moons.root.glob("store/moons/one/*.json")
        if '"name": "seed 4"' in path.read_text()
    ]
    about = json.loads(about.read_text())
    assert list(about) == ["name", "setting", "seconds", "fingerprint", "versions"] and about[
        "setting"
    ] == {"seed": 4}


def test_many_kept_draws_are_scored_anew(moons, client):
    edit(moons, "toys/pages/moons/one.py", "[1, 2, 3]", str(list(range(40))))
    assert compute(moons, client) == []
    edit(moons, "toys/pages/moons/one.py", "float(w.mean())", "float(w.mean()) + 1")
    assert compute(moons, client) == []
    assert ran(moons) == list(range(40)) and len(result(moons)["rows"]) == 40


def test_a_file_that_cannot_be_read_counts_as_missing_and_is_said(moons, client, capsys):
    assert compute(moons, client) == []
    before = result(moons)
    for path in moons.root.glob("store/moons/one/*"):
        path.write_bytes(path.read_bytes()[:20])
    assert compute(moons, client) == []
    assert result(moons) == before and ran(moons) == [1, 1, 2, 2, 3, 3]
    told = capsys.readouterr().out
    assert (
        told.count(".json: unreadable, counts as missing") == 3 + 3
        and told.count(".npz: unreadable") == 3
    )


def test_without_score_the_unit_returns_what_is_kept_and_rows_are_the_experiments(moons, client):
    start = EXPERIMENT[: EXPERIMENT.index("    # HERE")].replace('"seed": 1}', '"seed": 7}')
    tail = '    return {"seed": seed}\n\n\ndef rows(scored):\n    return [{"all": list(scored)}]\n'
    write(moons.root / "toys/pages/moons/one.py", start + tail)
    assert compute(moons, client) == [] and compute(moons, None) == []
    assert result(moons)["rows"] == [{"all": ["seed 1", "seed 2", "seed 3"]}]
    # one unit more
    assert result(moons)["check"] == {"setting": {"seed": 7}, "scored": {"seed": 7}}
    assert ran(moons) == [1, 2, 3, 7] and not list(moons.root.glob("store/moons/one/*.npz"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# HERE", "1 / (seed - 2)", "ZeroDivisionError: division by zero"),
        (
            "float(w.mean())",
            "float('inf') if seed == 2 else 1.0",
            "seed 2/mean: given inf, expected JSON with finite",
        ),
        (
            "float(w.min())",
            "w.min() if seed != 2 else w.astype('f4').min()",
            "seed 2/ends/low/0: given np.float32",
        ),
        (
            '"file": np.int32(seed)',
            '"a": np.array(None if seed == 2 else 1), "file": 1',
            "seed 2/a: given an array of",
        ),
    ],
)
def test_a_unit_that_fails_is_named_and_the_others_finish(moons, client, capsys, old, new, message):
    write(moons.root / "toys/pages/other/two.py", EXPERIMENT)
    edit(moons, "toys/pages/moons/one.py", old, new)
    assert compute(moons, client, ["moons/one", "other/two"]) == ["moons/one"]
    told = capsys.readouterr().out
    assert (
        "moons/one: seed 2 FAILED\nTraceback" in told
        and message in told
        and told.count("FAILED") == 1
    )
    assert engine.status(moons) == {"moons/one": "missing", "other/two": "made"}
    assert ran(moons) == [1, 1, 2, 2, 3, 3]
    forget()
    assert engine.compute(["moons/one"], moons, client) == ["moons/one"]
    assert "moons/one: 3 units, 2 kept" in capsys.readouterr().out


def test_units_that_run_for_long_are_named(moons, client, capsys, monkeypatch):
    """A unit that hangs is seen, and which one it is."""
    monkeypatch.setattr(units, "TELL", 0.3)
    edit(moons, "toys/pages/moons/one.py", "# HERE", "time.sleep(1.5 * (seed == 2))")
    assert compute(moons, client) == []
    said = capsys.readouterr().out
    assert "no unit has ended for 0 minutes; running: moons/one: seed 2\n" in said


def test_rows_that_fail_are_named(moons, client, capsys):
    with (moons.root / "toys/pages/moons/one.py").open("a") as file:
        file.write("\n\ndef rows(scored):\n    return [{'a': float('nan')}]\n")
    assert compute(moons, client) == ["moons/one"]
    assert (
        "moons/one: rows/0/a: given nan, expected JSON with finite numbers"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SMALL =", "LITTLE =", "moons/one: given no SMALL, expected"),
        ('{"seed": seed} for', '{"seed": (seed,)} for', "expected JSON, lists for tuples"),
        ('SETTINGS["seeds"]', "[]", "expected JSON, lists for tuples, and units"),
        (
            '{"seed": seed} for',
            '{"seed": seed / 0.1**400} for',
            "float division by zero|ZeroDivision",
        ),
    ],
)
def test_what_is_no_experiment_is_refused_before_any_work(moons, old, new, message):
    edit(moons, "toys/pages/moons/one.py", old, new)
    with pytest.raises((ValueError, ZeroDivisionError), match=message):
        engine.compute(["moons/one"], moons)


def test_a_worker_of_another_checkout_or_other_versions_refuses(moons, client, capsys):
    assert compute(moons, client) == []
    edit(moons, "toys/pages/moons/one.py", "# HERE", "seed += 1")
    # the process has the old code still
    assert engine.compute(["moons/one"], moons, client) == ["moons/one"]
    assert "toys.pages.moons.one: this worker is given other code" in capsys.readouterr().out
    edit(moons, "requirements.txt", f"jax=={version('jax')}", "jax==0.0.1")
    assert compute(moons, client) == ["moons/one"]
    assert (
        f"expected as in the lock) {{'jax': ('{version('jax')}', ['0.0.1'])}}"
        in capsys.readouterr().out
    )
    assert ran(moons) == [1, 2, 3]


def test_a_check_recomputes_and_is_on_record(moons, client, capsys):
    assert compute(moons, client) == []
    forget()
    assert engine.check(["moons/one"], moons, client) == []
    assert ran(moons) == [1, 1, 2, 3]
    assert "moons/one: 7 numbers compared, largest difference 0 errors" in capsys.readouterr().out
    checked = result(moons, "checked")
    assert checked == {
        "moons/one": {"fingerprint": result(moons)["fingerprint"], "compared": 7, "largest": 0.0}
    }

    edit(moons, "toys/pages/moons/one.py", "# HERE", "time.sleep(0)")  # other code, same numbers
    assert engine.status(moons) == {"moons/one": "old"}
    forget()
    assert engine.check(["moons/one"], moons, client) == []
    assert engine.status(moons) == {"moons/one": "checked"}
    assert result(moons, "checked")["moons/one"]["fingerprint"] != result(moons)["fingerprint"]

    edit(moons, "toys/pages/moons/one.py", "time.sleep(0)", "seed += 1")
    assert compute(moons, client) == []
    assert result(moons, "checked") == {}  # that was of another result


def test_a_check_may_be_of_several_settings(moons, client, capsys):
    edit(
        moons,
        "toys/pages/moons/one.py",
        'SMALL = {"seed": 1}',
        'SMALL = [{"seed": 3}, {"seed": 7}]',
    )
    assert compute(moons, client) == [] and ran(moons) == [1, 2, 3, 7]
    stored = result(moons)
    assert [one["seed"] for one in stored["check"]["scored"]] == [3, 7]
    assert [row["seed"] for row in stored["rows"]] == [1, 2, 3]
    forget()
    assert engine.check(["moons/one"], moons, client) == []
    assert "moons/one: 14 numbers compared, largest difference 0 errors" in capsys.readouterr().out
    edit(moons, "toys/pages/moons/one.py", "# HERE", "1 / (seed - 7)")
    forget()
    assert engine.check(["moons/one"], moons, client) == ["moons/one"]


@pytest.mark.parametrize(("errors", "passes"), [(5.9, True), (6.1, False)])
def test_a_check_finds_a_stored_number_that_is_off(moons, client, capsys, errors, passes):
    assert compute(moons, client) == []
    stored = result(moons)
    stored["check"]["scored"]["ends"]["low"][0] += errors * 0.1 * 2**0.5
    (moons.root / "book/results/moons/one.json").write_text(json.dumps(stored))
    (moons.root / "book/results/checked.json").write_text('{"moons/one": {}, "z": {}}')
    assert engine.check(["moons/one"], moons, client) == ([] if passes else ["moons/one"])
    assert list(result(moons, "checked")) == (["moons/one", "z"] if passes else ["z"])
    told = capsys.readouterr().out
    assert f"largest difference {errors:.2g} errors" in told
    assert passes or "moons/one: FAILED\n  ends/low/0: given" in told


@pytest.mark.parametrize(
    ("stored", "found", "problem"),
    [
        ({"a": 1.0}, {"a": 2.0}, "given none, so that it compares nothing"),
        ({"a": 1.0, "a_error": 0.1}, {"b": 1.0, "b_error": 0.1}, "given others: ['0/a', '0/b']"),
        (
            {"a": [1.0, 2.0], "a_error": [0.1]},
            {"a": 1.0, "a_error": 0.1},
            "0/a/1: given (2.0, None)",
        ),
        (
            {"a": "x", "a_error": "y"},
            {"a": 1.0, "a_error": 0.1},
            "0/a: given ('x', 'y'), expected a number",
        ),
        ({"a": 1.0, "a_error": 0.0}, {"a": 1.0000001, "a_error": 0.0}, "inf errors"),
    ],
)
def test_a_comparison_of_what_does_not_pair_fails(stored, found, problem):
    (told,) = compare.compare([stored], [found])[2]
    assert problem in told


def test_what_is_found_again_to_rounding_needs_no_errors():
    stored = {"p": [0.1, 0.2], "name": "a", "seconds": 3.0}
    assert compare.compare(stored, stored | {"p": [0.1 + 1e-16, 0.2], "seconds": 9.0}) == (
        3,
        0.0,
        [],
    )
    for other in ({"p": [0.1 + 1e-8, 0.2]}, {"name": "b"}, {"p": [0.1]}):
        assert compare.compare(stored, stored | other)[2]
    assert compare.compare({"seconds": 3.0}, {"seconds": 3.0})[2]


def test_settings_are_alike_where_the_last_digit_of_a_power_differs():
    stored = {"grid": [316.2277660168379, 1.0], "name": "a", "on": True, "folds": 5}
    assert compare.alike([stored, None], [stored | {"grid": [316.22776601683796, 1.0]}, None])
    for other in ({"grid": [316.2278, 1.0]}, {"grid": [316.2277660168379]}, {"name": "b"}):
        assert not compare.alike(stored, stored | other)
    for other in ({"on": 1.5}, {"folds": None}, {"more": 1}):
        assert not compare.alike(stored, stored | other)


def test_a_check_of_no_result_or_of_other_settings_fails(moons, client, capsys):
    assert engine.check(["moons/one"], moons) == ["moons/one"]
    assert compute(moons, client) == []
    edit(moons, "toys/pages/moons/one.py", "[1, 2, 3]", "[1, 2]")
    forget()
    assert engine.check(["moons/one"], moons) == ["moons/one"]
    assert capsys.readouterr().out.count("compute it") == 2 and result(moons, "checked") == {}


def test_states_of_results(moons, client, capsys):
    for name in ("old", "gone"):
        write(moons.root / f"toys/pages/moons/{name}.py", EXPERIMENT)
    write(moons.root / "toys/pages/moons/shared.py", "SETTINGS = {}\n")
    assert compute(moons, client, ["moons/one", "moons/old"]) == []
    write(moons.root / "book/results/moons/left.json", "{}")
    edit(moons, "toys/pages/moons/old.py", "size=50", "size=60")
    states = {
        "moons/gone": "missing",
        "moons/left": "no script",
        "moons/old": "old",
        "moons/one": "made",
    }
    assert engine.status(moons) == states
    assert engine.main(["--status"], moons) == 0
    assert "old       moons/old\nmade      moons/one\n" in capsys.readouterr().out


def test_an_unknown_name_is_an_error(moons, capsys):
    with pytest.raises(SystemExit) as stopped:
        engine.main(["moons/on"], moons)
    assert stopped.value.code == 2
    assert "given moons/on, expected some of moons/one" in capsys.readouterr().err


STARTED = """\
import sys
from pathlib import Path
from experiments.engine import run as engine
if __name__ == "__main__":
    sys.exit(engine.main(sys.argv[1:], engine.Project(Path(__file__).parent, ("shed", "toys"))))
"""
DEATHS = """
    if seed == 2 and not (ROOT / "lost").exists():
        (ROOT / "lost").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 5 and not (ROOT / "killed").exists():
        for _ in range(600):
            if len(list(ROOT.glob("store/moons/one/*.json"))) == 8:
                (ROOT / "killed").touch()
                os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(0.05)
"""


def test_a_worker_that_is_lost_is_replaced_and_a_run_that_is_killed_is_resumed(
    moons, client, capsys, monkeypatch
):
    """The second unit kills its worker, the last one, when all others are kept, the whole run."""
    edit(moons, "toys/pages/moons/one.py", "\n    # HERE\n", DEATHS)
    edit(moons, "toys/pages/moons/one.py", "[1, 2, 3]", "[1, 2, 3, 4, 5]")
    write(moons.root / "start.py", STARTED)
    monkeypatch.setenv("PYTHONPATH", str(moons.root))
    start = [sys.executable, "start.py", "moons"]
    killed = subprocess.run(start, cwd=moons.root, capture_output=True, text=True, timeout=60)
    assert killed.returncode == -9 and "4/5 moons/one: seed" in killed.stdout, (
        killed.stdout + killed.stderr
    )
    runs = ran(moons)
    assert (
        set(runs) == {1, 2, 3, 4, 5}
        and runs.count(2) >= 2
        and engine.status(moons) == {"moons/one": "missing"}
    )
    left = {path.name for path in moons.root.iterdir()} - {*PACKAGES, "requirements.txt"}
    assert left == {"start.py", "log", "lost", "killed", "store"}  # nothing of Dask's

    assert compute(moons, client) == []
    assert "moons/one: 5 units, 4 kept" in capsys.readouterr().out
    assert ran(moons) == [*runs, 5] and [row["seed"] for row in result(moons)["rows"]] == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_the_cluster_that_dask_is_told_of_is_used(moons, client, capsys):
    with dask.config.set({"scheduler-address": client.scheduler.address}):
        assert compute(moons, None) == []
    assert f"1 workers at {client.scheduler.address}" in capsys.readouterr().out
