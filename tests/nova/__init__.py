"""Nova's own functional fixtures on a placement server. Nova patches Python's modules, so it is imported first."""

import nova.tests.functional  # noqa: F401
