import { ComputeFailure, HostUnreachable } from "../compute-failure.ts";
import {
  type ComputeProvider,
  type MachineEdge,
  type MachineFacts,
  type MachineSnapshots,
  unionOf,
} from "../compute-provider.ts";
import { requireGuestKernels, requireSnapshots } from "../provider-facets.ts";

/** Id of the host that the controllers run on. */
export const localHostId = "local";

export interface HostsProviderDeps {
  /** Providers by host id, including hosts that cannot be reached. */
  readonly hosts: () => ReadonlyMap<string, ComputeProvider>;
  /** Calls `onChange` when a host was added or removed; absent if hosts never change. */
  readonly onHosts?: (onChange: () => void) => { close(): void };
  /** Host of a machine by its object: null if it is not placed yet, undefined if no object has this id. */
  readonly hostOf: (machineId: string) => string | null | undefined;
  /** Time limit of a survey, in milliseconds; hosts without a response count as silent. */
  readonly surveyTimeoutMs?: number;
}

/** Machines of all hosts that responded, and for each other host the reason; the machines of these are unknown. */
export interface HostSurvey {
  readonly machines: readonly { readonly hostId: string; readonly facts: MachineFacts }[];
  /** Reason by host id. */
  readonly unresponsive: ReadonlyMap<string, string>;
}

/** Many hosts as one provider. */
export interface HostsProvider extends ComputeProvider {
  /** Provider of one host. Throws HostUnreachable for an unregistered one. */
  on(hostId: string): ComputeProvider;
  /** Machines of all hosts that respond. */
  survey(signal: AbortSignal): Promise<HostSurvey>;
  /** Packet filter of each host that has one, for the rules of its machines. */
  edges(): ReadonlyMap<string, MachineEdge>;
  /**
   * Finds a machine without an object by querying all hosts. Throws HostUnreachable if no host has it and one did not
   * respond.
   */
  find(machineId: string, signal: AbortSignal): Promise<{ hostId: string; facts: MachineFacts } | undefined>;
}

const defaultSurveyTimeoutMs = 10_000;

/**
 * Sends each call to the host of its machine. A host that does not respond throws HostUnreachable; it never counts as
 * empty.
 */
