"""From the planner file to PlannerSettings, and the errors for invalid files."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional, Sra
from placement.errors import ConfigurationError
from placement.settings import PlannerSettings, RankingSettings, load
from placement.settings.planner.sections import SECTIONS, load_planner

SAMPLE = Path(__file__).parents[2] / "etc" / "placement" / "planner.yaml"
UUID_A, UUID_B, UUID_C = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abc")
CONNECTION = "[placement_database]\nconnection = sqlite://\n"
SPREAD = "profiles: {spread: {fit: {}}}\ndefault_profile: spread\n"
PACKED = "profiles: {packed: {compactness: {}}}\ndefault_profile: packed\n"


def read(directory: Path, text: str | bytes) -> PlannerSettings:
    path = directory / "planner.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_planner(path)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def named(profiles: Mapping[str, object]) -> list[str]:
    return list(profiles)


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
    assert list(planner.levels.items()) == [("pcie", "CUSTOM_SWITCH"), ("socket", "CUSTOM_SOCKET")]
    assert planner.profile_in_force == RankingProfile(
        "ai",
        Profile(
            fit=Fit(
                {"CUSTOM_NVIDIA_COM_GPU_*": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated")},
                weight=2.5,
            ),
            sra=Sra({"CUSTOM_GPU_*": 0.1}, weight=3, mode="upstream"),
            proportional=Proportional({"PGPU": {"VCPU": 8, "MEMORY_MB": 1000}}, exempt="own", mode="filter"),
        ),
        4,
    )
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
    assert planner.profile_in_force.compactness == 10
    assert planner.profile_in_force.maximum == Fraction(5000)
    assert planner.levels == {"numa": "HW_NUMA_ROOT", "pcie": "CUSTOM_HW_PCIE_SWITCH"}


def test_names_that_yaml_takes_for_something_else_are_names(tmp_path: Path) -> None:
    assert read(tmp_path, "profiles: {on: {}, 2024: {}}\ndefault_profile: on\n").default_profile == "on"


def test_aggregates_have_names_by_kind_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = f"""
aggregates:
  zone:
    west: {UUID_A.upper()}
    east: [{UUID_B}, {UUID_C}]
  rack: {{b12: {UUID_A}}}
