#!/bin/sh
# make-code.sh NODE DIRECTORY bundles the code of machines into a directory (bundle.ts) and fills Node's compile cache in
# `compile-cache`. The cache is valid only while the directory has this path.
set -eu
"$1" "${0%/*}/bundle.ts" "$2"
NODE_COMPILE_CACHE="$2/compile-cache" exec "$1" "$2/load-code.mjs"
