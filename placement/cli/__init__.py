"""The commands: placement, placement-manage, placement-status."""
