import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { claimNumber } from "../controller/claim.ts";

const run = promisify(execFile);

/** A separate network for a second host, joined to this host's network by a cable, as two machines in a rack are. */
export interface CabledNetwork {
  /** Addresses of this host (`near`) and of the other host (`far`) on the cable. */
  readonly near: string;
  readonly far: string;
  /** Prefix of command lines that run in the network. Their mounts are visible only there. */
  readonly enter: readonly string[];
  /** Pulls the cable out, or plugs it in again. */
  cable(plugged: boolean): Promise<void>;
  /** Standard output of a program that runs there. */
  run(...argv: string[]): Promise<string>;
  close(): Promise<void>;
}

/** Devices of the network are in a separate /sys, with the shared control groups. */
const ownSys = `mount --rbind /sys/fs/cgroup /mnt
mount -t sysfs sysfs /sys
mount --rbind /mnt /sys/fs/cgroup
umount --lazy /mnt
exec "$@"`;

/** Concurrent networks, also of other tests, differ in names and addresses. */
export async function makeCabledNetwork(): Promise<CabledNetwork> {
  const number = await claimNumber("cable", 15);
  const [namespace, outer, inner] = [`hf-host-${number}`, `hfc-${number}`, "cable"];
  const [near, far] = [`198.18.79.${number * 4 + 1}`, `198.18.79.${number * 4 + 2}`];
  const ip = (...args: string[]) => run("ip", args);
  const remove = async () => {
    await ip("netns", "delete", namespace).catch(() => undefined);
    await ip("link", "delete", outer).catch(() => undefined);
  };
  // Remains of a test that was killed.
  await remove();
  await ip("netns", "add", namespace);
  await ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", namespace);
  await ip("address", "add", `${near}/30`, "dev", outer);
  await ip("link", "set", outer, "up");
  await ip("-n", namespace, "address", "add", `${far}/30`, "dev", inner);
  for (const link of ["lo", inner]) await ip("-n", namespace, "link", "set", link, "up");
  await ip("-n", namespace, "route", "add", "default", "via", near);
  const network = ["nsenter", `--net=/run/netns/${namespace}`];
  return {
    near,
    far,
    enter: [...network, "unshare", "--mount", "sh", "-c", ownSys, "sh"],
    cable: async (plugged) => void (await ip("link", "set", outer, plugged ? "up" : "down")),
    async run(...argv) {
      const [command = "", ...args] = [...network, ...argv];
      return (await run(command, args)).stdout;
    },
    close: remove,
  };
}
