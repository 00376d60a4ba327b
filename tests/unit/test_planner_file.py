"""From the planner file to PlannerSettings: what can be written, what holds without it, and where the file is."""

import doctest
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from placement.allocators.fair_share.queues import Queue, QueueCapacity, tree_of
from placement.allocators.fair_share.tree import Branch
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, Sra
from placement.api.planner.fair_share import tree_json
from placement.cli.fair_share import tree_report
from placement.domain.device_types import DeviceSettings, DeviceType
from placement.errors import ConfigurationError
from placement.services.fair_share.shares import Reading, shares_of_reading
from placement.settings import PlannerSettings, RankingSettings, load
from placement.settings.planner.sections import SECTIONS, load_planner
from placement.settings.planner.values import FairShareSettings

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "etc" / "placement" / "planner.yaml"
SHARES = ROOT / "docs" / "how-to" / "give-a-tenant-a-share.md"
UUID_A, UUID_B, UUID_C = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abc")
CONNECTION = "[placement_database]\nconnection = sqlite://\n"
VARIABLES = {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://"}
SPREAD = "profiles: {spread: {fit: {}}}\ndefault_profile: spread\n"
PACKED = "profiles: {packed: {compactness: {}}}\ndefault_profile: packed\n"


def read(directory: Path, text: str | bytes) -> PlannerSettings:
    """Read a file with this text."""
    path = directory / "planner.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_planner(path)


def fair_share(directory: Path, text: str) -> FairShareSettings:
    return read(directory, "fair_share:\n" + text).fair_share


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_every_section_of_the_settings_is_read() -> None:
    assert set(SECTIONS) == set(PlannerSettings.__dataclass_fields__)


def test_every_part_of_a_profile_is_read(tmp_path: Path) -> None:
    text = """
default_profile: ai
levels: {pcie: CUSTOM_SWITCH, socket: CUSTOM_SOCKET}
profiles:
  ai:
    fit:
      weight: 2.5
      resources:
        nvidia.com/gpu/*: {type: MostAllocated, weight: 2}
        VCPU: {type: LeastAllocated}
    sra: {weight: 3, mode: upstream, resources: {CUSTOM_GPU_*: 0.1}}
    proportional: {exempt: own, mode: filter, reserve: {PGPU: {VCPU: 8, MEMORY_MB: 1e3}}}
    compactness: {weight: 4}
"""
    planner = read(tmp_path, text)
    assert [*planner.levels.items()] == [("pcie", "CUSTOM_SWITCH"), ("socket", "CUSTOM_SOCKET")]
    gpus, vcpus = Preference("MostAllocated", 2), Preference("LeastAllocated")
    strategy = Profile(
        fit=Fit({"CUSTOM_NVIDIA_COM_GPU_*": gpus, "VCPU": vcpus}, weight=2.5),
        sra=Sra({"CUSTOM_GPU_*": 0.1}, weight=3, mode="upstream"),
        proportional=Proportional({"PGPU": {"VCPU": 8, "MEMORY_MB": 1000}}, exempt="own", mode="filter"),
    )
    assert planner.profile_in_force == RankingProfile("ai", strategy, 4)
    assert planner.profile_in_force.maximum == 950


def test_a_part_that_is_not_written_is_off_and_an_empty_one_has_the_defaults(tmp_path: Path) -> None:
    profiles = read(tmp_path, "profiles: {default: {fit: {}, compactness: {}}, nothing: {}}\n").profiles
    assert profiles["default"] == RankingProfile("default", Profile(fit=Fit()))
    assert profiles["nothing"] == RankingProfile("nothing", Profile(), 0)


def test_the_defaults_are_those_that_are_documented() -> None:
    spread, packed = Preference("LeastAllocated", 1), Preference("MostAllocated", 4)
    devices = ["PGPU", "VGPU", "FPGA", "CUSTOM_GPU_*", "CUSTOM_PCI_10DE_*", "CUSTOM_PCI_1002_*"]
    planner = PlannerSettings()
    assert planner.profile_in_force.strategy == Profile(
        fit=Fit({"VCPU": spread, "MEMORY_MB": spread} | dict.fromkeys(devices, packed), 10),
        sra=Sra({"PGPU": 1, "VGPU": 1, "FPGA": 1}, 30),
    )
    assert (planner.profile_in_force.compactness, planner.profile_in_force.maximum) == (10, Fraction(5000))
    assert planner.levels == {"numa": "HW_NUMA_ROOT", "pcie": "CUSTOM_HW_PCIE_SWITCH"}


def test_names_that_yaml_takes_for_something_else_are_names(tmp_path: Path) -> None:
    assert read(tmp_path, "profiles: {on: {}, 2024: {}}\ndefault_profile: on\n").default_profile == "on"


def test_aggregates_have_names_by_kind_in_the_order_of_the_file(tmp_path: Path) -> None:
    zones = f"  zone:\n    west: {UUID_A.upper()}\n    east: [{UUID_B}, {UUID_C}]\n"
    aggregates = read(tmp_path, f"aggregates:\n{zones}  rack: {{b12: {UUID_A}}}\n").aggregates
    assert [(kind, [*names.items()]) for kind, names in aggregates.items()] == [
        ("zone", [("west", (UUID_A,)), ("east", (UUID_B, UUID_C))]),
        ("rack", [("b12", (UUID_A,))]),
    ]


def test_devices_are_what_the_operator_says(tmp_path: Path) -> None:
    text = (
        "devices:\n  same_pcie: numa\n  base: {cards: VGPU}\n"
        "  types:\n    tpu: {class: CUSTOM_TPU, whole: 8, resources: [google.com/tpu]}\n"
        "    gpu: {class: CUSTOM_GPU_SHARE, whole: 100, shared: a/gpu.shared,\n"
        "          resources: {nvidia.com/gpu: 1, a/gpu: 100}}\n"
    )
    devices = read(tmp_path, text).devices
    assert (devices.same_pcie, dict(devices.base)) == ("numa", {"cards": "VGPU"})
    resources = {"nvidia.com/gpu": 1, "a/gpu": 100}
    assert dict(devices.types) == {
        "tpu": DeviceType("CUSTOM_TPU", 8, resources={"google.com/tpu": 8}),
        "gpu": DeviceType("CUSTOM_GPU_SHARE", 100, resources=resources, shared="a/gpu.shared"),
    }


def test_flavors_are_queries_or_what_nova_has_and_some_are_private(tmp_path: Path) -> None:
    text = "flavors:\n  a: resources=VCPU:1\n  b: {vcpus: 2, ram: 1024, extra_specs: {'resources:PGPU': '1'}}\n"
    planner = read(tmp_path, f"flavor_root_required: [OWNER_NOVA]\nprivate_flavors: [a]\n{text}")
    asked = "resources=MEMORY_MB:1024,PGPU:1,VCPU:2&root_required=OWNER_NOVA,!COMPUTE_STATUS_DISABLED"
    assert planner.flavors == {"a": "resources=VCPU:1", "b": asked}
    assert planner.private_flavors == {"a"}


def test_names_are_a_section_or_a_file_of_their_own(tmp_path: Path) -> None:
    text = "names:\n  projects:\n    1f0c: research\n    2e1d: research\n    3c2b: web\n  users: {0a9b: Ann}\n"
    names = read(tmp_path, text).names
    write(tmp_path / "names.yaml", text)
    assert read(tmp_path, "names: names.yaml\n").names == names
    assert (names.project_id("web"), names.user_id("Ann"), names.project_id("1f0c")) == ("3c2b", "0a9b", "1f0c")
    assert names.project_id("research") == "research", "two have this name"
    assert names.projects_with("SEA", limit=5) == ["1f0c", "2e1d"]


def test_all_that_can_be_written_of_fair_shares_is_read(tmp_path: Path) -> None:
    text = f"""
  classes: [VCPU, PGPU]
  leaves: consumer_type
  tree:
    root/eng: {{weight: 2}}
    root/eng/dev: {{weight: 0.5, consumer_types: [INSTANCE]}}
  queues:
    - {{hierarchy: root/eng/prod, weights: 1/2/8, consumer_types: [JOB]}}
  default: root/rest
  partition: {UUID_A.upper()}
  keep_s: 0.5
"""
    lines = [
        Queue("root/eng", (None, 2)),
        Queue("root/eng/dev", (None, None, 0.5), ("INSTANCE",)),
        Queue("root/eng/prod", (1, 2, 8), ("JOB",)),
    ]
    queues = tree_of(lines, "root/rest")
    assert fair_share(tmp_path, text) == FairShareSettings(("VCPU", "PGPU"), "consumer_type", queues, UUID_A, 0.5)
    assert queues.weights == {"root/eng": 2, "root/eng/dev": 0.5, "root/eng/prod": 8, "root/rest": 1}


def test_the_form_of_volcano_says_the_same_as_the_tree(tmp_path: Path) -> None:
    volcano = "  queues:\n  - {hierarchy: root/eng/prod, weights: 1/2/8}\n  - {hierarchy: root/sci, weights: 100/0.5}\n"
    tree = "  tree: {root/eng: {weight: 2}, root/eng/prod: {weight: 8, projects: []}, root/sci: {weight: 0.5}}\n"
    assert fair_share(tmp_path, volcano) == fair_share(tmp_path, tree)


def test_queues_may_have_amounts_beside_weights(tmp_path: Path) -> None:
    text = """
  classes: [VCPU, PGPU]
  tree:
    root/eng: {weight: 2, guarantee: {VCPU: 4}, deserved: {VCPU: 8, PGPU: 2}, limit: {VCPU: 16}}
  queues:
    - {hierarchy: root/sci, weights: 1/1, limit: {PGPU: 3}}
"""
    queues = fair_share(tmp_path, text).queues
    promised = QueueCapacity({"VCPU": 4}, {"VCPU": 8, "PGPU": 2}, {"VCPU": 16})
    assert queues.capacities == {"root/eng": promised, "root/sci": QueueCapacity(limit={"PGPU": 3})}
    (eng,) = [part for part in queues.tree([]).parts if part.name == "eng"]
    assert isinstance(eng, Branch)
    assert QueueCapacity(eng.guarantee, eng.deserved, eng.limit) == promised


def test_what_is_promised_inside_a_queue_counts_once(tmp_path: Path) -> None:
    amounts = {"root/a": 8, "root/a/b": 8, "root/a/b/c": 3, "root/a/b/d": 5}
    lines = [f"    {path}: {{guarantee: {{VCPU: {amount}}}}}\n" for path, amount in amounts.items()]
    assert {*fair_share(tmp_path, "  tree:\n" + "".join(lines)).queues.capacities} == {*amounts}


@pytest.mark.parametrize("is_absolute", [True, False])
def test_the_file_is_beside_the_configuration_in_a_directory_or_where_the_option_says(
    tmp_path: Path, is_absolute: bool
) -> None:
    file, directory = write(tmp_path / "placement.conf", CONNECTION), tmp_path / "conf.d"
    write(tmp_path / "planner.yaml", SPREAD)
    assert load([str(file)], {}, search=False).planner.default_profile == "spread"
    write(directory / "planner.yaml", PACKED)
    assert load([str(file)], {}, config_dirs=[str(directory)], search=False).planner.default_profile == "packed"
    other = write(tmp_path / "other.yaml", PACKED)
    write(file, f"{CONNECTION}[ranking]\nplanner_file = {other if is_absolute else other.name}\n")
    assert load([str(file)], {}, search=False).planner.default_profile == "packed"


def test_without_any_configuration_only_the_option_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "planner.yaml", SPREAD)
    assert load((), VARIABLES, search=False).planner == PlannerSettings()
    named = VARIABLES | {"OS_RANKING__PLANNER_FILE": "planner.yaml"}
    assert load((), named, search=False).planner.default_profile == "spread"


