#!/usr/bin/env bash
# Makes the picture of the README anew: a simulated host that has hung for hours, looked at in a terminal of 120x40.
# (A recording draws itself: specdash replay FILE --screenshot OUT.svg; it has no keys that act.)
set -euo pipefail
cd "$(dirname "$0")"
specdash=${SPECDASH:-specdash}
work=$(mktemp -d); trap 'kill "$sim" 2>/dev/null; rm -rf "$work"' EXIT
"$specdash" sim --scenario zombie >"$work/sim.json" 2>/dev/null & sim=$!
until [ -s "$work/sim.json" ]; do sleep 0.1; done
config=$(sed -n 's/.*"ssh_config": "\([^"]*\)".*/\1/p' "$work/sim.json")
# Textual draws its own screen after so many seconds and leaves.
export TEXTUAL_SCREENSHOT=15 TEXTUAL_SCREENSHOT_LOCATION=. TEXTUAL_SCREENSHOT_FILENAME=stalled.svg
export XDG_STATE_HOME=$work XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work TERM=xterm-256color COLORTERM=truecolor
script -qec "stty cols 120 rows 40; '$specdash' connect gpubox --ssh-config '$config'" /dev/null >/dev/null
