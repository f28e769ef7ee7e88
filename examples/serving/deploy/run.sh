#!/bin/sh
# Starts one rank. Read by countermark, which runs nothing of it.
set -eu
profile=${1:-profiles/dflash.yaml}
exec /opt/engine/serve \
  --profile "$profile" \
  --pagestore-commit 27dfe854627c6eb5f0908d84297772e96b883aaf \
  --port 8000
