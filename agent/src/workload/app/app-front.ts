import { join } from "node:path";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import { sendCommand } from "../../engines/front/front-commands.ts";
import type { KeeperClient } from "../../os/keeper-client.ts";
import { createHaproxyCommands } from "./haproxy-commands.ts";
import { type SlotName, slotNames } from "./slots.ts";

/** Listener of the front, and the slot that gets the requests. */
export interface FrontState {
  readonly address: string;
  readonly port: number;
  readonly vcpu: number;
  readonly serving: SlotName | undefined;
}

/**
 * HAProxy before the releases of an app: one port of the machine whose requests go to the serving slot. A switch is two
 * commands on its socket: requests in progress end where they began, and no connection of a client is closed.
 */
export interface AppFront {
  /** Runs the front with this state; resolves once it is in effect. */
  converge(state: FrontState, signal: AbortSignal): Promise<void>;
  /** Number of requests and open connections of a slot; 0 if the front does not run. */
  sessions(slot: SlotName, signal: AbortSignal): Promise<number>;
  readonly isRunning: boolean;
  /** Accepts no more connections, and ends once its requests have ended, or after the time. */
  stop(withinMs: number): Promise<void>;
}

const frontComponent = "front";
/** Port of each slot at the machine's address; the front is its only client. */
const slotPorts: Readonly<Record<SlotName, number>> = { a: 20_001, b: 20_002 };
/** SIGUSR1: HAProxy finishes requests in progress. */
const stop = { signal: "SIGUSR1", graceMs: 2_000 } as const;
const connectionLimit = 4_000;
/** Backends of the slots: the second one speaks HTTP/2 to programs, which gRPC requires. */
const backends = ["app", "grpc"] as const;
/** Time without data after which a stream of gRPC or of server-sent events ends. */
const streamTimeout = "1h";
const disabled = " disabled";
/** Size of a buffer, which has the whole head of a request or a response: as the ingress has it. */
const bufferBytes = 32 << 10;

export function slotAddress(address: string, slot: SlotName): { readonly address: string; readonly port: number } {
  return { address, port: slotPorts[slot] };
}

export interface AppFrontDeps {
  readonly keeper: KeeperClient;
  readonly stateDir: string;
  readonly runDir: string;
  readonly softwareRoot: string;
}

export function createAppFront({ keeper, stateDir, runDir, softwareRoot }: AppFrontDeps): AppFront {
  const file = join(stateDir, "instance", "front.cfg");
  const commandSocket = join(runDir, "engine", "front.sock");
  const stateOf = () => keeper.component(frontComponent)?.state ?? "empty";
  const isRunning = () => stateOf() === "running";

  async function start(): Promise<void> {
    await keeper.order({
      op: "start",
      component: {
        name: frontComponent,
        argv: [join(softwareRoot, "usr", "sbin", "haproxy"), "-db", "-f", file],
        env: { LC_ALL: "C", TZ: "UTC" },
        cwd: "/",
        log: { path: join(stateDir, "log", "front.log"), maxBytes: 1 << 20, keep: 2, stamped: true },
        stop,
        deadlineMs: null,
      },
    });
  }

  const send = createHaproxyCommands(commandSocket, isRunning);
  /** Sends a command that has no output. */
  async function command(line: string, signal: AbortSignal): Promise<void> {
    const output = await send(line, signal);
    if (output !== "") throw new Error(`the front refused a command: ${output}`);
  }

  return {
    get isRunning() {
      return isRunning();
    },
    async converge(state, signal) {
      const desired = configOf(state, commandSocket);
      const before = (await readIfExists(file))?.toString("utf8");
      // A running HAProxy changes neither its listeners nor its backends, such as those of an earlier release.
      if (isRunning() && structureOf(before ?? "") !== structureOf(desired))
        await keeper.order({ op: "stop", name: frontComponent, ...stop });
      if (before !== desired) await writeDurably(file, desired, 0o640);
      if (!isRunning()) await start();
      const { serving } = state;
      // The serving slot comes first, so that there is always one that gets the requests.
      for (const backend of backends)
        if (serving !== undefined) await command(`set server ${backend}/${serving} state ready`, signal);
      for (const backend of backends)
        for (const slot of slotNames)
          if (slot !== serving) await command(`set server ${backend}/${slot} state drain`, signal);
    },
    async sessions(slot, signal) {
      if (!isRunning()) return 0;
      return sessionsIn(await sendCommand({ commandSocket }, "show stat", signal), slot);
    },
    async stop(withinMs) {
      const graceMs = Math.max(withinMs, stop.graceMs);
      // A front that an earlier agent ordered to stop still has requests.
      if (stateOf() !== "empty") await keeper.order({ op: "stop", name: frontComponent, ...stop, graceMs });
    },
  };
}

function configOf({ address, port, vcpu, serving }: FrontState, commandSocket: string): string {
  const servers = (options: string) =>
    slotNames
      .map((slot) => {
        const target = slotAddress(address, slot);
        return `  server ${slot} ${target.address}:${target.port}${options}${slot === serving ? "" : disabled}\n`;
      })
      .join("");
  return `# Written by the agent: changes made here are lost.
global
  stats socket ${commandSocket} mode 660 level admin
  maxconn ${connectionLimit}
  nbthread ${Math.min(Math.max(Math.floor(vcpu / 2), 1), 4)}
  tune.bufsize ${bufferBytes}
  log stdout format raw local0 notice
defaults
  mode http
  log global
  option dontlog-normal
  timeout connect 2s
  timeout queue 5s
  timeout client 60s
  timeout http-request 10s
  timeout http-keep-alive 60s
  timeout server 5m
  # Connections that were upgraded, such as WebSockets.
  timeout tunnel 24h
frontend app
  bind ${address}:${port}
  acl grpc req.hdr(content-type) -m beg application/grpc
  http-request set-timeout client ${streamTimeout} if grpc
  use_backend grpc if grpc
  default_backend app
backend app
  http-request set-timeout server ${streamTimeout} if { req.hdr(accept) -m sub text/event-stream }
${servers("")}backend grpc
  timeout server ${streamTimeout}
${servers(" proto h2")}`;
}

/** A configuration without what commands change, and without limits, which apply from the next start. */
function structureOf(config: string): string {
  return config.replaceAll(disabled, "").replaceAll(/^ {2}tune\..*\n/gm, "");
}

/** Current sessions of a slot in the output of `show stat`, which is CSV with a head. */
export function sessionsIn(output: string, slot: SlotName): number {
  const [head = "", ...rows] = output.trim().split("\n");
  const columns = head.replace(/^# /, "").split(",");
  const valuesOf = (row: string) => {
    const values = row.split(",");
    return (column: string) => values[columns.indexOf(column)];
  };
  const found = rows
    .map(valuesOf)
    .filter((value) => backends.some((backend) => backend === value("pxname")) && value("svname") === slot);
  return found.reduce((sum, value) => sum + Number(value("scur") ?? 0), 0);
}
