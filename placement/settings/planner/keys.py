"""The keys of the planner file, for its reference page: what each means, its type, and its default.

``*`` stands for a name of the operator's. The readers of the sections define what is accepted; a test compares.
"""

from typing import NamedTuple

from placement.allocators.fragmentation.hosts import FragmentationSettings
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Proportional, Sra
from placement.domain.device_types import DeviceSettings, DeviceType
from placement.settings.planner.values import DEFAULT_LEVELS, DEFAULT_LOCKS, FairShareSettings, PlannerSettings

_SRA, _PROPORTIONAL = Sra({"PGPU": 1}), Proportional({"PGPU": {"VCPU": 8}})
_DEVICES, _TYPE, _WORK = DeviceSettings(), DeviceType("PGPU"), FragmentationSettings(devices="PGPU")
_SHARES, _WEIGHT = FairShareSettings(), Preference("MostAllocated").weight


class PlannerKey(NamedTuple):
    """A key of the planner file; ``default`` is None where a section cannot do without the key, or does nothing."""

    path: str
    kind: str
    default: object
    meaning: str


_ROWS: tuple[tuple[str, str, object, str], ...] = (
    ("levels.*", "trait", dict(DEFAULT_LEVELS), ("A level inside a server, and the trait of its providers. The "
        "outermost level comes first. Change it if your providers have other traits.")),
    ("exclusive.*", "resource class", dict(DEFAULT_LOCKS), ("A level, or device, and the class that locks its "
        "providers for exclusive use. Give these providers an inventory of the class.")),
    ("devices.types.*.class", "resource class", None, "The class of one device of this type. Required."),
    ("devices.types.*.whole", "number", _TYPE.whole, ("How many units of the class a whole device has. Pods can ask "
        "for shares of a GPU if this is 100.")),
    ("devices.types.*.virtual_function", "resource class", None, ("The class of virtual functions, which child "
        "providers of the device have.")),
    ("devices.types.*.label_prefix", "text", _TYPE.label_prefix, ("The beginning of the traits for labels. "
        "With CUSTOM_NIC_LABEL_, the label type=A is CUSTOM_NIC_LABEL_TYPE_A.")),
    ("devices.types.*.resources", "mapping, list", None, ("Names of resources in pods, and how many of each make a "
        "device. Names in a list count in units of the class.")),
    ("devices.types.*.shared", "text", None, "The name in pods that says on how many devices a share is."),
    ("devices.base.*", "resource class", dict(_DEVICES.base), "Last parts of hierarchical names, inside groups."),
    ("devices.host.*", "resource class", dict(_DEVICES.host), "The same outside groups, and in containers."),
    ("devices.labels.*", "text", None, ("A label of nodes, and the beginning of the traits that stand for its "
        "values. Without an entry, pods cannot ask for the label.")),
    ("devices.same_pcie", "level", _DEVICES.same_pcie, "The level that SamePCIe and PCIeLevel mean."),
    ("devices.same_numa", "level", _DEVICES.same_numa, "The level that SameNUMANode means."),
    ("default_profile", "profile", PlannerSettings().default_profile, ("The profile that orders allocation "
        "candidates.")),
    ("profiles.*.fit.weight", "number", Fit().weight, "The weight of this strategy in the total. 0: off."),
    ("profiles.*.fit.resources.*.type", "word", None, ("LeastAllocated spreads the class, MostAllocated packs it. "
        "Without any profile, VCPU and MEMORY_MB are spread, and devices packed.")),
    ("profiles.*.fit.resources.*.weight", "number", _WEIGHT, "The weight of the class in the score."),
    ("profiles.*.sra.weight", "number", _SRA.weight, "The weight of this strategy in the total."),
    ("profiles.*.sra.mode", "word", _SRA.mode, ("unneeded: only requests that do not need the resources are kept "
        "off. upstream: all requests, as in Volcano.")),
    ("profiles.*.sra.resources.*", "number", None, "A scarce class, and its weight."),
    ("profiles.*.proportional.mode", "word", _PROPORTIONAL.mode, ("last: candidates that break the reserve come "
        "last. filter: they are left out.")),
    ("profiles.*.proportional.exempt", "word", _PROPORTIONAL.exempt, ("own: a request for the scarce class may take "
        "its share of the reserve. all: it may take everything.")),
    ("profiles.*.proportional.reserve.*.*", "number", None, ("How many units of the second class stay idle for each "
        "idle unit of the first.")),
    ("profiles.*.compactness.weight", "number", RankingProfile().compactness, ("The weight of this strategy in the "
        "total. Profiles without compactness do not use it.")),
    ("profiles.*.fragmentation.weight", "number", _WORK.weight, "The weight of this strategy in the total."),
    ("profiles.*.fragmentation.devices", "resource class", None, ("The class of devices; each provider that has it "
        "is one device. Required.")),
    ("profiles.*.fragmentation.size", "number", _WORK.size, "The units of a whole device."),
    ("profiles.*.fragmentation.kinds", "list", None, "The traits, or families of traits, that tell models apart."),
    ("profiles.*.fragmentation.beside", "list", [*_WORK.beside], "The classes that work takes of the host."),
    ("profiles.*.fragmentation.refresh_s", "seconds", _WORK.refresh_s, ("How often the server rereads the total "
        "capacity and what it has learnt.")),
    ("profiles.*.fragmentation.flavors.*.weight", "number", 1, ("How frequent this expected work is. Without "
        "flavors, the server learns the mix from requests.")),
    ("profiles.*.fragmentation.flavors.*.devices", "number", 0, "How many devices it takes."),
    ("profiles.*.fragmentation.flavors.*.share", "number", "size", "How many units it takes of each device."),
    ("profiles.*.fragmentation.flavors.*.kinds", "list", None, "The models that it accepts; none: any."),
    ("profiles.*.fragmentation.flavors.*.resources.*", "number", None, "What it takes of the host."),
    ("fair_share.classes", "list", [*_SHARES.classes], "The classes that count. Name scarce ones."),
    ("fair_share.leaves", "word", _SHARES.leaves, "project, or consumer_type: who is in queues."),
    ("fair_share.tree.*.weight", "number", 1, ("What a queue gets relative to its siblings. The key above is the "
        "path of the queue, such as root/eng/dev.")),
    ("fair_share.tree.*.projects", "list", None, "The ids of the queue's projects."),
    ("fair_share.tree.*.consumer_types", "list", None, "The same with leaves: consumer_type."),
    ("fair_share.tree.*.guarantee.*", "number", 0, "What nobody takes back from the queue, by class."),
    ("fair_share.tree.*.deserved.*", "number", None, "The entitlement, by class, instead of the one by weight."),
    ("fair_share.tree.*.limit.*", "number", None, "What the queue never exceeds, by class."),
    ("fair_share.queues", "list", None, "Queues in Volcano's form: hierarchy and weights, and the keys above."),
    ("fair_share.queues.*.hierarchy", "text", None, "The path of a queue, such as root/eng/prod."),
    ("fair_share.queues.*.weights", "text", None, "A weight for each name of the path, such as 1/2/8."),
    ("fair_share.default", "text", "root/default", "The queue of projects without one."),
    ("fair_share.partition", "uuid", None, "An aggregate; only its providers count."),
    ("fair_share.keep_s", "seconds", _SHARES.keep_s, "For how long usage is reused after it was read."),
    ("flavors.*", "query, mapping", None, ("A request whose headroom is counted: a query string, or the fields that "
        "follow.")),
    ("flavors.*.vcpus", "number", 0, "The virtual CPUs of a flavor of nova."),
    ("flavors.*.ram", "MiB", 0, "Its memory."),
    ("flavors.*.disk", "GiB", 0, "Its root disk."),
    ("flavors.*.ephemeral", "GiB", 0, "Its ephemeral disk."),
    ("flavors.*.swap", "MiB", 0, "Its swap."),
    ("flavors.*.extra_specs", "mapping", None, "Its extra specs."),
    ("flavor_root_required", "list", None, "Traits that your nova requires of hosts for every flavor."),
    ("private_flavors", "list", None, "Flavors that metrics show with public=False."),
    ("aggregates.*.*", "uuid, list", None, ("A kind such as rack, a name of that kind, and its aggregates. The "
        "outermost kind comes first.")),
    ("names", "file, mapping", None, "A file beside this one, or the keys that follow."),
    ("names.projects.*", "text", None, "The id of a project, and its name."),
    ("names.users.*", "text", None, "The id of a user, and its name."),
)  # fmt: skip

KEYS = tuple(PlannerKey(*row) for row in _ROWS)