def test_a_link_to_nowhere_is_not_taken_for_no_file(tmp_path: Path) -> None:
    file = write(tmp_path / "placement.conf", CONNECTION)
    (tmp_path / "planner.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match=r"planner\.yaml cannot be read"):
        load([str(file)], {}, search=False)


def test_the_options_reach_the_settings() -> None:
    options = {"OS_RANKING__ENABLED": "false", "OS_RANKING__NEAR_EQUAL": "0.5", "OS_PLANNER__ENABLED": "false"}
    settings = load((), VARIABLES | options, search=False)
    assert settings.ranking == RankingSettings(enabled=False, near_equal=0.5)
    assert not settings.planner_api.enabled


@pytest.mark.parametrize("value", ["-1", "101", "nan", "much"])
def test_near_equal_is_a_number_of_points(value: str) -> None:
    with pytest.raises(ConfigurationError, match="near_equal"):
        load((), VARIABLES | {"OS_RANKING__NEAR_EQUAL": value}, search=False)


def test_the_sample_says_what_holds_without_it_and_shows_every_section() -> None:
    sample, text = load_planner(SAMPLE), SAMPLE.read_text()
    assert [*sample.profiles] == ["default", "pack", "gpu"]
    assert replace(sample, profiles={"default": sample.profiles["default"]}) == PlannerSettings()
    assert (sample.exclusive, sample.devices) == (PlannerSettings().exclusive, DeviceSettings())
    assert [name for name in SECTIONS if not re.search(rf"^(# )?{name}:", text, re.MULTILINE)] == []


def uncommented(heading: str, indent: str = "") -> str:
    """Return an example of the sample, which is a comment from its heading to the next blank line."""
    example = SAMPLE.read_text().partition(f"{indent}# {heading}:\n")[2].partition("\n\n")[0]
    return "".join(indent + line.removeprefix(f"{indent}#").removeprefix(" ") for line in example.splitlines(True))


def test_the_examples_of_the_sample_can_be_used(tmp_path: Path) -> None:
    assert fair_share(tmp_path, uncommented("fair_share")).queues.weights == {
        "root/eng": 2,
        "root/eng/dev": 2,
        "root/sci": 0.5,
        "root/ops": 1,
        "root/eng/prod": 8,
        "root/default": 1,
    }
    before, _, after = SAMPLE.read_text().partition("    # fragmentation:\n")
    packing, rest = uncommented("fragmentation", "    "), after.partition("\n\n")[2]
    gpu = read(tmp_path, f"{before}    fragmentation:\n{packing}\n\n{rest}").profiles["gpu"]
    assert gpu.fragmentation is not None
    assert [flavor.task.share for flavor in gpu.fragmentation.flavors.values()] == [250, 1000, 0]
    assert gpu.strategy.proportional == Proportional({"PGPU": {"VCPU": 8}}, exempt="own")


def test_the_examples_of_the_pages_about_fair_shares_are_read_and_run(tmp_path: Path) -> None:
    text = SHARES.read_text().partition("```yaml\n")[2].partition("```")[0]
    settings = read(tmp_path, text).fair_share
    assert (settings.queues.weights["root/eng/prod"], settings.keep_s) == (4, FairShareSettings().keep_s)
    library = ROOT / "docs" / "explanation" / "fair-shares.md"
    assert doctest.testfile(str(library), module_relative=False) == doctest.TestResults(failed=0, attempted=6)


def test_the_tree_of_the_page_is_what_the_command_prints() -> None:
    owners = {"root/n1": "p1", "root/n2/n21": "p21", "root/n2/n22": "p22"}
    queues = tree_of([Queue(path, (), (project,)) for path, project in owners.items()])
    settings = FairShareSettings(("VCPU", "PGPU"), "project", queues)
    usage = {"p1": {"PGPU": 5}, "p21": {"VCPU": 10}, "p22": {"PGPU": 4}}
    shares = shares_of_reading(Reading(usage, {"VCPU": 10, "PGPU": 10}), settings, age_s=0)
    printed = [*tree_report(tree_json(shares, settings)).lines()]
    assert "\n".join(f"    {line}".rstrip() for line in printed[2:-3]) in SHARES.read_text()
