#!/bin/sh
# Makes what a virtual machine boots from, out of two unpacked Debian packages: make-guest.sh PACKAGES DIRECTORY
#
# PACKAGES has a kernel package and busybox-static, unpacked over one another. DIRECTORY gets `kernel` and `initramfs`. The
# init is behind the last line of this script (guest-boot.ts puts it there), so that one text decides all that is made.
set -eu
packages=$1 directory=$2
busybox=$(find "$packages" -path '*/bin/busybox' -type f | head -n 1)
version=$(basename "$(find "$packages" -path '*/modules/*' -maxdepth 4 -mindepth 3 -type d -name '[0-9]*' | head -n 1)")
modules=$(dirname "$(find "$packages" -type d -path "*/modules/$version" | head -n 1)")/$version

tree=$directory/tree
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/lib/modules/$version"
cp "$busybox" "$tree/bin/busybox"
for applet in $("$busybox" --list); do
  [ "$applet" = busybox ] || ln -s busybox "$tree/bin/$applet"
done
# Those that init.sh asks for, and what they need; not compressed, so that nothing is done twice at each start.
cp -R "$modules/kernel" "$modules"/modules.* "$tree/lib/modules/$version"
find "$tree/lib/modules" -name '*.ko.xz' -exec "$busybox" unxz {} +
"$busybox" depmod -b "$tree" "$version"
wanted='virtio_blk virtio_net squashfs overlay xfs button evdev'
kept=$directory/kept
: >"$kept"
for module in $wanted; do
  sed -n "s,^\(kernel/[^:]*/$module\.ko\): *\(.*\)$,\1 \2,p" "$tree/lib/modules/$version/modules.dep" | tr ' ' '\n' >>"$kept"
done
(cd "$tree/lib/modules/$version" && find kernel -name '*.ko' | grep -vxF -f "$kept" | xargs rm -f)
"$busybox" depmod -b "$tree" "$version"
sed '1,/^# init:$/d' "$0" >"$tree/init"
chmod 755 "$tree/init"
find "$tree" -exec touch -h -d @0 {} +
(cd "$tree" && find . | LC_ALL=C sort | "$busybox" cpio -o -H newc -R 0:0 --ignore-devno --renumber-inodes 2>/dev/null) | gzip -n >"$directory/initramfs"
cp "$(find "$packages" -path "*/boot/vmlinuz-$version")" "$directory/kernel"
rm -rf "$tree" "$kept"
exit
# init:
