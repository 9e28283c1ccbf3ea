#!/usr/bin/env bash
# Makes the pictures of the README anew: a simulated host is recorded, then drawn by the screens themselves.
set -euo pipefail
cd "$(dirname "$0")"
specdash=${SPECDASH:-specdash}
work=$(mktemp -d); trap 'kill "$sim" 2>/dev/null; rm -rf "$work"' EXIT
"$specdash" sim --scenario zombie >"$work/sim.json" 2>/dev/null & sim=$!
until [ -s "$work/sim.json" ]; do sleep 0.1; done
config=$(sed -n 's/.*"ssh_config": "\([^"]*\)".*/\1/p' "$work/sim.json")
timeout 40 "$specdash" connect gpubox --ssh-config "$config" --plain --record "$work/night.specdash.gz" >/dev/null 2>&1 || true
"$specdash" replay "$work/night.specdash.gz" --screenshot stalled.svg --size 120x40 --at 12
