#!/bin/sh
# Removes a test's installation when the test's process ends for any reason: standard input is a pipe from that process.
# Kills every process that names the data directory in arguments or environment, then removes the directory; then the
# same for the directory of its Incus, with its objects on the host's network. That directory is removed last, as it
# reserves the installation's number.
read -r _ || :

# Matches the end of the name too: number 20 is not number 200.
end_all_of() {
  path="$1([^[:alnum:]]|\$)"
  # Repeats until a round finds none: a killed process may have started another.
  for round in 1 2 3 4 5 6 7 8 9 10; do
    found=
    for file in $(grep -laE -- "$path" /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null); do
      pid=${file#/proc/}
      pid=${pid%%/*}
      [ "$pid" = "$$" ] || ! kill -9 "$pid" 2>/dev/null || found=1
    done
    [ -n "$found" ] || break
    sleep 0.1
  done
  for mount in $(grep -E " $path" /proc/mounts | cut -d' ' -f2 | sort -r); do
    # A frozen file system would block its processes, and the unmount.
    fsfreeze --unfreeze "$mount" 2>/dev/null
    umount "$mount"
  done
}

case $1 in
  /var/lib/holdfast/incus-*) number=${1##*-} ;;
  *) number=$(tr -d '\n' <"$1/installation.json" 2>/dev/null |
    sed -n '/"provider": "incus"/s/.*"loopback_block": "127\.\([0-9]*\)".*/\1/p') ;;
esac
end_all_of "$1"
[ "$1" = "/var/lib/holdfast/incus-$number" ] || rm -rf "$1"
[ -n "$number" ] || exit 0
end_all_of "/var/lib/holdfast/incus-$number"
for link in /sys/class/net/hf"$number"-*; do
  [ ! -e "$link" ] || ip link delete "${link##*/}"
done
ip address delete "10.$number.0.1/32" dev lo 2>/dev/null
for table in "holdfast_$number" "holdfast_cut_$number"; do nft delete table inet "$table" 2>/dev/null; done
rm -rf "/var/lib/holdfast/incus-$number"
rmdir /var/lib/holdfast 2>/dev/null
exit 0
