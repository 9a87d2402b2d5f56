"""The thin package that the chapters import, one module at a time. Import it before BlackJAX.

``data -> networks -> densities, hierarchical -> mcmc (hmc), sgmcmc (sgfs), svi -> predict -> metrics -> plots``: a
module imports only from those on its left. ``checks`` and ``common`` serve all, ``diagnostics`` and ``verify`` judge
samplers, ``priors`` brings copies of networks together.

Importing the package sets how XLA compiles for a processor, in the notebooks, in scripts and in the tests alike.
"""

import os
import platform
import sys
import warnings

# benchmarks/README.md has what each is worth. A loop whose data fit the processor's cache is one function, not one
# call a step; what reads the same data is fused, which only XLA's older emitter survives, and that compiles faster;
# sums stay in the loop and are not handed to a library.
FLAGS = (
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000,xla_cpu_use_multi_output_fusion=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_experimental_ynn_fusion_type=-reduce"
)
if platform.machine().lower() in ("x86_64", "amd64"):
    # Instructions that every such processor of the last ten years has: nearly all of them then give the same draws.
    FLAGS += " --xla_cpu_max_isa=AVX2"


def _set_flags():
    """Put the flags into the environment, where XLA finds them when JAX's backend starts; the caller's win."""
    given = os.environ.get("XLA_FLAGS", "")
    if FLAGS in given:
        return
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        warnings.warn(
            "helpers was imported after JAX had started, so that XLA's flags come too late: everything works, at half "
            "the speed and with other draws. Import helpers before blackjax, whose import starts JAX.",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    os.environ["XLA_FLAGS"] = f"{FLAGS} {given}".strip()


_set_flags()
