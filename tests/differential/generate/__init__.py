"""Random rounds: a cloud, then writes and queries against it. A seed always gives the same requests."""
