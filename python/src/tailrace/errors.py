# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The errors of this package. Each text says what failed, on what, and what to do."""


class TailraceError(Exception):
    """The base of all errors of this package."""


class FormatError(TailraceError):
    """A file is damaged, cut short, or not what it should be."""


class StateError(TailraceError):
    """A file was replaced, cut back or removed since it was looked at, or two files contradict each other."""


class UnsupportedError(TailraceError):
    """The file is sound, but this version, or a package that is not installed, cannot read it."""


class SettingsError(TailraceError, ValueError):
    """A pattern, a time or an option is not valid."""


class NotThereError(TailraceError, KeyError):
    """There is no such field, step, item or copy."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""
