"""Profiles of the property tests: quick by default, long for `make faults`."""

from hypothesis import settings

settings.register_profile("quick", deadline=None)  # the machine may be busy: no test is timed
settings.register_profile("long", deadline=None, max_examples=2500)
settings.load_profile("quick")
