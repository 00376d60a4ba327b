"""``placement fair-share``: the tree of fair shares, with bars."""

import json
from typing import Any

import click

from placement.api.planner.fair_share_json import tree_json
from placement.cli.configuration import configured, readable, settings_of
from placement.cli.fair_share_text import tree_text
from placement.cli.http_client import Client, server_options
from placement.cli.output import available_width
from placement.services.fair_share.shares import all_shares
from placement.services.fair_share.usage_cache import UsageCache

PATH = "/planner/v1/fair-share"


@click.command()
@server_options()
@configured
@click.pass_context
def fair_share(context: click.Context, *, url: str | None, token: str, as_json: bool) -> None:
    """Show how resources are shared among projects, compared with their shares in planner.yaml.

    With --url, ask a server; otherwise read the configured database, which may also belong to a running
    openstack-placement, with the tree in this machine's planner.yaml.
    """
    document = Client(url, token=token)("GET", PATH) if url is not None else _read(context)
    lines = [json.dumps(document, indent=2)] if as_json else tree_text(document, width=available_width())
    for line in lines:
        click.echo(line)


def _read(context: click.Context) -> Any:
    settings = settings_of(context)
    fair = settings.planner.fair_share
    with readable(settings) as database:
        return tree_json(all_shares(database, UsageCache(fair)), fair)
