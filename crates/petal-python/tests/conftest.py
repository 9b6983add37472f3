"""Settings that all tests share."""

from hypothesis import settings

# The same examples in every run, and no deadline, since machines are slow at times.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None, max_examples=60)
settings.load_profile("fixed")
