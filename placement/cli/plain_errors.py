"""Failures of commands, reported as one sentence."""

import click

from placement.errors import PlacementError


class PlainErrors(click.Group):
    """A command group that reports our own errors, and files that cannot be used, as one sentence."""

    def invoke(self, context: click.Context) -> object:
        """Run a subcommand."""
        try:
            return super().invoke(context)
        except PlacementError as error:
            raise click.ClickException(error.message) from error
        except OSError as error:
            if error.filename is None:  # not about a file: click itself ends quietly if a pipe is closed
                raise
            raise click.ClickException(f"{error.filename} cannot be used: {error.strerror}.") from error
