"""A weigher of nova-scheduler: the host that Placement ranks first gets the greatest weight.

The manual is docs/how-to/use-with-nova.md of placement-server. Nothing of a package ``placement`` is imported, because
in nova's environment that may be openstack-placement.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any

import nova.conf
from nova.scheduler import utils, weights
from nova.scheduler.client import report
from oslo_config import cfg
from oslo_log import log as logging
from placement_scores import BEST, BREAKS_PROPORTION, HAS_NO_ROOM, SCORES_PATH, OddAnswer, scores_body, weights_of

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

GROUP = "filter_scheduler"
OPTIONS = [
    cfg.FloatOpt(
        "placement_weight_multiplier",
        default=1.0,
        help="How much the weight from Placement counts: 100 points of a score count this much. An aggregate's "
        "metadata of the same name overrides it for the aggregate's hosts.",
    ),
    cfg.StrOpt(
        "placement_weight_profile",
        help="The profile of Placement's planner.yaml that scores the hosts. Unset: its default_profile, by which it "
        "also orders allocation candidates.",
    ),
    cfg.FloatOpt(
        "placement_weight_timeout",
        default=5.0,
        min=0.1,
        help="Seconds to wait for a connection to Placement, and for its answer; then all hosts weigh the same.",
    ),
]
CONF.register_opts(OPTIONS, group=GROUP)

QUIET_S = 60
"""Seconds between two warnings."""


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options, the entry point for oslo.config's sample generator."""
    return [(GROUP, OPTIONS)]


class ScoresRefused(Exception):
    """Placement answered with another status than 200."""


class PlacementWeigher(weights.BaseHostWeigher):
    """Weighs a host by the score of its first allocation candidate, which is the one that nova would claim.

    Weights are absolute: they are divided by 100, not spread over the hosts at hand. Whatever fails, all hosts weigh
    the same and nova goes on with its other weighers.
    """

    minval = 0.0
    maxval = BEST

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._quiet_until = 0.0

    def weight_multiplier(self, host_state: Any) -> float:
        """Return how much the weight counts on a host."""
        name = "placement_weight_multiplier"
        multiplier: float = utils.get_weight_multiplier(host_state, name, CONF[GROUP][name])
        return multiplier

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        raise NotImplementedError  # weigh_objects asks about all hosts at once

    def weigh_objects(self, weighed_obj_list: Sequence[Any], weight_properties: Any) -> list[float]:
        """Return the weight of each host.

        Args:
            weighed_obj_list: the hosts that passed the filters.
            weight_properties: nova's RequestSpec.
        """
        candidates = [_first_candidate(weighed.obj) for weighed in weighed_obj_list]
        sent = [candidate for candidate in candidates if candidate]
        if not sent:  # a rebuild: the instance stays where it is
            return [0.0] * len(candidates)
        try:
            scored = iter(_weights_from_placement(sent, weight_properties))
        except Exception as reason:  # no failure of Placement, whatever it is, may fail a boot
            self._warn(reason)
            return [0.0] * len(candidates)
        # nova skips hosts whose candidates were all removed by a filter.
        return [next(scored) if candidate else HAS_NO_ROOM + BREAKS_PROPORTION for candidate in candidates]

    def _warn(self, reason: Exception) -> None:
        """Log a warning, but not more than one each minute: every boot would repeat it."""
        with self._lock:
            if time.monotonic() < self._quiet_until:
                return
            self._quiet_until = time.monotonic() + QUIET_S
        LOG.warning(
            "Placement gave no scores, so all hosts weigh the same (not logged again for %d s): %s: %s",
            QUIET_S,
            type(reason).__name__,
            reason,
        )


def _first_candidate(host_state: Any) -> dict[str, Any] | None:
    """Return the allocation request that nova would claim on a host."""
    candidates = host_state.allocation_candidates
    return candidates[0] if candidates else None


def _weights_from_placement(candidates: Sequence[dict[str, Any]], request_spec: Any) -> list[float]:
    """Ask Placement once, through nova's own client, which has the endpoint, the credentials and the session."""
    options, context = CONF[GROUP], request_spec._context
    started = time.monotonic()
    # The client's own methods take no timeout, so its adapter is used.
    answer = report.report_client_singleton()._client.post(
        SCORES_PATH,
        json=scores_body(candidates, profile=options.placement_weight_profile),
        global_request_id=context.global_id if context else None,
        timeout=options.placement_weight_timeout,
        connect_retries=0,
        status_code_retries=0,
        raise_exc=False,
    )
    if answer.status_code != 200:
        raise ScoresRefused(f"POST {SCORES_PATH} answered {answer.status_code}: {answer.text[:200]}")
    try:
        document = answer.json()
    except ValueError as error:
        raise OddAnswer(f"POST {SCORES_PATH} answered 200, but not in JSON: {answer.text[:200]}") from error
    found = weights_of(document, number=len(candidates))
    LOG.debug(
        "Placement scored %d hosts by profile %s in %.0f ms",
        len(found),
        document.get("profile"),
        1000 * (time.monotonic() - started),
    )
    return found
