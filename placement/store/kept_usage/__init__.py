"""Each provider's usage and capacity by class, kept by triggers, no matter who writes."""
