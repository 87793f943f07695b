import type { Clock } from "@holdfast/common/clock.ts";
import { ComputeFailure, startFailureSentence } from "../compute-failure.ts";
import type { IncusClient } from "./incus-client.ts";
import { IncusError, isForgotten, isThereAlready } from "./incus-transport.ts";
import { instanceName } from "./instance-config.ts";

/** What Incus says of an instance. */
export interface Instance {
  readonly name: string;
  /** In Incus's words: Running, Stopped, Frozen, Error. */
  readonly status: string;
  readonly config: Readonly<Record<string, string>>;
  readonly devices: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Instances on and off, by the machine's id. Only what Incus says of them now is ever believed. */
export interface InstancePower {
  /** Undefined when Incus knows no such instance. */
  look(id: string, signal: AbortSignal): Promise<Instance | undefined>;
  /** Makes it from its configuration, or finds that somebody made it meanwhile. Throws ComputeFailure with what Incus says. */
  create(config: { readonly name: string }, signal: AbortSignal): Promise<void>;
  /** Throws ComputeFailure with what LXC has noted. */
  start(id: string, signal: AbortSignal): Promise<void>;
  /** Within graceMs in order, then by force; resolves when Incus says that it is stopped, or that there is none. */
  stop(id: string, graceMs: number, signal: AbortSignal): Promise<void>;
}

/** A container whose first process is gone is shown as running until LXC has cleared it away. */
const endsWithinMs = 10_000;

/** Only the plain word counts as stopped: what is frozen, or in an error, may run again. */
export function isUp(instance: Pick<Instance, "status"> | undefined): boolean {
  return instance !== undefined && instance.status !== "Stopped";
}

/** `Failed to run: /usr/libexec/incus/incusd forkstart ...: exit status 1` tells a user nothing. */
function isOwnCommand({ message }: IncusError): boolean {
  return message.startsWith("Failed to run:");
}

export function createInstancePower(incus: IncusClient, clock: Clock): InstancePower {
  async function look(id: string, signal: AbortSignal): Promise<Instance | undefined> {
    try {
      return await incus.call<Instance>("GET", `/1.0/instances/${instanceName(id)}`, signal);
    } catch (error) {
      if (error instanceof IncusError && error.status === 404) return undefined;
      throw error;
    }
  }

  async function change(id: string, body: object, signal: AbortSignal): Promise<void> {
    await incus.run("PUT", `/1.0/instances/${instanceName(id)}/state`, signal, body);
  }

  async function force(id: string, signal: AbortSignal): Promise<void> {
    try {
      await change(id, { action: "stop", force: true }, signal);
    } catch (error) {
      if (!(error instanceof IncusError)) throw error;
      // It was ending by itself, or by another order: then this one is refused. Only what it comes to counts.
      if (!(await comesToStop(id, signal))) throw error;
    }
  }

  /** Looks at each event, and a few times besides, whether Incus says that it is stopped. */
  async function comesToStop(id: string, signal: AbortSignal): Promise<boolean> {
    let wake = () => undefined as void;
    const events = incus.events.subscribe({ event: () => wake(), opened: () => wake() });
    try {
      const deadline = clock.now() + endsWithinMs;
      while (isUp(await look(id, signal))) {
        signal.throwIfAborted();
        if (clock.now() > deadline) return false;
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, endsWithinMs / 20);
        });
      }
      return true;
    } finally {
      events.close();
    }
  }

  /** What LXC noted of a start that failed; Incus itself says no more than which command of its own did. */
  async function startFailure(id: string, error: IncusError, signal: AbortSignal): Promise<ComputeFailure> {
    const log = await incus.text(`/1.0/instances/${instanceName(id)}/logs/lxc.log`, signal).catch(() => "");
    const said = log.split("\n").find((line) => line.includes(" ERROR "));
    const words = said?.split(" - ").at(-1) ?? (isOwnCommand(error) ? undefined : error.message);
    return new ComputeFailure(startFailureSentence(words), { cause: error });
  }

  return {
    look,
    async create(config, signal) {
      try {
        await incus.run("POST", "/1.0/instances", signal, config);
      } catch (error) {
        if (isThereAlready(error)) return incus.settled(config.name, signal);
        if (!(error instanceof IncusError) || isForgotten(error)) throw error;
        throw new ComputeFailure(`Incus could not make the machine: ${error.message}`, { cause: error });
      }
    },
    async start(id, signal) {
      try {
        await change(id, { action: "start" }, signal);
      } catch (error) {
        if (!(error instanceof IncusError) || isForgotten(error)) throw error;
        throw await startFailure(id, error, signal);
      }
    },
    async stop(id, graceMs, signal) {
      // What is being done to it ends first: an order to stop would be refused meanwhile.
      await incus.settled(instanceName(id), signal);
      const before = await look(id, signal);
      if (!isUp(before)) return;
      // Who is frozen hears no signal.
      if (graceMs === 0 || before?.status !== "Running") return force(id, signal);
      try {
        await change(id, { action: "stop", timeout: Math.ceil(graceMs / 1_000) }, signal);
      } catch (error) {
        if (!(error instanceof IncusError)) throw error;
        if (isUp(await look(id, signal))) await force(id, signal);
      }
    },
  };
}
