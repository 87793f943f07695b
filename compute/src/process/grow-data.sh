#!/bin/sh
# Inside a machine, as its root: lets the xfs at /data fill its disk. Nothing happens when it does already.
set -eu
while read -r _ _ device _ target _; do
  [ "$target" != /data ] || minor=${device#*:}
done </proc/self/mountinfo
# The machine has no node of the disk; xfs_growfs wants to see one.
node=/dev/loop$minor
[ -b "$node" ] || mknod -m 600 "$node" b 7 "$minor"
xfs_growfs /data >/dev/null
rm "$node"
