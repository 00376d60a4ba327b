"""Real client libraries, as their users run them, against a running server."""
