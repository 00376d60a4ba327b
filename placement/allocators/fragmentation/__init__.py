"""Fragmentation: which host, and which of its devices, spoils least for the work that is still expected.

Free devices are worth what expected work can make of them. A GPU is free in vain where the processors beside it are
used up, where a tenth of it is left and everybody asks for a half, or where its model is none that is asked for. So a
placement is judged by what it does to that, in four parts, all of them in whole devices (``cost``):

* the **gradient**: how much more of the host's free devices is useless for the expected work, after the placement than
  before it, on average over that work (Weng et al., "Beware of Fragmentation", USENIX ATC 2023);
* the **offcut**: what is lost if the rest of the device is filled as well as it can be. Expected shares have prices, as
  the sizes in a cutting-stock problem have (Gilmore and Gomory 1961), and a rest is worth the dearest set that fits;
* the **scarcity** of the devices' kind: work that will do with any kind stays off those that other work insists on;
* the **fit**: of hosts that are otherwise alike, the fullest one.

The first is the published policy. The other three are this library's.

>>> half, whole = DeviceTask({"VCPU": 4}, devices=1, share=500), DeviceTask({"VCPU": 8}, devices=1, share=1000)
>>> outlook = Outlook({half: 1, whole: 1}, DeviceSupply({"": 4000}, size=1000, largest={"VCPU": 32}))
>>> begun = FreeHost({"VCPU": 16}, (FreeDevice(500), FreeDevice(1000)))
>>> [round(outlook.cost(begun, half, device), 2) for device in begun.devices]
[-0.24, 0.64]
>>> outlook.best_device(begun, half)
0
"""

from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FreeDevice, FreeHost
from placement.allocators.fragmentation.outlook import CostWeights, Outlook, tidiness
from placement.allocators.fragmentation.packing import DevicePacking, ExpectedWork

__all__ = [
    "CostWeights",
    "DevicePacking",
    "DeviceSupply",
    "DeviceTask",
    "ExpectedWork",
    "FreeDevice",
    "FreeHost",
    "Outlook",
    "tidiness",
]
