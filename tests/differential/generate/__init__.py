"""Random rounds: a cloud, then writes and queries against it. A seed gives the same requests always."""
