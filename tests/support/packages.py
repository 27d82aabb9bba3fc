# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Packages of the distribution, which belong to its own interpreter."""
import importlib
import os
import sys

DISTRIBUTION = "/usr/bin/python3"


def needed(*names):
    """Runs the script again by the distribution's interpreter if this one lacks one of the packages."""
    try:
        for name in names:
            importlib.import_module(name)
    except ImportError:
        if sys.executable == DISTRIBUTION or not os.path.exists(DISTRIBUTION):
            raise
        os.execv(DISTRIBUTION, [DISTRIBUTION, *sys.argv])
