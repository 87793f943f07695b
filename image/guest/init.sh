#!/bin/sh
# First process of a virtual machine, out of its initramfs: puts the machine together from its disks, starts its first
# program, and turns the machine off when that has ended. The kernel's command line is its environment, and the first program
# its arguments. It does for a guest what Incus and LXC do for a container.
set -eu
path=$PATH
export PATH=/bin

# Nothing can follow: a machine that cannot start is one that is off.
off() {
  sync
  umount -r -a -t xfs 2>/dev/null || true
  poweroff -f
}
trap off EXIT

mkdir -p /proc /sys /dev /run /image /disk /machine /data /state
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in virtio_blk virtio_net squashfs overlay xfs button evdev; do
  modprobe "$module"
done

# disk NAME: the block device that Incus has under this name.
disk() {
  for tries in 1 2 3 4 5 6 7 8 9 10; do
    for block in /sys/block/vd*; do
      if [ "$(cat "$block/serial")" = "incus_$1" ]; then
        echo "/dev/${block##*/}"
        return
      fi
    done
    sleep 1
  done
  echo "disk $1 is missing" >&2
  return 1
}

# own NAME DIRECTORY: mounts a disk of the machine's own, and makes its file system first when it has none.
own() {
  device=$(disk "$1")
  [ "$(head -c 4 "$device")" = XFSB ] || chroot /image /usr/sbin/mkfs.xfs -q "$device"
  # As diskMountOptions in data-disk.ts: a file that grows allocates little beyond its end.
  mount -t xfs -o noatime,nosuid,nodev,allocsize=256k "$device" "$2"
}

mount -t squashfs -o ro "$(disk image)" /image
mount -t devtmpfs devtmpfs /image/dev
mount -t proc proc /image/proc
own root /disk
# Another plan may have let it grow; one that did not is as good as before.
mount -o bind /disk /image/mnt
chroot /image /usr/sbin/xfs_growfs /mnt >/dev/null || echo "the root did not grow" >&2
umount /image/mnt
own state /state
own data /data
umount /image/dev /image/proc

# What was written over another image is nothing to this one.
for layer in /disk/*; do
  [ "$layer" = "/disk/$HOLDFAST_IMAGE" ] || rm -rf "$layer"
done
layer=/disk/$HOLDFAST_IMAGE
mkdir -p "$layer/upper" "$layer/work"
mount -t overlay -o "lowerdir=/image,upperdir=$layer/upper,workdir=$layer/work,noatime" root /machine

engine=$HOLDFAST_MACHINE_UID agent=$HOLDFAST_AGENT_UID
cat /image/etc/passwd - >/machine/etc/passwd <<USERS
holdfast:x:$engine:$engine::/data:/bin/sh
holdfast-agent:x:$agent:$engine::/var/lib/holdfast:/bin/sh
USERS
echo "${HOLDFAST_RESOLVERS:-}" | tr , '\n' | sed -n 's/^./nameserver &/p' >/machine/etc/resolv.conf

mkdir -p /machine/holdfast/node /machine/holdfast/code
for part in node code; do
  mount -t squashfs -o ro,nosuid,nodev "$(disk $part)" "/machine/holdfast/$part"
done
mount -t proc proc /machine/proc
mount -t sysfs -o ro sysfs /machine/sys
mount -t devtmpfs -o nosuid devtmpfs /machine/dev
mkdir -p /machine/dev/pts /machine/dev/shm
mount -t devpts -o nosuid,noexec,mode=620 devpts /machine/dev/pts
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /machine/dev/shm
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /machine/run
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /machine/tmp
ln -sf /proc/self/fd /machine/dev/fd

# /data is a directory of its disk, as in a container. The disk may have grown since it was made.
mkdir -p /data/data
[ "$(stat -c %u /data/data)" = "$engine" ] || { chmod 700 /data/data && chown "$engine:$engine" /data/data; }
mount -o bind /data/data /machine/data
mount -o bind /state /machine/var/lib/holdfast
chown "$agent:$engine" /state
chmod 700 /state
cat >/bin/fill-disk <<'FILL'
#!/bin/sh
chroot /machine /usr/sbin/xfs_growfs /data >/dev/null
stat -f -c 'data: %b blocks of %S' /data >/dev/console
FILL
chmod 755 /bin/fill-disk
fill-disk
# The host writes an enrolment on this disk whenever it brings one; whoever reads it reads what is there now.
enrollment=$(disk enrollment)
chown "$agent:$engine" "$enrollment" "/machine$enrollment"
chmod 400 "$enrollment"
ln -sfn "$enrollment" /state/enrollment.json

ip link set lo up
ip link set eth0 up
ip address add "$HOLDFAST_ADDRESS/32" dev eth0
[ -z "${HOLDFAST_PUBLIC_ADDRESS:-}" ] || ip address add "$HOLDFAST_PUBLIC_ADDRESS/32" dev eth0
ip route add "$HOLDFAST_GATEWAY" dev eth0
ip route add default via "$HOLDFAST_GATEWAY" src "$HOLDFAST_ADDRESS"

# The kernel tells of a disk that has grown.
cat >/bin/on-event <<'EVENT'
#!/bin/sh
[ "${RESIZE:-}" != 1 ] || fill-disk
EVENT
# The host asks a guest to end by its power button.
mkdir -p /etc/acpi/PWRF
cat >/etc/acpi/PWRF/00000080 <<'BUTTON'
#!/bin/sh
kill -TERM "$(cat /run/first)"
BUTTON
chmod 755 /bin/on-event /etc/acpi/PWRF/00000080
uevent /bin/on-event </dev/null >/dev/null 2>&1 &
acpid -f -c /etc/acpi -l /dev/null </dev/null >/dev/null 2>&1 &

# Nobody else sets its clock, which stands still while the guest is paused. The hardware's is the host's, in whole seconds.
keep_time() {
  while sleep 5; do
    off=$(($(cat "$1") - $(date +%s)))
    [ "$off" -lt -1 ] || [ "$off" -gt 1 ] || continue
    second=$(cat "$1")
    while [ "$(cat "$1")" = "$second" ]; do usleep 10000; done
    date -u -s "@$(cat "$1")" >/dev/null
    echo "clock: moved by $off s"
  done
}
keep_time /sys/class/rtc/rtc0/since_epoch </dev/null &

# A group of its own, as a container has one: it counts what the machine uses, and ends it where the guest's memory does.
mkdir /groups
mount -t cgroup2 cgroup2 /groups
echo '+cpu +io +memory +pids' >/groups/cgroup.subtree_control
mkdir /groups/machine
sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1K/p' /proc/meminfo >/groups/machine/memory.max
echo 8192 >/groups/machine/pids.max
mount -o bind /groups/machine /machine/sys/fs/cgroup
mount -o remount,bind,ro /machine/sys/fs/cgroup

(
  echo 0 >/groups/machine/cgroup.procs
  exec chroot /machine /usr/bin/env "PATH=$path" /usr/bin/tini -s -- "$@"
) </dev/null &
first=$!
echo "$first" >/run/first
status=0
wait "$first" || status=$?
echo "the first program ended with $status"
