# Runs systemd as the first process of namespaces of this host, on its files. `$1` is a directory for what the test
# installs. Units of the host's own boot do not run: they would change the kernel that the host shares.
set -eu
mount -t tmpfs tmpfs /run
mkdir -p "$1/opt" "$1/state"
for each in etc bin; do
  case $each in etc) target=/etc ;; bin) target=/usr/local/bin ;; esac
  overlay=/run/overlay/$each
  mkdir -p "$overlay/upper" "$overlay/scratch"
  mount -t overlay overlay -o "lowerdir=$target,upperdir=$overlay/upper,workdir=$overlay/scratch" "$target"
done
mkdir -p /var/lib/holdfast
mount --bind "$1/opt" /opt
mount --bind "$1/state" /var/lib/holdfast
rm -rf /etc/systemd/system/*.wants
for target in sysinit basic local-fs sockets timers multi-user; do
  wants=/usr/lib/systemd/system/$target.target.wants
  [ ! -d "$wants" ] || mount -t tmpfs tmpfs "$wants"
done
ln -s ../systemd-journald.service /usr/lib/systemd/system/sysinit.target.wants/
ln -s /dev/null /etc/systemd/system/systemd-remount-fs.service
cat > /etc/systemd/system/holdfast-test.target <<'END'
[Unit]
Requires=basic.target multi-user.target
END
groups=$(awk '$3 == "cgroup" { print $4 }' /proc/self/mounts | tr ',' '\n' | grep -xE 'cpu|cpuacct|memory|pids|devices' || true)
mount -t tmpfs tmpfs /sys/fs/cgroup
if [ -n "$groups" ]; then
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  for group in $groups; do
    mkdir "/sys/fs/cgroup/$group"
    mount -t cgroup -o "$group" cgroup "/sys/fs/cgroup/$group"
  done
else
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
export container=holdfast
exec /lib/systemd/systemd --unit=holdfast-test.target
