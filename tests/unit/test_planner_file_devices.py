"""The sections ``exclusive`` and ``devices`` of the planner file."""

from pathlib import Path

import pytest

from placement.domain.device_types import DeviceSettings, DeviceType
from placement.errors import ConfigurationError
from placement.settings import PlannerSettings
from placement.settings.planner.sections import load_planner


def read(directory: Path, text: str) -> PlannerSettings:
    path = directory / "planner.yaml"
    path.write_text(text, encoding="utf-8")
    return load_planner(path)


def test_the_sample_says_what_holds_without_it() -> None:
    sample = load_planner(Path(__file__).parents[2] / "etc" / "placement" / "planner.yaml")
    assert sample.exclusive == PlannerSettings().exclusive
    assert sample.devices == DeviceSettings()


def test_devices_are_what_the_operator_says(tmp_path: Path) -> None:
    text = (
        "devices:\n  same_pcie: numa\n  base: {cards: VGPU}\n"
        "  types:\n    tpu: {class: CUSTOM_TPU, whole: 8, resources: [google.com/tpu]}\n"
        "    gpu: {class: CUSTOM_GPU_SHARE, whole: 100, shared: a/gpu.shared,\n"
        "          resources: {nvidia.com/gpu: 1, a/gpu: 100}}\n"
    )
    devices = read(tmp_path, text).devices
    assert (devices.same_pcie, dict(devices.base)) == ("numa", {"cards": "VGPU"})
    assert dict(devices.types) == {
        "tpu": DeviceType("CUSTOM_TPU", 8, resources={"google.com/tpu": 8}),
        "gpu": DeviceType(
            "CUSTOM_GPU_SHARE", 100, resources={"nvidia.com/gpu": 1, "a/gpu": 100}, shared="a/gpu.shared"
        ),
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("exclusive: {rack: CUSTOM_LOCK}\n", "exclusive: expected a level: numa, pcie, device, found the key 'rack'."),
        ("exclusive: {pcie: lock}\n", "exclusive.pcie: expected a resource class such as CUSTOM_PCIE_LOCK"),
        ("exclusive: {pcie: A, numa: A}\n", "exclusive.numa: expected a resource class that no other level has"),
        ("devices: {types: {gpu: {}}}\n", "devices.types.gpu: expected the key class, found an empty mapping."),
        ("devices: {types: {gpu: {class: PGPU, whole: 0}}}\n", "whole: expected a whole number from 1 up, found '0'."),
        ("devices: {same_pcie: rack}\n", "devices.same_pcie: expected numa or pcie, found 'rack'."),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, text)
    assert "planner.yaml, line 1: " in refused.value.message
    assert sentence in refused.value.message
