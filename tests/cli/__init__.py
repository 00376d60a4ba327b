"""The command ``placement``, run as users run it: in a process of its own, with a home directory of its own."""
