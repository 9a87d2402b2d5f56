"""What the pages say of stored results: a file a page, and in it a test for a sentence or a few.

Every test names, by ``said.says``, the sentences that it holds; it fails if its page no longer has
them. A test takes no arguments, so that ``test_moved`` can run it again on numbers that are moved
by their errors.
"""
