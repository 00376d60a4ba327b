"""Failures of commands, reported as one sentence."""

import click

from placement.errors import PlacementError


class PlainErrors(click.Group):
    """A command group that reports our own errors as one sentence."""

    def invoke(self, context: click.Context) -> object:
        """Run a subcommand."""
        try:
            return super().invoke(context)
        except PlacementError as error:
            raise click.ClickException(error.message) from error
