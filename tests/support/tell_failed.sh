# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Read by bash before each test script (BASH_ENV): the command that ends a script with `set -e` is named, for many print nothing.
case $0 in
  *_test.sh)
    trap 'echo "$0:$LINENO: ended with $?: $BASH_COMMAND" >&2' ERR
    unset BASH_ENV
    ;;
esac
