"""Fair shares: hierarchical dominant resource fairness (H-DRF) over a tree of queues and the projects in them.

The leaf with the smallest *dominant share* is served next: its largest fraction of any one resource, divided by its
weight. In a tree, every level makes that decision anew. A branch scales its children down to the smallest of them
before adding them up, so that a child with a different dominant resource does not use up its siblings' turns; blocked
children count unscaled; and exhausted resources are left out of a branch's share. Without these rules, parts of a tree
starve.

``state.FairShares`` maintains all shares as usage and demand change. The rest builds on it: ``order`` (who is next, and
why, and what everybody would get), ``reclaim`` (what other queues should give back), and ``gate`` (is a claim fair
while others wait, or when nobody says who is waiting). ``queues.tree_of`` builds a tree from queue paths as operators
write them.

After A. Ghodsi and others, "Dominant Resource Fairness" (NSDI 2011), and A. Bhattacharya and others, "Hierarchical
Scheduling for Diverse Datacenter Workloads" (SoCC 2013). Their proofs assume divisible tasks and a single pool. With
indivisible tasks that have to fit on providers, the guarantees are best effort.
"""
