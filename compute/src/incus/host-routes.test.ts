import { type ChildProcess, execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { attempt } from "@holdfast/testing/network/client-namespace.ts";
import type { RouteWork } from "@holdfast/testing/machines/route-worker.ts";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { nodeOf, runningService } from "@holdfast/testing/controller/service-object.ts";
import { servicePolicyRules } from "@holdfast/controller/services/service/network/service-network-policy.ts";
import type { HostRoute, OtherHost } from "../compute-provider.ts";

const run = promisify(execFile);
const worker = join(import.meta.dirname, "..", "..", "..", "testing", "src", "machines", "route-worker.ts");
const isRoot = process.getuid?.() === 0;
const able =
  isRoot &&
  (await run("nft", ["--version"]).then(
    () => true,
    () => false,
  ));

/** Two hosts on one network, each a network namespace with machines behind links as Incus creates them. */
const hosts = {
  west: { name: `hf-west-${process.pid}`, block: "10.201", address: "192.0.2.1", machines: ["member", "stranger"] },
  east: { name: `hf-east-${process.pid}`, block: "10.202", address: "192.0.2.2", machines: ["other"] },
} as const;
type HostId = keyof typeof hosts;
const hostIds = Object.keys(hosts) as HostId[];
const inside = (machine: string) => `hf-${machine}-${process.pid}`;
const addressOf = (machine: string) =>
  hostIds.flatMap((id) => {
    const index = (hosts[id].machines as readonly string[]).indexOf(machine);
    return index < 0 ? [] : [`${hosts[id].block}.0.${index + 2}`];
  })[0] ?? "";
const ip = async (...args: string[]) => (await run("ip", args)).stdout;
const forwarding = async ({ name }: { name: string }) =>
  (await ip("netns", "exec", name, "cat", "/proc/sys/net/ipv4/conf/lan/forwarding")).trim();

const services = [runningService({ id: "pair" }, { nodes: [nodeOf("member"), nodeOf("other")] })];
const machineOf = (id: string) => {
  const hostId = hostIds.find((each) => (hosts[each].machines as readonly string[]).includes(id)) ?? null;
  return runningMachine(id, { owner: { kind: "managed-service", id: "pair" }, hostId }, addressOf(id));
};

describe.skipIf(!able)(`routes between hosts${able ? "" : " (skipped: they need root and nftables)"}`, () => {
  const listeners: ChildProcess[] = [];

  async function keep(
    id: HostId,
    others: readonly OtherHost[],
    networks: readonly string[] = [],
  ): Promise<HostRoute[]> {
    const work: RouteWork = {
      block: hosts[id].block,
      networks,
      others,
      rules: services.flatMap((service) => servicePolicyRules(service, id, machineOf)),
    };
    const argv = ["netns", "exec", hosts[id].name, process.execPath, worker, JSON.stringify(work)];
    return JSON.parse(await ip(...argv)) as HostRoute[];
  }
  const other = (id: HostId): OtherHost => ({
    hostId: id,
    network: `${hosts[id].block}.0.0/16`,
    address: hosts[id].address,
  });
  const from = (machine: string, to: string) => attempt(["ip", "netns", "exec", inside(machine)], addressOf(to), 5432);

  beforeAll(async () => {
    for (const { name } of Object.values(hosts)) await ip("netns", "add", name);
    const [west, east] = [hosts.west.name, hosts.east.name];
    await ip("-n", west, "link", "add", "lan", "type", "veth", "peer", "name", "lan", "netns", east);
    for (const { name, block, address, machines } of Object.values(hosts)) {
      await ip("-n", name, "address", "add", `${address}/24`, "dev", "lan");
      await ip("-n", name, "address", "add", `${block}.0.1/32`, "dev", "lo");
      for (const link of ["lo", "lan"]) await ip("-n", name, "link", "set", link, "up");
      await ip("-n", name, "route", "add", "default", "via", "192.0.2.254");
      for (const [index, machine] of machines.entries()) {
        const [link, place] = [`hf${block.slice(3)}-${index + 2}`, inside(machine)];
        await ip("netns", "add", place);
        await ip("-n", name, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", place);
        await ip("-n", name, "link", "set", link, "up");
        await ip("-n", name, "route", "add", `${addressOf(machine)}/32`, "dev", link);
        await ip("netns", "exec", name, "sysctl", "-qw", `net.ipv4.conf.${link}.forwarding=1`);
        await ip("-n", place, "address", "add", `${addressOf(machine)}/32`, "dev", "eth0");
        await ip("-n", place, "link", "set", "eth0", "up");
        await ip("-n", place, "route", "add", `${block}.0.1/32`, "dev", "eth0");
        await ip("-n", place, "route", "add", "default", "via", `${block}.0.1`);
        listeners.push(await listening(place));
      }
    }
  });
  afterAll(async () => {
    for (const listener of listeners) listener.kill("SIGKILL");
    const names = Object.values(hosts).flatMap(({ name, machines }) => [name, ...machines.map(inside)]);
    names.push(inside("beyond"));
    for (const name of names) await ip("netns", "delete", name).catch(() => undefined);
  });

  it("are missing until they are set, and then connect members of a service only", async () => {
    expect(await from("member", "other")).toBe("silent");
    expect(await keep("west", [other("east")])).toEqual([{ hostId: "east", problem: "" }]);
    expect(await keep("east", [other("west")])).toEqual([{ hostId: "west", problem: "" }]);
    expect(await from("member", "other")).toBe("open");
    expect(await from("other", "member")).toBe("open");
    expect(await from("stranger", "other")).toBe("refused");
    expect(await from("other", "stranger")).toBe("refused");
    expect(await Promise.all(Object.values(hosts).map(forwarding))).toEqual(["1", "1"]);
    // A second call changes nothing.
    const before = await ip("-n", hosts.west.name, "route", "show");
    expect(await keep("west", [other("east")])).toEqual([{ hostId: "east", problem: "" }]);
    expect(await ip("-n", hosts.west.name, "route", "show")).toBe(before);
  });

  it("forward packets for machines only, unless the host is a router already", async () => {
    const [west, east, beyond] = [hosts.west.name, hosts.east.name, inside("beyond")];
    await ip("netns", "add", beyond);
    await ip("-n", west, "link", "add", "other", "type", "veth", "peer", "name", "eth0", "netns", beyond);
    await ip("-n", west, "address", "add", "198.51.100.1/24", "dev", "other");
    await ip("-n", west, "link", "set", "other", "up");
    await ip("netns", "exec", west, "sysctl", "-qw", "net.ipv4.conf.other.forwarding=1");
    await ip("-n", beyond, "address", "add", "198.51.100.7/24", "dev", "eth0");
    await ip("-n", beyond, "link", "set", "eth0", "up");
    await ip("-n", beyond, "route", "add", "default", "via", "198.51.100.1");
    await ip("-n", east, "route", "add", "198.51.100.0/24", "via", hosts.west.address);
    listeners.push(await listening(beyond));
    const reached = () => attempt(["ip", "netns", "exec", east], "198.51.100.7", 5432);

    expect(await reached()).toBe("silent");
    await ip("netns", "exec", west, "sysctl", "-qw", "net.ipv4.ip_forward=1");
    await keep("west", [other("east")]);
    expect(await reached()).toBe("open");
    await keep("west", []);
    expect(await forwarding(hosts.west)).toBe("1");
    await ip("netns", "exec", west, "sysctl", "-qw", "net.ipv4.ip_forward=0");
  });

  it("that cannot be set are reported with the obstacle", async () => {
    const [behind] = await keep("west", [{ ...other("east"), address: "203.0.113.9" }]);
    expect(behind?.problem).toBe(
      "10.202.0.0/16 has no route: east (203.0.113.9) is behind 192.0.2.254, which needs one.",
    );
    const [silent] = await keep("west", [{ ...other("east"), address: "192.0.2.77" }]);
    expect(silent?.problem).toMatch(/^10\.202\.0\.0\/16 does not respond by way of 192\.0\.2\.77: /);
  });

  it("blackhole unused addresses, and leave other routes alone", async () => {
    const west = hosts.west.name;
    const own = `${hosts.west.block}.0.0/16`;
    const networks = [own, "203.0.113.16/28", "203.0.113.40/32", "192.0.2.0/24"];
    const routeTo = async (address: string) =>
      (await run("ip", ["-n", west, "route", "get", address])).stdout.split("\n")[0]?.trim();
    const ends = async () => (await ip("-n", west, "route", "show", "type", "unreachable")).match(/^\S+ \S+/gm) ?? [];
    expect(await routeTo("203.0.113.20")).toContain("via 192.0.2.254");

    await keep("west", [other("east")], networks);
    for (const address of ["203.0.113.20", "203.0.113.40", `${hosts.west.block}.0.77`])
      await expect(routeTo(address), address).rejects.toThrow(/No route to host|unreachable/);
    expect(await attempt(["ip", "netns", "exec", hosts.east.name], `${hosts.west.block}.0.77`, 5432)).toBe("refused");
    expect(await routeTo("203.0.113.41")).toContain("via 192.0.2.254");
    // The device of a network has priority, as do a machine and an operator's route with a bad metric.
    expect(await routeTo(hosts.east.address)).toContain("dev lan");
    expect(await routeTo(addressOf("member"))).toContain(`dev hf${hosts.west.block.slice(3)}-2`);
    await ip("-n", west, "route", "add", "203.0.113.16/28", "via", "192.0.2.254", "metric", "4000000000");
    expect(await routeTo("203.0.113.20")).toContain("via 192.0.2.254");
    await ip("-n", west, "route", "delete", "203.0.113.16/28", "metric", "4000000000");

    const before = await ends();
    expect(before).toHaveLength(networks.length);
    await keep("west", [other("east")], networks);
    expect(await ends()).toEqual(before);
    await keep("west", [other("east")], [own]);
    expect(await ends()).toEqual([`unreachable ${own}`]);
    await keep("west", [], []);
    expect(await ends()).toEqual([]);
    expect(await routeTo("203.0.113.20")).toContain("via 192.0.2.254");
  });

  it("are removed without a trace", async () => {
    await keep("west", [other("east")]);
    await keep("west", []);
    expect(await ip("-n", hosts.west.name, "route", "show")).not.toContain("10.202.0.0/16");
    expect(await forwarding(hosts.west)).toBe("0");
    expect(await ip("netns", "exec", hosts.west.name, "nft", "list", "tables")).not.toContain("_paths");
  });
});

/** A machine that accepts connections on PostgreSQL's port. */
async function listening(place: string): Promise<ChildProcess> {
  const program = `require("node:net").createServer((socket) => socket.end()).listen(5432, () => console.log("up"))`;
  const child = spawn("ip", ["netns", "exec", place, process.execPath, "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  return child;
}
