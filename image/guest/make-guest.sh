#!/bin/sh
# Makes what a virtual machine boots from, out of two unpacked Debian packages: make-guest.sh PACKAGES DIRECTORY
#
# PACKAGES has a kernel package and busybox-static, unpacked over one another. DIRECTORY gets `kernel` and `initramfs`.
set -eu
packages=$1 directory=$2
here=$(cd "$(dirname "$0")" && pwd)
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
cp "$here/init.sh" "$tree/init"
chmod 755 "$tree/init"
(cd "$tree" && find . | LC_ALL=C sort | "$busybox" cpio -o -H newc -R 0:0 2>/dev/null) | gzip -n >"$directory/initramfs"
cp "$(find "$packages" -path "*/boot/vmlinuz-$version")" "$directory/kernel"
rm -rf "$tree" "$kept"
