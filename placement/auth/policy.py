"""What callers may do: oslo.policy rules with the operator's policy.yaml, evaluated fast and reloaded atomically."""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from placement.domain.identity import Identity
from placement.errors import ConfigurationError, Forbidden
from placement.settings import Settings
from placement.settings.loading import read

if TYPE_CHECKING:
    from oslo_policy.policy import Enforcer

    from placement.auth.rules import Operations

LOG = logging.getLogger(__name__)

LOOK_FOR_FILES_EVERY_S = 1.0
MAX_DECISIONS = 4096
NO_TARGET: Mapping[str, Any] = MappingProxyType({})

Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _LoadedRules:
    """The rules as loaded at one time, with cached decisions of those that depend on roles only."""

    enforcer: "Enforcer"
    paths: tuple[str, ...]
    stamp: Stamp
    role_rules: frozenset[str]
    decisions: dict[tuple[str, tuple[str, ...]], bool] = field(default_factory=dict)


class Policy:
    """Decides whether callers pass rules.

    oslo.policy is imported by the first check or by ``prepare``. Its own reloading is not used: it looks at the files
    on every check, which costs twice the check itself, and other threads miss rules while it refills them. Here a
    change of the files leads to a new set of rules, which replaces the old one at once.
    """

    def __init__(
        self, settings: Settings, operations: "Operations", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._operations = operations
        self._clock = clock
        self._lock = threading.Lock()
        self._rules: _LoadedRules | None = None
        self._look_again_at = 0.0

    def prepare(self) -> None:
        """Load the rules now; raises ConfigurationError if a policy file is unusable."""
        self._current()

    def authorize(self, rule: str, identity: Identity, target: Mapping[str, Any] = NO_TARGET) -> None:
        """Raise Forbidden unless the caller passes the rule for the target (by default, the caller's own project)."""
        if not self._allows(rule, identity, target):
            raise Forbidden(f"Policy does not allow {rule} to be performed.")

    def _allows(self, rule: str, identity: Identity, target: Mapping[str, Any]) -> bool:
        if identity.system_scope or identity.domain_id:
            return False  # all rules of this API have project scope
        rules = self._current()
        if rule not in rules.role_rules:
            return _ask(rules.enforcer, rule, identity, target)
        decision = rules.decisions.get((rule, identity.roles))
        if decision is None:
            decision = _ask(rules.enforcer, rule, identity, target)
            if len(rules.decisions) >= MAX_DECISIONS:
                rules.decisions.clear()
            rules.decisions[rule, identity.roles] = decision
        return decision

    def _current(self) -> _LoadedRules:
        rules = self._rules
        if rules is not None and not self._is_stale(rules):
            return rules
        with self._lock:
            if self._rules is None:
                source = self._settings.source
                operations = self._operations
                self._rules = _defaults(operations) if source is None else _load(source, operations)
            elif self._rules is rules:  # no other thread was faster
                self._rules = _reload(rules, self._operations)
            return self._rules

    def _is_stale(self, rules: _LoadedRules) -> bool:
        """Tell whether a file has changed since; from time to time, also whether files were added or removed."""
        now = self._clock()
        if now < self._look_again_at:
            return _stamp(rules.paths) != rules.stamp
        self._look_again_at = now + LOOK_FOR_FILES_EVERY_S
        return _stamp(_policy_paths(rules.enforcer.conf)) != rules.stamp


@cache
def _defaults(operations: "Operations") -> _LoadedRules:
    """Return the rules without any configuration, cached because loading them is half the cost of an application."""
    return _load(read(environ={}, search=False), operations)


def _load(source: cfg.ConfigOpts, operations: "Operations") -> _LoadedRules:
    try:
        return _read_rules(source, operations)
    except Exception as error:
        # A policy file that is not YAML, or not a mapping, raises one of many exceptions.
        raise ConfigurationError(f"The policy files cannot be used: {error}") from error


def _reload(old: _LoadedRules, operations: "Operations") -> _LoadedRules:
    """Return new rules, or the old ones if the files are invalid: a typo must not stop a running server."""
    source = old.enforcer.conf
    paths = _policy_paths(source)
    stamp = _stamp(paths)
    try:
        rules = _read_rules(source, operations)
    except Exception:
        LOG.exception("The policy files have changed but are not valid; the previous rules stay in force")
        return replace(old, paths=paths, stamp=stamp)
    LOG.info("The policy files have changed; the new rules are in force")
    return rules


def _read_rules(source: cfg.ConfigOpts, operations: "Operations") -> _LoadedRules:
    made = enforcer_for(source, operations)
    paths = _policy_paths(source)
    stamp = _stamp(paths)  # before reading the files, so that the next check notices a change in between
    made.load_rules()
    made.use_conf = False  # never looks at files again
    texts = {name: str(check) for name, check in made.rules.items()}
    return _LoadedRules(made, paths, stamp, frozenset(name for name in texts if _is_about_roles(name, texts)))


def enforcer_for(source: cfg.ConfigOpts, operations: "Operations") -> "Enforcer":
    """Return an enforcer of the rules, which has read no files yet."""
    # Large, so imported on first use.
    from oslo_policy.policy import Enforcer  # noqa: PLC0415

    from placement.auth.rules import rules_for  # noqa: PLC0415

    made = Enforcer(source)
    # The defaults have all changed once; a warning for each would help nobody.
    made.suppress_default_change_warnings = True
    made.register_defaults(rules_for(operations))
    return made


def _ask(enforcer: "Enforcer", rule: str, identity: Identity, target: Mapping[str, Any]) -> bool:
    own = {"project_id": identity.project_id, "user_id": identity.user_id}
    # The names of the attributes are those that rules use; rules search lists, but not tuples.
    credentials = {name: [*value] if isinstance(value, tuple) else value for name, value in asdict(identity).items()}
    return bool(enforcer.authorize(rule, dict(target) or own, credentials))


def _policy_paths(source: cfg.ConfigOpts) -> tuple[str, ...]:
    """Return the existing policy files and directories that rules are read from."""
    files = (source.find_file(name) for name in (source.oslo_policy.policy_file, *source.oslo_policy.policy_dirs))
    paths: list[str] = []
    for path in filter(None, files):
        paths.append(path)
        if Path(path).is_dir():
            paths.extend(str(child) for child in sorted(Path(path).iterdir()))
    return tuple(paths)


def _stamp(paths: tuple[str, ...]) -> Stamp:
    stamps = []
    for path in paths:
        try:
            status = Path(path).stat()
        except OSError:
            continue
        stamps.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(stamps)


PARTS_ABOUT_ROLES = re.compile(r"\(|\)|and|or|not|@|!|role:[^%\s()]+|rule:(?P<rule>[^%\s()]+)")


def _is_about_roles(name: str, texts: Mapping[str, str], above: frozenset[str] = frozenset()) -> bool:
    """Tell whether a rule depends on nothing but the caller's roles, so that its outcome can be cached."""
    if name in above or name not in texts:
        return False
    for part in texts[name].replace("(", " ( ").replace(")", " ) ").split():
        match = PARTS_ABOUT_ROLES.fullmatch(part)
        if match is None:
            return False
        if match["rule"] and not _is_about_roles(match["rule"], texts, above | {name}):
            return False
    return True


def policy_file(settings: Settings) -> str | None:
    """Return the path of the operator's policy file, or None if there is none."""
    # Large, so imported on use.
    from oslo_policy.policy import Enforcer  # noqa: PLC0415

    source = read(environ={}, search=False) if settings.source is None else settings.source
    path: str | None = source.find_file(Enforcer(source).policy_file)
    return path
