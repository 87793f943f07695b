#!/bin/sh
# First process of a machine's namespaces: makes the machine's root, goes there and becomes the keeper. Each command here
# is a millisecond of every start, so the mounts are one: a table in the format of fstab(5), written by the provider.
#
#   MACHINE_MOUNTS  the table, with targets below the machine's root
#   MACHINE_OWNER   uid:gid of the engine; empty without root
#   MACHINE_GROW    "yes": the file system of /data is to fill its disk
set -eu

# The host's /proc still shows here, and with it this process as the host knows it.
read -r stat </proc/self/stat
after_name=${stat##*) }
echo "init ${stat%% *} $(set -- $after_name; echo "${20}")" >>"$MACHINE_RUN"

root=$MACHINE_DIR/root
mount -t tmpfs -o mode=755 machine "$root"
cd "$root"
mkdir -p usr etc proc dev sys/fs/cgroup/cpu sys/fs/cgroup/memory sys/fs/cgroup/cpuacct run/holdfast var/lib/holdfast data holdfast/checkout holdfast/node holdfast/code
mkdir -m 1777 dev/shm tmp var/tmp
ln -s usr/bin usr/sbin usr/lib usr/lib64 .
: >dev/null >dev/zero >dev/full >dev/random >dev/urandom
mount --all --fstab "$MACHINE_MOUNTS" --target-prefix .

[ -z "$MACHINE_OWNER" ] || chown "$MACHINE_OWNER" data

# The old root comes to lie over the new one, and goes: pivot_root(2) has this way. A chroot would forbid the user
# namespaces that engines may need.
pivot_root . .
umount --lazy .
cd /
[ "$MACHINE_GROW" != yes ] || sh /holdfast/checkout/compute/src/process/grow-data.sh

(echo up >&3) 2>/dev/null || :
exec 3>&-
exec env -i "$@"
