"""What every test runs under: the book's flags of XLA, and no silent promotion of types or
ranks.
"""

import helpers  # noqa: F401, before anything imports BlackJAX, which starts JAX

import jax

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
