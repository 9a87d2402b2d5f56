"""The thin package that the chapters import, one module at a time.

``data -> networks -> densities -> mcmc, svi -> predict -> metrics, plots``, with
``diagnostics`` beside ``predict``: a module imports only from those on its left.
``sgfs``, ``psgld`` and ``sgmcmc`` stand beside ``mcmc``.
``targets -> minibatch_targets, verify`` stand apart: they put samplers to the test.
Nothing is imported here, because importing BlackJAX starts JAX's backend and a
chapter sets the number of CPU devices before that.
"""
