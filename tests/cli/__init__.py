"""The command ``placement``, run as users run it: in a separate process, with a separate home directory."""
