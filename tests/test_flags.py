"""XLA's flags reach whoever imports helpers first, XLA knows them, the caller's win, and too late
is said.
"""

import helpers

import os
import platform
import re
import subprocess
import sys
import tomllib

import jax
import jax.numpy as jnp
import pytest
from chapters import ROOT
from packaging.specifiers import SpecifierSet

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


def test_xla_does_what_its_options_ask_for():
    """It takes unknown words in ``xla_backend_extra_options`` without a word, so that the program
    must show that they work.
    """

    def both(x):
        loop = jax.lax.scan(lambda c, _: (0.9 * c, None), x, length=30)[0]  # over 40 KB
        sums = (x.reshape(100, 100) ** 2).sum(axis=1)  # of more than 16 KB
        return loop, sums, jnp.sin(x) + 1, jnp.sin(x) * x

    program = jax.jit(both).lower(jnp.ones(10_000)).compile().as_text()
    assert 'xla_cpu_small_call="true"' in program  # small_while_loop_byte_threshold
    assert re.search(r"= \(f32\[.*\) fusion\(", program)  # use_multi_output_fusion
    assert "ynn_fusion" not in program  # ynn_fusion_type=-reduce


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="reads its code")
def test_a_scan_stores_a_draw_without_a_walk_through_all_of_them():
    """That of jaxlib 0.11.1 does not (jax #40101), by a loop in its machine code, up to their size
    in bytes; what XLA prints of the program (HLO) is the same with it and without.
    """
    steps = 5003
    script = "import helpers, jax\n"
    script += f"scan = lambda x: jax.lax.scan(lambda c, _: (0.9 * c, c), x, length={steps})[1]\n"
    script += "program = jax.jit(scan).lower(jax.numpy.zeros(3)).compile()\n"
    script += "print(program.runtime_executable().serialize().hex())"
    # what was kept of an earlier run has no code to read
    code, printed, warned = run(script, JAX_ENABLE_COMPILATION_CACHE="0")
    assert code == 0, warned
    program = bytes.fromhex(printed)
    assert steps.to_bytes(4, "little") in program  # how often the scan turns: code is there to read
    assert (3 * 4 * steps).to_bytes(4, "little") not in program


def test_python_3_11_alone_holds_jax_back():
    """Its last JAX is the pinned one. Whoever drops it is told here that the pin has no other
    reason: CONTRIBUTING.md has what changes with a newer one.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"jax=={helpers.JAXLIB}" in project["dependencies"]
    assert "3.11" in SpecifierSet(project["requires-python"])
