/**
 * Shell scripts of containers. The keeper runs each as root of the container's user namespace, in a new mount namespace
 * that ends with it. All values are arguments, variables or standard input.
 */

/** Address at which a container's network resolves names; pasta forwards the queries to the machine's resolvers. */
const resolverAddress = "169.254.53.53";

/** Line that separates the output of programs from the configuration of the image. */
export const configMark = "--- image configuration ---";

/** Line of an image that names no command; umoci writes a shell for it. */
export const noCommandMark = "--- no command ---";

/** Line after the reason for which an image can never be unpacked. */
export const refusedMark = "--- image refused ---";

/**
 * Pulls an image by its digest and unpacks it, unless the release was unpacked before; then prints the configuration.
 * Arguments: directory of containers, id of the release, image. AUTHORITIES: certificates of the registry's
 * authorities. Standard input: credentials for skopeo.
 */
export const unpackScript = `set -eu
cd "$1"
mount -t tmpfs -o mode=700,size=4m run /run
mkdir /run/authorities
cat >/run/credentials.json
[ -z "$AUTHORITIES" ] || printf '%s' "$AUTHORITIES" >/run/authorities/ca.crt
if [ ! -d "releases/$2" ]; then
  rm -rf tmp
  mkdir -p tmp releases
  export HOME=/run XDG_RUNTIME_DIR=/run TMPDIR="$1/tmp"
  skopeo --insecure-policy --tmpdir "$1/tmp" copy --quiet --src-authfile /run/credentials.json \\
    --src-cert-dir /run/authorities "docker://$3" "oci:images:$2"
  # A program that was killed refuses nothing.
  umoci unpack --image "images:$2" tmp/release || { code=$?; [ $code -ge 128 ] || echo "${refusedMark}"; exit $code; }
  words=$(skopeo inspect --config --format '{{len .Config.Entrypoint}}{{len .Config.Cmd}}' "oci:images:$2")
  [ "$words" != 00 ] || : >tmp/release/no-command
  chmod 755 tmp/release
  sync -f tmp/release
  mv tmp/release "releases/$2"
fi
echo
[ ! -e "releases/$2/no-command" ] || echo "${noCommandMark}"
echo "${configMark}"
cat "releases/$2/config.json"
`;

/** Deletes all releases and layers of images but those of some releases. Arguments: directory of containers, ids. */
export const deleteOthersScript = `set -eu
cd "$1"
shift
export HOME=/run
for release in releases/*; do
  [ -d "$release" ] || continue
  id=\${release#releases/}
  case " $* " in
    *" $id "*) ;;
    *)
      rm -rf "$release"
      umoci rm --image "images:$id" || :
      ;;
  esac
done
rm -rf tmp
[ ! -d images ] || umoci gc --layout images
`;

/**
 * Id of the container, of which there is one in each mount namespace. runc joins a control group of this name if the
 * host has one, and then fails for want of a permission, so the name is one that only Holdfast has.
 */
const containerId = "holdfast-container";

/** Where the control groups of the machine are mounted for its container. */
export const controlGroupsPath = "/run/control-groups";

/**
 * Runs a container until it ends: creates its network namespace with a connection to the machine's network by pasta,
 * then the packet filter, then the container. Arguments: address and port on which the machine accepts connections for
 * it, port inside. FILTER: rules for nft. HOSTS: names in /etc/hosts. RELAY: configuration of a HAProxy in the
 * container's network; empty for none. AUTHORITIES: certificates, PEM. LIMITS: not empty if control groups limit
 * the machine alone: programs read them to find their limits. Standard input: the container's configuration.
 *
 * The control groups are those of the namespace's root, so nothing of the host's trees is visible, and are mounted
 * read-only: by version 2, or as trees of version 1 on a host that limits machines by these.
 */
export const runScript = `set -eu
mount -t tmpfs -o mode=755,size=4m run /run
mount -t cgroup2 none /sys/fs/cgroup
cat >/run/config.json
echo "nameserver ${resolverAddress}" >/run/resolv.conf
printf '%s' "$HOSTS" >/run/hosts
printf '%s' "$AUTHORITIES" >/run/ca.pem
: >/run/network
unshare --net=/run/network true
pasta --quiet --config-net --runas 0:0 --netns-only --no-netns-quit --no-map-gw --ipv4-only \\
  --address 169.254.77.2 --netmask 30 --gateway 169.254.77.1 --dns-forward ${resolverAddress} \\
  --tcp-ports "$1/$2:$3" --tcp-ns none --udp-ports none --udp-ns none --netns /run/network
printf '%s' "$FILTER" | nsenter --net=/run/network nft -f -
if [ -n "$RELAY" ]; then
  printf '%s' "$RELAY" >/run/relay.cfg
  nsenter --net=/run/network haproxy -D -f /run/relay.cfg
fi
mkdir -p ${controlGroupsPath}
if [ -n "$LIMITS" ] && [ -e /sys/fs/cgroup/memory.max ]; then
  mount --bind /sys/fs/cgroup ${controlGroupsPath}
  mount -o remount,bind,ro,nosuid,nodev,noexec ${controlGroupsPath}
elif [ -n "$LIMITS" ]; then
  for tree in memory cpu cpu,cpuacct; do
    mkdir "${controlGroupsPath}/\${tree%,*}" 2>/dev/null || continue
    if mount -t cgroup -o "$tree" none "${controlGroupsPath}/\${tree%,*}" 2>/dev/null; then
      mount -o remount,bind,ro,nosuid,nodev,noexec "${controlGroupsPath}/\${tree%,*}"
    else
      rmdir "${controlGroupsPath}/\${tree%,*}"
    fi
  done
fi
exec runc --root /run/runc run --bundle /run ${containerId}
`;

/** Networks that are not part of the public internet (IANA's special-purpose registry), and multicast. */
const refusedNetworks = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
];

/**
 * Packet filter of a container's network, in the syntax of nft: the internet and its resolver, nothing private, and
 * none of the machine's addresses, which may be public ones of its host. Only root of the namespace could change it,
 * and a container has no such capability.
 */
export function packetFilter(machineAddresses: readonly string[]): string {
  return `table inet network_policy {
  chain output {
    type filter hook output priority 0; policy accept;
    oifname "lo" accept
    ct state established,related accept
    ip daddr ${resolverAddress} meta l4proto { tcp, udp } th dport 53 accept
    ip daddr { ${refusedNetworks.join(", ")} } reject with icmp type admin-prohibited
    ip daddr { ${[...new Set(["127.0.0.1", ...machineAddresses])].join(", ")} } reject with icmp type admin-prohibited
    meta nfproto ipv6 reject
  }
}
`;
}
