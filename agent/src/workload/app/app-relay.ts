import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import type { AppEndpoint } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { KeeperClient } from "../../os/keeper-client.ts";
import { createHaproxyCommands } from "./haproxy-commands.ts";

/** Maximum number of endpoints, and of addresses of one. */
export const relaysMax = 32;
export const relayAddressesMax = 3;

/**
 * Connections of containers to attached services. A container's network reaches the internet alone, so each endpoint
 * has a relay of two halves with a Unix socket between them: a HAProxy in the container's network namespace, at a
 * loopback address that the container has for the endpoint's name, and this HAProxy in the machine's. Its configuration
 * never changes, and endpoints are set by commands, so that a change of one ends no connection of others.
 */
export interface AppRelay {
  /** Runs the relay with these endpoints; resolves once they are in effect. Connections to former ones end. */
  converge(address: string, endpoints: readonly AppEndpoint[], signal: AbortSignal): Promise<void>;
  /** True while it runs, or no endpoint needs it. */
  readonly isRunning: boolean;
  stop(): Promise<void>;
}

export interface AppRelayDeps {
  readonly keeper: KeeperClient;
  readonly stateDir: string;
  readonly runDir: string;
  readonly dataDir: string;
  readonly softwareRoot: string;
}

const relayComponent = "relay";
const stop = { signal: "SIGTERM", graceMs: 2_000 } as const;
const numbers = Array.from({ length: relaysMax }, (_, index) => index + 1);
const targets = Array.from({ length: relayAddressesMax }, (_, index) => `t${index}`);

/** Directory of the sockets. It is on the data disk, which scripts of containers have, and containers have not. */
export function relayDirectory(dataDir: string): string {
  return join(dataDir, "relay");
}

export function createAppRelay({ keeper, stateDir, runDir, dataDir, softwareRoot }: AppRelayDeps): AppRelay {
  const file = join(stateDir, "instance", "relay.cfg");
  const commandSocket = join(runDir, "engine", "relay.sock");
  const runs = () => keeper.component(relayComponent)?.state === "running";
  const command = createHaproxyCommands(commandSocket, runs);
  let isNeeded = false;

  async function start(): Promise<void> {
    await keeper.order({
      op: "start",
      component: {
        name: relayComponent,
        argv: [join(softwareRoot, "usr", "sbin", "haproxy"), "-db", "-f", file],
        env: { LC_ALL: "C", TZ: "UTC" },
        cwd: "/",
        log: { path: join(stateDir, "log", "relay.log"), maxBytes: 1 << 20, keep: 2, stamped: true },
        stop,
        deadlineMs: null,
      },
    });
  }

  const changes = async (endpoints: readonly AppEndpoint[], signal: AbortSignal) =>
    commandsOf(serversOf(await command("show servers state", signal)), endpoints);

  return {
    get isRunning() {
      return !isNeeded || runs();
    },
    async converge(address, endpoints, signal) {
      isNeeded = endpoints.length > 0;
      if (!isNeeded && !runs()) return;
      const desired = relayConfig(address, commandSocket, relayDirectory(dataDir));
      const before = (await readIfExists(file))?.toString("utf8");
      if (before !== desired) {
        await writeDurably(file, desired, 0o640);
        if (runs()) await keeper.order({ op: "stop", name: relayComponent, ...stop });
      }
      if (!runs()) {
        await mkdir(relayDirectory(dataDir), { recursive: true });
        // The engine's group has the relay, which creates sockets there; users of containers only enter it.
        await chmod(relayDirectory(dataDir), 0o771);
        await start();
      }
      for (const line of await changes(endpoints, signal)) await command(line, signal);
      if ((await changes(endpoints, signal)).length > 0) throw new Error("the relay refused an endpoint");
    },
    async stop() {
      if (runs()) await keeper.order({ op: "stop", name: relayComponent, ...stop });
    },
  };
}

function relayConfig(address: string, commandSocket: string, directory: string): string {
  const relays = numbers.map((number) => {
    const servers = targets.map((name) => `  server ${name} 127.0.0.1:1 source ${address} disabled\n`);
    return `listen r${number}\n  bind unix@${join(directory, `${number}.sock`)} mode 666\n${servers.join("")}`;
  });
  return `# Written by the agent: changes made here are lost.
global
  stats socket ${commandSocket} mode 660 level admin
  maxconn 4000
  nbthread 1
  log stdout format raw local0 notice
defaults
  mode tcp
  balance first
  retries 3
  option redispatch 1
  timeout connect 5s
  # Pools of connections rest for long.
  timeout client 24h
  timeout server 24h
${relays.join("")}`;
}

/** A server of the relay: its address and port, or undefined while it is disabled. */
type Servers = ReadonlyMap<string, string | undefined>;

/** Bits of `srv_admin_state` by which a server gets no connections. */
const maintenance = 0x01 | 0x02 | 0x20;

/** The servers, such as `r1/t0`, in the output of `show servers state`. */
export function serversOf(output: string): Servers {
  const lines = output.split("\n");
  const columns = (lines.find((line) => line.startsWith("# ")) ?? "").slice(2).split(" ");
  return new Map(
    lines.flatMap((line) => {
      const values = line.split(" ");
      const of = (column: string) => values[columns.indexOf(column)] ?? "";
      if (line.startsWith("#") || of("srv_name") === "") return [];
      const isDisabled = (Number(of("srv_admin_state")) & maintenance) !== 0;
      const target = isDisabled ? undefined : `${of("srv_addr")}:${of("srv_port")}`;
      return [[`${of("be_name")}/${of("srv_name")}`, target] as const];
    }),
  );
}

/** The commands by which the servers become those of the endpoints. */
export function commandsOf(current: Servers, endpoints: readonly AppEndpoint[]): string[] {
  const desired = new Map(
    endpoints.flatMap(({ relay, port, targetPort = port, addresses }) =>
      targets.flatMap((name, index) => {
        const address = addresses[index];
        const server: string = `r${relay}/${name}`;
        return address === undefined ? [] : [[server, `${address}:${targetPort}`] as const];
      }),
    ),
  );
  const changed = [...current].filter(([server, target]) => target !== desired.get(server));
  // Connections to former targets end before the first one to another begins.
  return [
    ...changed.flatMap(([server, target]) =>
      target === undefined ? [] : [`set server ${server} state maint`, `shutdown sessions server ${server}`],
    ),
    ...changed.flatMap(([server]) => {
      const [address, port] = desired.get(server)?.split(":") ?? [];
      return address === undefined
        ? []
        : [`set server ${server} addr ${address} port ${port}`, `set server ${server} state ready`];
    }),
  ];
}
