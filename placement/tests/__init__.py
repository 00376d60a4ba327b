"""What other projects import for their functional tests: the paths are those of openstack-placement."""
