#!/usr/bin/env python3
"""Register a host with GPUs and NICs on PCIe switches, as the planner understands it.

    python register_gpu_host.py --url http://127.0.0.1:8778 --token admin gpu-host-1 gpu-host-2

creates a tree of resource providers for each name: the host, two NUMA nodes, two PCIe switches below each, and below
each switch two GPUs and a NIC with virtual functions. Running it again changes nothing. Edit HOST to describe your
hosts; docs/reference/planner-requests.md explains the names. Needs only Python.
"""

import argparse
import json
import urllib.error
import urllib.request
import uuid

SWITCH = {"gpus": 2, "nics": 1}
HOST = {
    "inventory": {"MEMORY_MB": {"total": 1_048_576}, "DISK_GB": {"total": 4000}},
    "numa_inventory": {"VCPU": {"total": 64, "allocation_ratio": 1.0}},
    "numa_nodes": [[SWITCH, SWITCH], [SWITCH, SWITCH]],
    "virtual_functions": 8,
    "gpu_traits": [],
    "nic_traits": ["HW_NIC_SRIOV"],
}
CLASSES = ("CUSTOM_PCIE_LOCK", "CUSTOM_DEVICE_LOCK", "CUSTOM_RDMA_SHARE")
TRAITS = ("CUSTOM_HW_PCIE_SWITCH",)
DEVICE_LOCK = {"CUSTOM_DEVICE_LOCK": {"total": 1000}}
NAMESPACE = uuid.UUID("6f7f1b8e-0f0a-4a57-9d3b-2f5a3d1c9a10")


def register(send, name, host=HOST):
    """Create the tree of one host.

    Args:
        send: called with (method, path, body); raises on failure.
        name: the name of the host.
        host: its description, in the form of HOST.
    """
    prepare(send, {*host["gpu_traits"], *host["nic_traits"]})
    root = provider(send, name, None, host["inventory"], [])
    gpu = nic = 0
    for number, switches in enumerate(host["numa_nodes"]):
        numa = provider(send, f"{name}-numa{number}", root, host["numa_inventory"], ["HW_NUMA_ROOT"])
        for index, switch in enumerate(switches):
            lock = {"CUSTOM_PCIE_LOCK": {"total": 1000}}
            place = provider(send, f"{name}-pcie{number}.{index}", numa, lock, ["CUSTOM_HW_PCIE_SWITCH"])
            for _ in range(switch["gpus"]):
                provider(send, f"{name}-gpu{gpu}", place, {"PGPU": {"total": 1}, **DEVICE_LOCK}, host["gpu_traits"])
                gpu += 1
            for _ in range(switch["nics"]):
                share = {"CUSTOM_RDMA_SHARE": {"total": 100}, **DEVICE_LOCK}
                port = provider(send, f"{name}-nic{nic}", place, share, host["nic_traits"])
                functions = {"SRIOV_NET_VF": {"total": host["virtual_functions"]}}
                provider(send, f"{name}-nic{nic}-vf", port, functions, [])
                nic += 1


def prepare(send, traits):
    """Create the classes and traits that the tree needs and that do not exist."""
    for resource_class in CLASSES:
        send("PUT", f"/resource_classes/{resource_class}", None)
    for trait in {*TRAITS, *traits}:
        if trait.startswith("CUSTOM_"):
            send("PUT", f"/traits/{trait}", None)


def provider(send, name, parent, inventory, traits):
    """Create a provider with inventory and traits unless it exists, and return its uuid."""
    identity = str(uuid.uuid5(NAMESPACE, name))
    found = send("GET", f"/resource_providers?uuid={identity}", None)["resource_providers"]
    if found:
        return identity
    body = {"name": name, "uuid": identity, **({} if parent is None else {"parent_provider_uuid": parent})}
    send("POST", "/resource_providers", body)
    path = f"/resource_providers/{identity}"
    generation = 0
    if inventory:
        body = {"resource_provider_generation": generation, "inventories": inventory}
        generation = send("PUT", f"{path}/inventories", body)["resource_provider_generation"]
    if traits:
        send("PUT", f"{path}/traits", {"resource_provider_generation": generation, "traits": traits})
    return identity


def sender(url, token):
    """Return a function that sends one request and returns the answer's document."""

    def send(method, path, body):
        data = None if body is None else json.dumps(body).encode()
        headers = {"x-auth-token": token, "openstack-api-version": "placement 1.39", "content-type": "application/json"}
        request = urllib.request.Request(url.rstrip("/") + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from error
        except urllib.error.URLError as error:
            raise SystemExit(f"{url} does not answer: {error.reason}") from error
        return json.loads(text) if text else None

    return send


def main():
    """Register the hosts given as arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8778", help="where Placement is")
    parser.add_argument("--token", default="admin", help="the token of an administrator")
    parser.add_argument("--gpu-trait", action="append", metavar="TRAIT", help="a trait of the GPUs; repeatable")
    parser.add_argument("names", nargs="+", metavar="NAME", help="the name of a host")
    arguments = parser.parse_args()
    send = sender(arguments.url, arguments.token)
    for name in arguments.names:
        register(send, name, {**HOST, "gpu_traits": arguments.gpu_trait or HOST["gpu_traits"]})
        print(name)


if __name__ == "__main__":
    main()
