import type { Clock } from "@holdfast/common/clock.ts";
import { ComputeFailure, startFailureSentence } from "../compute-failure.ts";
import type { IncusClient } from "./incus-client.ts";
import { IncusError, isOperationLost, isAlreadyExists } from "./incus-transport.ts";
import { instanceName } from "./instance-config.ts";

/** An instance as Incus reports it. */
export interface Instance {
  readonly name: string;
  /** Status in Incus's terms: Running, Stopped, Frozen, Error. */
  readonly status: string;
  readonly config: Readonly<Record<string, string>>;
  readonly devices: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Starts and stops instances by machine id. Only the current report of Incus counts. */
export interface InstancePower {
  /** The instance of a machine; undefined if Incus has none. */
  find(id: string, signal: AbortSignal): Promise<Instance | undefined>;
  /** Creates the instance, unless it exists. Throws ComputeFailure with Incus's error. */
  create(config: { readonly name: string }, signal: AbortSignal): Promise<void>;
  /** Throws ComputeFailure with the error in LXC's log. */
  start(id: string, signal: AbortSignal): Promise<void>;
  /** Stops in order within graceMs, then by force; resolves when Incus reports it stopped or absent. */
  stop(id: string, graceMs: number, signal: AbortSignal): Promise<void>;
}

/** Incus reports a container as running until LXC has cleared it away, also after its first process ended. */
const endTimeoutMs = 10_000;

/** True for every status but Stopped: a frozen instance, or one in an error, may run again. */
export function isUp(instance: Pick<Instance, "status"> | undefined): boolean {
  return instance !== undefined && instance.status !== "Stopped";
}

/**
 * Message such as `Failed to run: /usr/libexec/incus/incusd forkstart ...: exit status 1`, which does not help a user.
 */
function isOwnCommand({ message }: IncusError): boolean {
  return message.startsWith("Failed to run:");
}

export function createInstancePower(incus: IncusClient, clock: Clock): InstancePower {
  async function find(id: string, signal: AbortSignal): Promise<Instance | undefined> {
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
      // The instance was stopping already, so Incus refused this request. Only the result counts.
      if (!(await stopsInTime(id, signal))) throw error;
    }
  }

  /** Waits for the Stopped status: checks at each event, and a few times in between. */
  async function stopsInTime(id: string, signal: AbortSignal): Promise<boolean> {
    let wake = () => undefined as void;
    const events = incus.events.subscribe({ event: () => wake(), opened: () => wake() });
    try {
      const deadline = clock.now() + endTimeoutMs;
      while (isUp(await find(id, signal))) {
        signal.throwIfAborted();
        if (clock.now() > deadline) return false;
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, endTimeoutMs / 20);
        });
      }
      return true;
    } finally {
      events.close();
    }
  }

  /** The error of a failed start from LXC's log; Incus itself reports only its own failed command. */
  async function startFailure(id: string, error: IncusError, signal: AbortSignal): Promise<ComputeFailure> {
    const log = await incus.text(`/1.0/instances/${instanceName(id)}/logs/lxc.log`, signal).catch(() => "");
    const line = log.split("\n").find((line) => line.includes(" ERROR "));
    const reason = line?.split(" - ").at(-1) ?? (isOwnCommand(error) ? undefined : error.message);
    return new ComputeFailure(startFailureSentence(reason), { cause: error });
  }

  return {
    find,
    async create(config, signal) {
      try {
        await incus.run("POST", "/1.0/instances", signal, config);
      } catch (error) {
        if (isAlreadyExists(error)) return incus.settled(config.name, signal);
        if (!(error instanceof IncusError) || isOperationLost(error)) throw error;
        throw new ComputeFailure(`Incus could not create the machine: ${error.message}`, { cause: error });
      }
    },
    async start(id, signal) {
      try {
        await change(id, { action: "start" }, signal);
      } catch (error) {
        if (!(error instanceof IncusError) || isOperationLost(error)) throw error;
        throw await startFailure(id, error, signal);
      }
    },
    async stop(id, graceMs, signal) {
      // Operations in progress end first: they would make Incus refuse the stop.
      await incus.settled(instanceName(id), signal);
      const before = await find(id, signal);
      if (!isUp(before)) return;
      // A frozen instance receives no signal.
      if (graceMs === 0 || before?.status !== "Running") return force(id, signal);
      try {
        await change(id, { action: "stop", timeout: Math.ceil(graceMs / 1_000) }, signal);
      } catch (error) {
        if (!(error instanceof IncusError)) throw error;
        if (isUp(await find(id, signal))) await force(id, signal);
      }
    },
  };
}
