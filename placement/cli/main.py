"""The command ``placement`` and its subcommands."""

import importlib

import click

from placement import __version__
from placement.cli.output import PlainErrors

COMMANDS = {
    "serve": ("placement.cli.serve:serve", "Serve the API."),
    "demo": ("placement.cli.demo:demo", "Demonstrate the server on a small cloud."),
    "explain": ("placement.cli.questions:explain", "Explain why there are no allocation candidates."),
    "headroom": (
        "placement.cli.questions:headroom",
        "Count how many more copies of a request, or of each flavor, fit.",
    ),
    "flavors": ("placement.cli.planner:flavors", "Convert nova's flavors to requests."),
    "fair-share": ("placement.cli.fair_share:fair_share", "Show how resources are shared among projects."),
    "journal": ("placement.cli.journal:journal", "Show who changed what and when."),
    "host": ("placement.cli.hosts:host", "Show hosts, take them out of service and back, and remove them."),
    "aggregate": ("placement.cli.hosts:aggregate", "Move hosts between aggregates."),
    "audit": ("placement.cli.audit:audit", "Find orphaned allocations and overcommitted providers."),
    "openapi": ("placement.openapi.page:openapi", "Print the API reference as an OpenAPI document."),
    "docs": ("placement.cli.docs:docs", "Write the reference pages, as Markdown or as man pages."),
    "simulate": ("placement.cli.simulate:simulate", "Compare orders of candidates on a synthetic workload."),
    "names": ("placement.cli.planner:names", "Import the names of projects and users."),
    "planner": ("placement.cli.planner:planner", "Check or import a planner file."),
    "db": ("placement.cli.db:db", "Manage the database."),
}
"""Location and summary of each subcommand, so that listing them imports none."""


class LazyGroup(PlainErrors):
    """A group that imports a subcommand only when it runs."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return list(COMMANDS)

    def get_command(self, _context: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="placement")
def main() -> None:
    """Run or try a server of the OpenStack Placement API.

    "placement demo" demonstrates it; "placement serve" runs it.
    """
