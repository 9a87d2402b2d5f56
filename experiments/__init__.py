"""What computes the stored results: one module per result, in a folder per chapter, and the engine
that runs them.
"""
