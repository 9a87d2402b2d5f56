"""What every test runs under: two devices, and no silent promotion of types or ranks."""

import jax

# Before anything imports BlackJAX, which initialises JAX's backend.
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