export function createHostsProvider(deps: HostsProviderDeps): HostsProvider {
  function on(hostId: string): ComputeProvider {
    const provider = deps.hosts().get(hostId);
    if (provider === undefined) throw new HostUnreachable(hostId, "it is not registered.");
    return provider;
  }

  /** Undefined if the machine is on no host. */
  async function providerOf(machineId: string, signal: AbortSignal): Promise<ComputeProvider | undefined> {
    const hostId = deps.hostOf(machineId);
    if (hostId === null) return undefined;
    if (hostId !== undefined) return on(hostId);
    const found = await find(machineId, signal);
    return found && on(found.hostId);
  }

  async function requireProvider(machineId: string, signal: AbortSignal): Promise<ComputeProvider> {
    const provider = await providerOf(machineId, signal);
    if (provider === undefined) throw new ComputeFailure(`Machine ${machineId} is on no host.`);
    return provider;
  }

  async function snapshotsAt(machineId: string, signal: AbortSignal): Promise<MachineSnapshots> {
    return requireSnapshots(await requireProvider(machineId, signal));
  }

  /** Queries every host within the time limit; an error counts as silence. */
  async function queryAll<T>(
    query: (provider: ComputeProvider, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<{ responses: Map<string, T>; unresponsive: Map<string, string> }> {
    const responses = new Map<string, T>();
    const unresponsive = new Map<string, string>();
    const timeoutMs = deps.surveyTimeoutMs ?? defaultSurveyTimeoutMs;
    const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    await Promise.all(
      [...deps.hosts()].map(async ([hostId, provider]) => {
        try {
          responses.set(hostId, await orAborted(query(provider, within), within));
        } catch (error) {
          if (signal.aborted) throw error;
          unresponsive.set(hostId, error instanceof Error ? error.message : String(error));
        }
      }),
    );
    return { responses, unresponsive };
  }

  async function survey(signal: AbortSignal): Promise<HostSurvey> {
    const { responses, unresponsive } = await queryAll((provider, within) => provider.list(within), signal);
    const machines = [...responses].flatMap(([hostId, listed]) => listed.map((facts) => ({ hostId, facts })));
    return { machines, unresponsive };
  }

  async function find(machineId: string, signal: AbortSignal) {
    const { responses, unresponsive } = await queryAll((provider, within) => provider.get(machineId, within), signal);
    for (const [hostId, facts] of responses) if (facts !== undefined) return { hostId, facts };
    for (const [hostId, reason] of unresponsive) throw new HostUnreachable(hostId, reason);
    return undefined;
  }

  return {
    name: "hosts",
    on,
    survey,
    find,
    edges: () =>
      new Map([...deps.hosts()].flatMap(([hostId, { edge }]) => (edge === undefined ? [] : [[hostId, edge] as const]))),
    create: (spec, signal) => on(spec.hostId ?? localHostId).create(spec, signal),
    admit: (spec, signal) => on(spec.hostId ?? localHostId).admit(spec, signal),
    start: async (id, enrollment, signal) => (await requireProvider(id, signal)).start(id, enrollment, signal),
    stop: async (id, graceMs, signal) => (await providerOf(id, signal))?.stop(id, graceMs, signal),
    resize: async (id, plan, signal) => (await requireProvider(id, signal)).resize(id, plan, signal),
    replaceImage: async (id, image, signal) => (await requireProvider(id, signal)).replaceImage(id, image, signal),
    growDisk: async (id, diskBytes, signal) => (await requireProvider(id, signal)).growDisk(id, diskBytes, signal),
    destroy: async (id, signal) => (await providerOf(id, signal))?.destroy(id, signal),
    fence: async (id, signal) => (await requireProvider(id, signal)).fence(id, signal),
    get: async (id, signal) => (await providerOf(id, signal))?.get(id, signal),
    async list(signal) {
      const { machines, unresponsive } = await survey(signal);
      // A list is complete or fails; callers that can use a partial one call `survey`.
      for (const [hostId, reason] of unresponsive) throw new HostUnreachable(hostId, reason);
      return machines.map(({ facts }) => facts);
    },
    async images(signal) {
      const { responses } = await queryAll((provider, within) => provider.images(within), signal);
      return unionOf([...responses.values()].flat());
    },
    snapshots: {
      take: async (id, name, starts, signal) => (await snapshotsAt(id, signal)).take(id, name, starts, signal),
      restore: async (id, name, starts, signal) => (await snapshotsAt(id, signal)).restore(id, name, starts, signal),
      remove: async (id, name, signal) => (await snapshotsAt(id, signal)).remove(id, name, signal),
    },
    guestKernels: {
      replace: async (id, kernel, signal) =>
        requireGuestKernels(await requireProvider(id, signal)).replace(id, kernel, signal),
    },
    watch: (onChange) => watchAll(deps, onChange),
  };
}

/** Rejects when the signal fires, for providers that ignore their signal. */
async function orAborted<T>(response: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(new Error("no response in time."));
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([response, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Watches all current hosts, and hosts that are added later. */
function watchAll({ hosts, onHosts }: HostsProviderDeps, onChange: (machineId: string) => void): { close(): void } {
  const watches = new Map<ComputeProvider, { close(): void }>();
  function follow(): void {
    const present = new Set(hosts().values());
    for (const provider of present) if (!watches.has(provider)) watches.set(provider, provider.watch(onChange));
    for (const [provider, watch] of watches) {
      if (present.has(provider)) continue;
      watch.close();
      watches.delete(provider);
    }
  }
  follow();
  const following = onHosts?.(follow);
  return {
    close() {
      following?.close();
      for (const watch of watches.values()) watch.close();
      watches.clear();
    },
  };
}
