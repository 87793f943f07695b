import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { packetFilter } from "./container-scripts.ts";

const canFilter = spawnSync("unshare", ["--net", "nft", "list", "ruleset"]).status === 0;

test.skipIf(!canFilter)("a public address of the machine is refused, and another one is not", () => {
  // Rules at the end of the chain count the packets that pass.
  const script = `set -e
nft -f -
ip link add outside type veth peer name other
ip link set outside up
ip address add 100.64.0.1/30 dev outside
ip route add default via 100.64.0.2 dev outside
for address in 8.8.8.8 9.9.9.9 10.1.1.1; do
  nft add rule inet network_policy output ip daddr $address counter
  bash -c "echo a >/dev/udp/$address/99" 2>/dev/null || :
done
nft list chain inet network_policy output`;
  const { stdout, stderr } = spawnSync("unshare", ["--net", "sh", "-c", script], {
    input: packetFilter(["127.0.0.1", "8.8.8.8"]),
    encoding: "utf8",
  });
  const passed = [...stdout.matchAll(/ip daddr (\S+) counter packets (\d+)/g)].map(([, address, count]) => [
    address,
    Number(count),
  ]);
  expect(passed, stdout + stderr).toEqual([
    ["8.8.8.8", 0],
    ["9.9.9.9", 1],
    ["10.1.1.1", 0],
  ]);
});
