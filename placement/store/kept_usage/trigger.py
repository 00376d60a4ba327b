"""The names of the triggers that keep ``provider_usages`` exact, the same for every kind of database.

A row of ``provider_usages`` holds a provider's usage of a class, no matter who writes: this server, the
reference, or an operator with a SQL shell. It also holds the provider's ``capacity`` of the class (null without an
inventory) and the root of its tree, so that whole trees are summed without a join. A row whose usage falls to 0 stays:
deleting and recreating it under load would only breed deadlocks.
"""

INSERTED = "provider_usages_inserted"
UPDATED = "provider_usages_updated"
DELETED = "provider_usages_deleted"
TRUNCATED = "provider_usages_truncated"
GATE = "provider_usages_gate"
STOCKED = "provider_usages_stocked"
RESTOCKED = "provider_usages_restocked"
UNSTOCKED = "provider_usages_unstocked"
EMPTIED = "provider_usages_emptied"
PROVIDER_MOVED = "provider_usages_provider_moved"
PROVIDER_DELETED = "provider_usages_provider_deleted"
