"""What other projects import for their functional tests, at openstack-placement's paths."""
