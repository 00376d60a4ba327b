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

The tree from Volcano's design document, in which n1 and n2 share ten CPUs and ten GPUs. n2's first child takes all
CPUs, which nobody else wants; n1 and n2's second child still get five GPUs each:

>>> from placement.allocators.fair_share.order import Task, fill, order
>>> from placement.allocators.fair_share.state import FairShares
>>> from placement.allocators.fair_share.tree import Branch, Leaf
>>> root = Branch("n", (Leaf("n1"), Branch("n2", (Leaf("n21"), Leaf("n22")))))
>>> shares = FairShares(root, {"CPU": 10, "GPU": 10})
>>> wanted = {"n/n1": {"GPU": 1}, "n/n2/n21": {"CPU": 1}, "n/n2/n22": {"GPU": 1}}
>>> result = fill(shares, {leaf: [Task(task, count=10)] for leaf, task in wanted.items()})
>>> result.granted
{'n/n1': {'CPU': 0, 'GPU': 5}, 'n/n2/n21': {'CPU': 10, 'GPU': 0}, 'n/n2/n22': {'CPU': 0, 'GPU': 5}}

One of n22's tasks ends. It is n22's turn again, even though n2 holds all CPUs:

>>> shares.use("n/n2/n22", {"GPU": 4})
>>> [turn.leaf.path for turn in order(shares, wanted)]
['n/n2/n22', 'n/n2/n21', 'n/n1']

After A. Ghodsi and others, "Dominant Resource Fairness" (NSDI 2011), and A. Bhattacharya and others, "Hierarchical
Scheduling for Diverse Datacenter Workloads" (SoCC 2013). Their proofs assume divisible tasks and a single pool. With
indivisible tasks that have to fit on providers, the guarantees are best effort.
"""
