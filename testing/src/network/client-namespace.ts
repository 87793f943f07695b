import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { claimNumber } from "../controller/claim.ts";

const run = promisify(execFile);

/** A network namespace of this host with a separate address, for a client from elsewhere. */
export interface ClientNamespace {
  readonly address: string;
  /** Address of the host in the namespace's network. */
  readonly gateway: string;
  /** Standard output of a program of Node that runs there. Throws when it fails. */
  node(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<string>;
  /** Result of a TCP connection from here. */
  connect(address: string, port: number): Promise<Attempt>;
  close(): Promise<void>;
}

export type Attempt = "open" | "refused" | "silent";

/** Concurrent namespaces, also of other tests, differ in names and addresses. */
export async function createClientNamespace(): Promise<ClientNamespace> {
  const number = await claimNumber("place", 60);
  const [namespace, outer, inner] = [`hf-place-${number}`, `hft-${number}`, `hfi-${number}`];
  const [gateway, address] = [`198.18.77.${number * 4 + 1}`, `198.18.77.${number * 4 + 2}`];
  const ip = (...args: string[]) => run("ip", args);
  const remove = () => ip("netns", "delete", namespace).catch(() => undefined);
  // Remains of a test that was killed.
  await remove();
  await ip("link", "delete", outer).catch(() => undefined);
  await ip("netns", "add", namespace);
  await ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", namespace);
  await ip("address", "add", `${gateway}/30`, "dev", outer);
  await ip("link", "set", outer, "up");
  await run("sysctl", ["-qw", `net.ipv4.conf.${outer}.forwarding=1`]);
  await ip("-n", namespace, "address", "add", `${address}/30`, "dev", inner);
  await ip("-n", namespace, "link", "set", inner, "up");
  await ip("-n", namespace, "route", "add", "default", "via", gateway);
  return {
    address,
    gateway,
    async node(args, environment = {}) {
      const command = ["netns", "exec", namespace, process.execPath, ...args];
      return (await run("ip", command, { env: { ...process.env, ...environment } })).stdout;
    },
    connect: (to, port) => attempt(["ip", "netns", "exec", namespace], to, port),
    close: async () => void (await remove()),
  };
}

/** Result of a TCP connection from the namespace of a process of this host. */
export function connectFrom(pid: number, address: string, port: number): Promise<Attempt> {
  return attempt(["nsenter", "--target", String(pid), "--net"], address, port);
}

const program = `
const socket = require("node:net").connect(Number(process.argv[2]), process.argv[1]);
const report = (result) => { process.stdout.write(result); process.exit(0); };
socket.on("connect", () => report("open"));
socket.on("error", () => report("refused"));
// Events that arrived while the process was not scheduled run before the timeout is reported.
setTimeout(() => setImmediate(() => report("silent")), 3000);
`;

/** Result of a TCP connection from the namespace that this command line enters. */
export async function attempt([command = "", ...enter]: string[], address: string, port: number): Promise<Attempt> {
  const { stdout } = await run(command, [...enter, process.execPath, "-e", program, address, String(port)]);
  return stdout as Attempt;
}

/** Counts packets as they arrive at the host, before any rules, and as they reach its programs. */
export async function countPackets(table: string, matching: string) {
  const nft = async (text: string) => (await run("nft", text.split(" "))).stdout;
  await run("nft", [
    `table inet ${table} {
      chain arrived { type filter hook prerouting priority -400; ${matching} counter; }
      chain passed { type filter hook input priority -200; ${matching} counter; }
    }`,
  ]);
  return {
    async read() {
      const of = async (chain: string) =>
        Number(/packets (\d+)/.exec(await nft(`list chain inet ${table} ${chain}`))?.[1] ?? Number.NaN);
      return { arrived: await of("arrived"), passed: await of("passed") };
    },
    close: () => nft(`delete table inet ${table}`),
  };
}

/** The host's end of a machine's network. */
export async function linkOf(address: string): Promise<string> {
  const { stdout } = await run("ip", ["-json", "route", "get", address]);
  return (JSON.parse(stdout) as { dev: string }[])[0]?.dev ?? "";
}
