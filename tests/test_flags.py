"""XLA's flags reach whoever imports helpers first, XLA knows them, the caller's win, and too late
is said.
"""

import helpers

import os
import re
import subprocess
import sys

from chapters import ROOT

PRINT = "import os, jax; jax.numpy.zeros(1); print(os.environ.get('XLA_FLAGS'), jax.device_count())"


def run(script, **environment):
    """Run a script in a process of its own; return what it printed and its warnings."""
    others = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=others | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_xla_knows_the_flags():
    """An unknown one would end the process."""
    code, printed, warned = run(f"import helpers; {PRINT}")
    assert code == 0 and "small_while_loop" in printed and "RuntimeWarning" not in warned
    assert run(PRINT, XLA_FLAGS="--xla_no_such_flag=1")[0] != 0


def test_the_callers_flags_come_last():
    code, printed, _ = run(
        f"import helpers; {PRINT}", XLA_FLAGS="--xla_force_host_platform_device_count=3"
    )
    flags, devices = printed.rsplit(maxsplit=1)
    assert (
        code == 0 and devices == "3" and flags.endswith("--xla_force_host_platform_device_count=3")
    )


def test_a_process_started_by_another_does_not_set_them_twice():
    script = "import helpers, os, subprocess, sys; print(os.environ['XLA_FLAGS'], flush=True); "
    script += "inner = 'import helpers, os; print(os.environ[\"XLA_FLAGS\"])'; "
    script += "subprocess.run([sys.executable, '-c', inner])"
    first, second = run(script)[1].splitlines()
    assert first == second and first.count("small_while_loop") == 1


def test_imported_too_late_it_says_so():
    code, printed, warned = run(
        "import blackjax; import helpers; import os; print(os.environ.get('XLA_FLAGS'))"
    )
    assert code == 0 and printed.strip() == "None"
    assert "RuntimeWarning: helpers was imported after JAX had started" in warned
    assert "Import helpers before blackjax" in warned


def test_jax_alone_may_come_first():
    assert "RuntimeWarning" not in run(f"import jax, numpyro, flax; import helpers; {PRINT}")[2]


def test_a_flag_that_xla_does_not_know_is_left_out_with_a_warning(tmp_path):
    """Under another jaxlib than the lock's, whose flags are not the same: XLA would end the
    process.
    """
    source = (ROOT / "helpers/__init__.py").read_text()
    changes = {
        f'JAXLIB = "{helpers.JAXLIB}"': 'JAXLIB = "0"',
        '"--xla_cpu_use': '"--xla_gone=1 --xla_cpu_use',
    }
    for known, other in changes.items():
        assert source.count(known) == 1
        source = source.replace(known, other)
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers/__init__.py").write_text(source)
    code, printed, warned = run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import helpers; {PRINT}"
    )
    flags = printed.split()
    assert code == 0 and "--xla_gone=1" not in flags and {*helpers.FLAGS.split()} <= {*flags}
    assert (
        "RuntimeWarning" in warned
        and "does not know --xla_gone=1, which helpers leaves out" in warned
    )


def test_the_lock_has_the_jaxlib_that_knows_the_flags():
    assert re.findall(r"^jaxlib==(\S+)", (ROOT / "requirements.txt").read_text(), flags=re.M) == [
        helpers.JAXLIB
    ]
