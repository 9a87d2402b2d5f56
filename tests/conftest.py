"""What every test runs under: the book's flags of XLA, no silent promotion of types or ranks, and
the programs of one module released before the next begins.
"""

import helpers  # noqa: F401, before anything imports BlackJAX, which starts JAX

import ctypes
import gc
import platform
import sys

import jax
import kernels
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Return how many files of tests run side by side: as many as chapters do."""
    return kernels.workers()


@pytest.fixture(autouse=True, scope="module")
def released():
    """Release what a module's tests have compiled: all of them together take 7 GB."""
    yield
    jax.clear_caches()
    gc.collect()
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)  # glibc keeps what is freed, in pieces


@pytest.fixture(scope="module")
def as_readers_run():
    """Give a module JAX's own promotion of types and ranks, on which NumPyro counts."""
    jax.config.update("jax_numpy_dtype_promotion", "standard")
    jax.config.update("jax_numpy_rank_promotion", "allow")
    yield
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
