"""Headroom: how many more of a request fit into a cloud, and what stands in the way of more."""
