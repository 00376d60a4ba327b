"""The database to use when nothing is configured."""

from dataclasses import replace

from platformdirs import user_data_path

from placement.settings.values import DatabaseSettings, Settings


def with_own_database(settings: Settings) -> Settings:
    """Return the settings, with a persistent SQLite file in the user's data directory if they name no database.

    ``load`` leaves the database unset only if nothing at all is configured. The file is created and migrated when it is
    opened.
    """
    if settings.database.connection:
        return settings
    file = user_data_path("placement", ensure_exists=True) / "placement.sqlite"
    return replace(settings, database=DatabaseSettings(connection=f"sqlite:///{file}", sync_on_startup=True))