"""
    aggregates = read(tmp_path, text).aggregates
    assert {kind: dict(names) for kind, names in aggregates.items()} == {
        "zone": {"west": (UUID_A,), "east": (UUID_B, UUID_C)},
        "rack": {"b12": (UUID_A,)},
    }
    assert named(aggregates) == ["zone", "rack"]
    assert named(aggregates["zone"]) == ["west", "east"]


WRONG = [
    ("aggregates: [a]\n", 1, "aggregates: expected a mapping, found a list"),
    ("aggregates: {Zone: {a: b}}\n", 1, "expected a kind of aggregates in lower case, such as zone or rack, found"),
    ("aggregates: {host: {a: b}}\n", 1, "expected another kind than host, which each tree is by itself, found"),
    ("aggregates:\n  zone:\n    a: b\n", 3, "aggregates.zone.a: expected the uuid of an aggregate, or a list of them"),
    (f"aggregates:\n  zone:\n    a/b: {UUID_A}\n", 3, "expected a name of up to 100 characters, without a slash"),
    (
        f"aggregates:\n  zone:\n    a: {UUID_A}\n    b: [{UUID_B},\n {UUID_A}]\n",
        5,
        "aggregates.zone.b.1: expected an aggregate that has no other name of this kind",
    ),
    ("levles: {}\n", 1, "expected one of the keys levels, "),
    ("levels:\n  numa: HW_NUMA_ROOT\n  numa: A\n", 3, "levels: expected each key once (numa also stands in line 2)"),
    ("levels:\n  numa: hw-numa\n", 2, "levels.numa: expected a trait such as HW_NUMA_ROOT, found 'hw-numa'"),
    ("levels:\n  a: X\n  b: X\n", 3, "levels.b: expected a trait that no other level has, found 'X'"),
    ("default_profile: ai\n", 1, "default_profile: expected default, found 'ai'"),
    ("profiles: {a: {}, b: {}}\n\ndefault_profile: c\n", 3, "default_profile: expected a or b, found 'c'"),
    ("profiles:\n  default:\n    fitt: {}\n", 3, "profiles.default: expected one of the keys fit, sra"),
    ("profiles: {default: {fit: {resources: {}}}}\n", 1, "expected a mapping with at least one key"),
    ("{'': 1}\n", 1, "expected a text as the key, found ''"),
]


@pytest.mark.parametrize(("text", "line", "sentence"), WRONG, ids=[sentence for _, _, sentence in WRONG])
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, line: int, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, text)
    assert refused.value.message.startswith(f"{tmp_path}/planner.yaml, line {line}: ")
    assert sentence in refused.value.message
    assert "\n" not in refused.value.message


FIT = "profiles:\n  default:\n    fit:\n      weight: 1\n      resources:\n        {}\n"
SRA = "profiles:\n  default:\n    sra:\n      weight: 1\n      resources:\n        {}\n"
RESERVE = "profiles:\n  default:\n    proportional:\n      mode: last\n      reserve:\n        {}\n"


@pytest.mark.parametrize(
    ("template", "text", "sentence"),
    [
        *[
            (template, f"{name}: {value}", "expected a resource class or a family such as CUSTOM_GPU_*, found the key")
            for template, value in ((FIT, "{type: MostAllocated}"), (SRA, "1"), (RESERVE, "{VCPU: 1}"))
            for name in ("'*'", "CUSTOM_**", "CUSTOM_*_GPU", "'*.com/gpu'", "vcpu")
        ],
        (FIT, "VCPU: MostAllocated", "fit.resources.VCPU: expected a mapping, found 'MostAllocated'"),
        (FIT, "VCPU: {type: Packed}", "VCPU.type: expected MostAllocated or LeastAllocated, found 'Packed'"),
        (FIT, "a.b/c: {type: MostAllocated}\n        a.b.c: {}", "one entry for CUSTOM_A_B_C, found the key 'a.b.c'"),
        *[
            (SRA, f"PGPU: {number}", f"sra.resources.PGPU: expected a number from 0 up, found {shown}")
            for number, shown in [
                ("-1", "'-1'"),
                ("true", "'true'"),
                ("'5'", "'5'"),
                (".inf", "'.inf'"),
                ("1e999", "'1e999'"),
                ("010", "'010'"),
                ("1:30", "'1:30'"),
                ("x", "'x'"),
                ("", "nothing"),
                ("[1]", "a list"),
            ]
        ],
        (RESERVE, "PGPU: {}", "proportional.reserve.PGPU: expected a mapping with at least one key"),
        (RESERVE, "PGPU: {VCPU: -8}", "reserve.PGPU.VCPU: expected a number from 0 up"),
        (RESERVE, "PGPU: {CUSTOM_*: 1}", "expected one other class, not a family, found the key 'CUSTOM_*'"),
        (RESERVE.replace("mode: last", "mode: drop"), "PGPU: {VCPU: 1}", "mode: expected last or filter, found 'drop'"),
        (RESERVE.replace("mode: last", "exempt: me"), "PGPU: {VCPU: 1}", "exempt: expected all or own, found 'me'"),
    ],
)
def test_a_mistake_in_a_profile_is_named_with_its_line(tmp_path: Path, template: str, text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, template.format(text))
    line = 7 if "\n" in text else 4 if "mode: expected" in sentence or "exempt: expected" in sentence else 6
    assert refused.value.message.startswith(f"{tmp_path}/planner.yaml, line {line}: profiles.default.")
    assert sentence in refused.value.message


FRAGMENTATION = "profiles:\n  default:\n    fragmentation:\n      devices: CUSTOM_GPU\n      {}\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("size: 0", "size: expected a whole number from 1 up, found '0'"),
        ("kinds: [gpu]", "kinds.0: expected a trait, or a family such as CUSTOM_GPU_*, found 'gpu'"),
        ("beside: [CUSTOM_GPU]", "beside: expected other resource classes than that of devices, found a list"),
        ("flavors: {a: {share: 1, resources: {}}}", "flavors.a: expected the key devices beside it"),
        (
            "flavors: {a: {devices: 1, share: 2, resources: {}}}",
            "a.share: expected at most the size of a device, 1",
        ),
        ("flavors: {a: {resources: {DISK_GB: 1}}}", "a.resources.DISK_GB: expected one of VCPU, MEMORY_MB, found '1'"),
    ],
)
def test_a_mistake_in_packing_is_named_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, FRAGMENTATION.format(text))
    assert refused.value.message.startswith(f"{tmp_path}/planner.yaml, line 5: profiles.default.fragmentation")
    assert sentence in refused.value.message


@pytest.mark.parametrize(
    "text",
    ["a: [1\n", "a: b: c\n", "\ta: 1\n", "a: *nowhere\n", "--- a\n--- b\n", b"\xff\xfe\xfa", b"a: \x00\n", "[" * 9000],
    ids=["open", "colons", "tab", "alias", "two documents", "bytes", "nul", "deep"],
)
def test_what_is_not_yaml_is_said_in_one_line(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"planner\.yaml.*: expected YAML") as refused:
        read(tmp_path, text)
    assert "\n" not in refused.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml cannot be read: No such file"):
        load_planner(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load_planner(tmp_path)


def test_every_section_of_the_settings_is_read() -> None:
    assert set(SECTIONS) == set(PlannerSettings.__dataclass_fields__)


class TestWhereTheFileIs:
    """The file is beside placement.conf, in the configuration directories, or where the option names it."""

    def test_beside_the_configuration_file(self, tmp_path: Path) -> None:
        file = write(tmp_path / "placement.conf", CONNECTION)
        write(tmp_path / "planner.yaml", SPREAD)
        assert load([str(file)], {}, search=False).planner.default_profile == "spread"

    def test_a_configuration_directory_wins_over_the_file(self, tmp_path: Path) -> None:
        file = write(tmp_path / "placement.conf", CONNECTION)
        write(tmp_path / "planner.yaml", SPREAD)
        write(tmp_path / "conf.d" / "planner.yaml", PACKED)
        planner = load([str(file)], {}, config_dirs=[str(tmp_path / "conf.d")], search=False).planner
        assert planner.default_profile == "packed"

    @pytest.mark.parametrize("is_absolute", [True, False])
    def test_where_the_option_says(self, tmp_path: Path, is_absolute: bool) -> None:
        other = write(tmp_path / "other.yaml", PACKED)
        write(tmp_path / "planner.yaml", SPREAD)
        option = f"[ranking]\nplanner_file = {other if is_absolute else other.name}\n"
        file = write(tmp_path / "placement.conf", CONNECTION + option)
        assert load([str(file)], {}, search=False).planner.default_profile == "packed"

    def test_without_any_file_only_the_option_names_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "planner.yaml", SPREAD)
        variables = {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://"}
        assert load((), variables, search=False).planner == PlannerSettings()
        variables["OS_RANKING__PLANNER_FILE"] = "planner.yaml"
        assert load((), variables, search=False).planner.default_profile == "spread"

    def test_a_link_to_nowhere_is_not_taken_for_no_file(self, tmp_path: Path) -> None:
        file = write(tmp_path / "placement.conf", CONNECTION)
        (tmp_path / "planner.yaml").symlink_to(tmp_path / "nowhere")
        with pytest.raises(ConfigurationError, match=r"planner\.yaml cannot be read"):
            load([str(file)], {}, search=False)


class TestTheSample:
    """etc/placement/planner.yaml."""

    def test_says_what_holds_without_it(self) -> None:
        sample = load_planner(SAMPLE)
        assert named(sample.profiles) == ["default", "pack", "gpu"]
        assert replace(sample, profiles={"default": sample.profiles["default"]}) == PlannerSettings()

    def test_shows_every_section(self) -> None:
        text = SAMPLE.read_text()
        assert [name for name in SECTIONS if f"\n{name}:" not in text and f"\n# {name}:" not in text] == []

    def test_shows_fragmentation_so_that_it_can_be_used(self, tmp_path: Path) -> None:
        before, _, after = SAMPLE.read_text().partition("    # fragmentation:\n")
        example, _, rest = after.partition("\n\n")
        lines = [line.replace("    # ", "    ", 1) for line in f"    # fragmentation:\n{example}".splitlines()]
        gpu = read(tmp_path, f"{before}{chr(10).join(lines)}\n\n{rest}").profiles["gpu"]
        assert gpu.fragmentation is not None
        assert [flavor.task.share for flavor in gpu.fragmentation.flavors.values()] == [250, 1000, 0]
        assert gpu.strategy.proportional == Proportional({"PGPU": {"VCPU": 8}}, exempt="own")


@pytest.mark.parametrize("value", ["-1", "101", "nan", "much"])
def test_near_equal_is_a_number_of_points(value: str) -> None:
    variables = {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://", "OS_RANKING__NEAR_EQUAL": value}
    with pytest.raises(ConfigurationError, match="near_equal"):
        load((), variables, search=False)


def test_the_options_reach_the_settings() -> None:
    variables = {
        "OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://",
        "OS_RANKING__ENABLED": "false",
        "OS_RANKING__NEAR_EQUAL": "0.5",
        "OS_PLANNER__ENABLED": "false",
    }
    settings = load((), variables, search=False)
    assert settings.ranking == RankingSettings(enabled=False, near_equal=0.5)
    assert not settings.planner_api.enabled


def test_names_are_a_section_or_a_file_of_their_own(tmp_path: Path) -> None:
    text = "names:\n  projects:\n    1f0c: research\n    2e1d: research\n    3c2b: web\n  users: {0a9b: Ann}\n"
    names = read(tmp_path, text).names
    write(tmp_path / "names.yaml", text)
    assert read(tmp_path, "names: names.yaml\n").names == names
    assert (names.project_id("web"), names.user_id("Ann"), names.project_id("1f0c")) == ("3c2b", "0a9b", "1f0c")
    assert names.project_id("research") == "research", "two have this name"
    assert names.projects_with("SEA", limit=5) == ["1f0c", "2e1d"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("names: nowhere.yaml\n", "nowhere.yaml cannot be read: No such file or directory."),
        ("names: {projekts: {}}\n", "line 1: names: expected one of the keys projects, users"),
        ("names: {users: {a: [b]}}\n", "line 1: names.users.a: expected a name of up to 255 characters"),
    ],
)
def test_wrong_names_are_told(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        read(tmp_path, text)
    assert sentence in told.value.message
