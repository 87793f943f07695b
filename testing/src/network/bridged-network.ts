import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { claimNumber } from "../controller/claim.ts";

const run = promisify(execFile);

/** One host of a bridged network. */
export interface BridgedHost {
  readonly address: string;
  /** Prefix of command lines that run in the host's network. */
  readonly enter: readonly string[];
  /** Pulls the host's cable out of the bridge, or plugs it in again. */
  cable(plugged: boolean): Promise<void>;
}

/** Network namespaces of this host, joined by a bridge, as machines are by a switch. */
export interface BridgedNetwork {
  /** Address of this host on the bridge. */
  readonly own: string;
  readonly hosts: readonly BridgedHost[];
  close(): Promise<void>;
}

/** Needs root. Concurrent networks, also of other tests, differ in names and addresses. */
export async function makeBridgedNetwork(count: number): Promise<BridgedNetwork> {
  const number = await claimNumber("bridge", 20);
  const [bridge, network] = [`hfb-${number}`, `198.18.${100 + number}`];
  const ip = (...args: string[]) => run("ip", args);
  const plans = Array.from({ length: count }, (_, at) => ({
    namespace: `hf-bridged-${number}-${at}`,
    outer: `hfb-${number}-${at}`,
    address: `${network}.${at + 1}`,
  }));
  const own = `${network}.254`;
  const remove = async () => {
    for (const { namespace, outer } of plans) {
      await ip("netns", "delete", namespace).catch(() => undefined);
      await ip("link", "delete", outer).catch(() => undefined);
    }
    await ip("link", "delete", bridge).catch(() => undefined);
  };
  // Remains of a test that was killed.
  await remove();
  await ip("link", "add", bridge, "type", "bridge");
  await ip("address", "add", `${own}/24`, "dev", bridge);
  await ip("link", "set", bridge, "up");
  for (const { namespace, outer, address } of plans) {
    await ip("netns", "add", namespace);
    await ip("link", "add", outer, "type", "veth", "peer", "name", "cable", "netns", namespace);
    await ip("link", "set", outer, "master", bridge, "up");
    await ip("-n", namespace, "address", "add", `${address}/24`, "dev", "cable");
    for (const link of ["lo", "cable"]) await ip("-n", namespace, "link", "set", link, "up");
    await ip("-n", namespace, "route", "add", "default", "via", own);
  }
  return {
    own,
    hosts: plans.map(({ namespace, outer, address }) => ({
      address,
      enter: ["nsenter", `--net=/run/netns/${namespace}`],
      cable: async (plugged) => void (await ip("link", "set", outer, plugged ? "up" : "down")),
    })),
    close: remove,
  };
}
