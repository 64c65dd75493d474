# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, each with one line for people and the exit code that a supervisor understands."""


class Error(Exception):
    """Of this package. `exit_code`: for sys.exit, as the program's own: 2 bad use, 1 failed work, 75 start me again."""

    exit_code = 1


class BadUse(Error):
    """The config or an argument cannot be, or a call came out of order."""

    exit_code = 2


class Refused(Error):
    """The rank's process does not take this process, or this question."""

    exit_code = 2


class BadFormat(Error):
    """Bytes of a micro batch that do not add up."""


class Lost(Error):
    """The rank's process is gone, or the run has failed: nothing more comes. With `restart` the run goes on, and this
    process is to be started again."""

    def __init__(self, reason: str, *, restart: bool) -> None:
        super().__init__(reason)
        self.restart = restart
        self.exit_code = 75 if restart else 1
