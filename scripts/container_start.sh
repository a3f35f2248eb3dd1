#!/bin/sh
# The start of the container: a server that others can reach has no key that everybody knows.
set -eu
if [ "${1:-}" = serve ]; then
  : "${ASTERISM_KEY:?is missing; set it to a key of your own, for example: head -c 64 /dev/urandom | base64 -w 0}"
  # Without it, tables would have the development account with its public key.
  export ASTERISM_TABLE_ACCOUNT="${ASTERISM_TABLE_ACCOUNT:-asterism:$ASTERISM_KEY}"
fi
exec asterism "$@"
