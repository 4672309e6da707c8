"""Errors a person can act on, each class with the exit code it ends the program with.

Anything else is an unexpected error, and ends it with 70.
"""

from __future__ import annotations

from coldrun.tasks.lib.concealment import conceal


class ColdrunError(Exception):
    """Base of every error that coldrun reports in one line.

    The message says what was expected, what was found and what to do next.
    """

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(conceal(message))


class UsageError(ColdrunError):
    """Wrong arguments, configuration or input data."""


class ConfigError(UsageError):
    """The configuration file cannot be read or says something impossible."""


class RepositoryError(UsageError):
    """A repository, revision or range that cannot be used."""


class PanelError(UsageError):
    """A panel whose contents cannot be used."""


class LockError(UsageError):
    """A lock that is missing, or that does not fit the panel or the configuration."""


class EditedError(LockError):
    """A file that coldrun wrote was edited by hand."""

    exit_code = 5


class StorageError(ColdrunError):
    """The warehouse or scratch folder cannot be written or is in use."""


class PointError(ColdrunError):
    """A product that could not be fetched, verified or set up at a commit."""

    exit_code = 5


class InvalidRunError(ColdrunError):
    """A run whose rows must not be read as a measurement."""

    exit_code = 5


class LedgerError(ColdrunError):
    """A holdout ledger whose chain of hashes is broken."""

    exit_code = 5
