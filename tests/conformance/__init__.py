"""The reference's own gabbi suite, run over HTTP against a server that was started for it."""
