"""How many examples hypothesis makes of a property: some in the default run, sixteen times as many with ``--deep``.

``quick`` and ``deep`` are profiles of hypothesis. A test that needs more or fewer examples than others says so by
``@examples(500)``, which is scaled with the profile.
"""

from hypothesis import settings

QUICK = 25
DEEPER = 16


def load_profile(name: str) -> None:
    """Use a profile from now on: for tests that say nothing, and for ``examples`` of modules imported later."""
    settings.register_profile("quick", max_examples=QUICK, deadline=None)
    settings.register_profile("deep", max_examples=QUICK * DEEPER, deadline=None)
    settings.load_profile(name)


def examples(count: int, parent: settings | None = None) -> settings:
    """Return settings with so many examples in the default run; other settings are those of the parent."""
    return settings(parent, max_examples=count * settings.default.max_examples // QUICK)
