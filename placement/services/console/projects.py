"""One project: what it holds in total, and on which hosts."""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.domain.names import UNTYPED
from placement.services.console.lists import Excerpt
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import projects as store
from placement.store.console.projects import ProjectHost

__all__ = ["ProjectHost", "ProjectStanding", "project_standing"]


@dataclass(frozen=True, slots=True)
class ProjectStanding:
    """What a project holds of each class, its consumers by type, and a page of the trees they are on."""

    sums: Mapping[str, int]
    consumers: Mapping[str, int]
    hosts: Excerpt[ProjectHost]


@reads_anywhere
def project_standing(tx: Transaction, project: str, *, with_hosts: bool, first: int, most: int) -> ProjectStanding:
    """Return what a project holds, which may be nothing. Not everybody who may see sums may see hosts."""
    hosts = store.hosts_of_project(tx, project, first=first, most=most + 1) if with_hosts else []
    types = {name or UNTYPED: count for name, count in store.consumers_by_type(tx, project).items()}
    return ProjectStanding(store.held_by_project(tx, project), types, Excerpt(hosts[:most], len(hosts) > most, None))
