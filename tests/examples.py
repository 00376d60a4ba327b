"""The number of hypothesis examples for a property: some in the default run, sixteen times as many with ``--deep``.

``quick`` and ``deep`` are profiles of hypothesis. The default run tries the same examples each time, so that it fails
only where a change made a difference; the deep run looks for new ones. A test that needs more or fewer examples than
others uses ``@examples(500)``, which is scaled with the profile.
"""

from hypothesis import HealthCheck, settings

QUICK = 20
DEEPER = 16


def load_profile(name: str) -> None:
    """Use a profile from now on: for tests without settings, and for ``examples`` of modules imported later."""
    # Of a few examples many may be discarded by chance, which is no defect of the code.
    ours = settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
    settings.register_profile("quick", ours, max_examples=QUICK, derandomize=True)
    settings.register_profile("deep", ours, max_examples=QUICK * DEEPER)
    settings.load_profile(name)


def examples(count: int, parent: settings | None = None) -> settings:
    """Return settings with this many examples in the default run; other settings are those of the parent."""
    return settings(parent, max_examples=count * settings.default.max_examples // QUICK)
