#!/bin/sh
# Creates the code of keeper and agent in a directory: make-code.sh NODE DIRECTORY. bundle.ts bundles it; `compile-cache`
# has Node's compilation, which is valid only while the directory has this path.
set -eu
"$1" "${0%/*}/bundle.ts" "$2"
NODE_COMPILE_CACHE="$2/compile-cache" exec "$1" "$2/load-code.mjs"
