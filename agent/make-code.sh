#!/bin/sh
# Makes the code of machines in a directory: make-code.sh NODE DIRECTORY. Bundled (bundle.ts), and what Node compiled of it
# in `compile-cache`, which holds for this path of the directory only.
set -eu
"$1" "${0%/*}/bundle.ts" "$2"
NODE_COMPILE_CACHE="$2/compile-cache" exec "$1" "$2/load-code.mjs"
