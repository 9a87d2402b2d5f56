"""The thin package that the chapters import, one module at a time.

``data -> networks -> densities -> mcmc, svi -> predict -> metrics, plots``, with
``diagnostics`` beside ``predict``: a module imports only from those on its left.
``sgfs``, ``psgld`` and ``sgmcmc`` stand beside ``mcmc``.
``targets -> minibatch_targets, verify`` stand apart: they put samplers to the test.
Nothing is imported here, because importing BlackJAX starts JAX's backend and a
chapter sets the number of CPU devices before that.
XLA reads its flags when the backend starts. With these it compiles a loop whose data fit the processor's
cache into one function, not one call a step, and uses the widest vectors: a gradient of the hierarchical
network takes less than half the time (``benchmarks/README.md``). A program that imports BlackJAX before
this package has started the backend already, and runs without them.
"""

import os

_FLAGS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=300000 --xla_cpu_prefer_vector_width=512"
os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('XLA_FLAGS', '')}".strip()
