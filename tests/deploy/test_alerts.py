"""The sample of alerting rules, with Prometheus's own tool; tests/api/test_metrics.py shows that the metrics exist."""

import subprocess
from pathlib import Path

from tests.deploy.programs import program

RULES = Path(__file__).parents[2] / "etc/prometheus/alerts.yaml"
CASES = Path(__file__).with_name("alerts_test.yaml")


def test_a_healthy_server_raises_no_alert_and_each_fault_its_own() -> None:
    promtool = program("promtool", "prometheus")
    subprocess.run([promtool, "check", "rules", RULES], check=True)
    subprocess.run([promtool, "test", "rules", CASES], check=True)
