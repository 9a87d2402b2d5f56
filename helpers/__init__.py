"""The thin package that the chapters import, one module at a time. Import it before BlackJAX.

``data -> networks -> densities, hierarchical -> mcmc (full_metric, hmc, chains, restarts,
warmups), sgmcmc (sgfs), svi -> predict -> metrics -> plots``: a module imports only from its left.
``checks``, ``common``, ``pages``, ``programs`` and ``progress`` serve all. ``numpyro_models`` makes
a log density of a NumPyro model. ``diagnostics`` (summaries) and ``verify`` judge samplers.
``tempering`` finds where chains of a posterior with several modes start, ``smc`` its evidence;
``training`` minimises, ``copies`` brings copies of networks together, ``monte_carlo`` has errors
without a formula.

Importing the package sets how XLA compiles for a processor, in the notebooks, in scripts and in the
tests alike, and where what ArviZ and Matplotlib keep goes if the user's folders cannot be written.
"""

import atexit
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import version

from platformdirs import user_cache_dir, user_config_dir

# benchmarks/README.md has what each is worth. A loop whose data fit the processor's cache is one
# function, not one call a step; what reads the same data is fused, which only XLA's older emitter
# survives, and that compiles faster; sums stay in the loop and are not handed to a library.
FLAGS = (
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000,"
    "xla_cpu_use_multi_output_fusion=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_experimental_ynn_fusion_type=-reduce"
)
if platform.machine().lower() in ("x86_64", "amd64"):
    # Instructions that every such processor of the last ten years has: nearly all of them then give
    # the same draws.
    FLAGS += " --xla_cpu_max_isa=AVX2"
JAXLIB = "0.10.2"  # of the lock: its XLA knows all of them


def _set_flags():
    """Put the flags into the environment, where XLA finds them when JAX's backend starts.

    Those that the environment has already come last, and win.
    """
    given = os.environ.get("XLA_FLAGS", "")
    if FLAGS.split()[0] in given.split():
        return
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        warnings.warn(
            "helpers was imported after JAX had started, so that XLA's flags come too late: "
            "everything works, at half the speed and with other draws. "
            "Import helpers before blackjax, whose import starts JAX.",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    flags = FLAGS.split()
    if (found := version("jaxlib")) != JAXLIB:
        flags = [flag for flag in flags if flag not in _unknown(flags)]
        if left := sorted({*FLAGS.split()} - {*flags}):
            warnings.warn(
                f"The XLA of jaxlib {found} does not know {' '.join(left)}, which helpers leaves "
                "out: everything works, with other draws and at another speed than with jaxlib "
                f"{JAXLIB}, for which the book is made.",
                RuntimeWarning,
                stacklevel=3,
            )
    os.environ["XLA_FLAGS"] = " ".join([*flags, given]).strip()


def _unknown(flags):
    """Return which flags the installed XLA does not know.

    It ends a process that has such a flag, so other processes try.
    """
    start = [sys.executable, "-c", "import jax; jax.devices()"]
    known = flags
    while known:
        others = {"XLA_FLAGS": " ".join(known), "JAX_PLATFORMS": "cpu"}
        tried = subprocess.run(
            start, env=os.environ | others, capture_output=True, text=True, check=False
        )
        if not tried.returncode:
            break
        refused = [flag for flag in known if flag in tried.stderr]
        # none, if it does not say which
        known = [flag for flag in known if refused and flag not in refused]
    return [flag for flag in flags if flag not in known]


def _give_folders():
    """Give ArviZ and Matplotlib a folder for what they keep, where the user's cannot be written.

    ArviZ would not be imported, and Matplotlib would warn in every chapter. The folder goes with
    the process.
    """
    kept = {
        "XDG_CACHE_HOME": user_cache_dir("arviz"),
        "MPLCONFIGDIR": user_config_dir("matplotlib"),
    }
    for variable, path in kept.items():
        if variable in os.environ:
            continue
        try:
            os.makedirs(path, exist_ok=True)
            given = os.access(path, os.W_OK)
        except OSError:
            given = False
        if not given:
            os.environ[variable] = tempfile.mkdtemp(prefix="bayesian-networks-")
            atexit.register(shutil.rmtree, os.environ[variable], ignore_errors=True)


_set_flags()
_give_folders()
