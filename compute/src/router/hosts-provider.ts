import { ComputeFailure, HostUnreachable } from "../compute-failure.ts";
import type { ComputeProvider, MachineEdge, MachineFacts, MachineSnapshots } from "../compute-provider.ts";
import { requireGuestKernels } from "../require-guest-kernels.ts";
import { requireSnapshots } from "../require-snapshots.ts";
import { unionOf } from "./image-union.ts";

/** Id of the controllers' own host, unless it is given another. */
export const localHostId = "local";

export interface HostsProviderDeps {
  /** The provider of each host, by the host's id. One that cannot be reached is in it all the same. */
  readonly hosts: () => ReadonlyMap<string, ComputeProvider>;
  /** Calls back when a host came or went. Absent where there are always the same. */
  readonly onHosts?: (onChange: () => void) => { close(): void };
  /** Where a machine is by its object: null when it was not placed yet, undefined when no object has this id. */
  readonly hostOf: (machineId: string) => string | null | undefined;
  /** A host that did not answer a survey within this time is silent. */
  readonly surveyWithinMs?: number;
}

/** The machines of all hosts that answered, and why others did not: of those nothing is known. */
export interface HostSurvey {
  readonly machines: readonly { readonly hostId: string; readonly facts: MachineFacts }[];
  /** Reason by host. */
  readonly silent: ReadonlyMap<string, string>;
}

/** Many hosts as one. */
export interface HostsProvider extends ComputeProvider {
  /** The provider of one host. Throws HostUnreachable for one that is not known. */
  on(hostId: string): ComputeProvider;
  /** Every machine of every host that answers. */
  survey(signal: AbortSignal): Promise<HostSurvey>;
  /** The edge of each host whose machines have networks of their own. Each is held to its own machines' rules. */
  edges(): ReadonlyMap<string, MachineEdge>;
  /** As `get`, asking every host: for a machine of which no object tells where it is. Throws HostUnreachable when only silence is left. */
  find(machineId: string, signal: AbortSignal): Promise<{ hostId: string; facts: MachineFacts } | undefined>;
}

const surveyWithinMs = 10_000;

/**
 * Brings each call to the host that its machine is on. A host that does not answer throws HostUnreachable; it is never taken
 * for one that has nothing.
 */
export function createHostsProvider(deps: HostsProviderDeps): HostsProvider {
  function on(hostId: string): ComputeProvider {
    const provider = deps.hosts().get(hostId);
    if (provider === undefined) throw new HostUnreachable(hostId, "this controller knows no such host.");
    return provider;
  }

  /** Undefined when it is nowhere. */
  async function homeOf(machineId: string, signal: AbortSignal): Promise<ComputeProvider | undefined> {
    const hostId = deps.hostOf(machineId);
    if (hostId === null) return undefined;
    if (hostId !== undefined) return on(hostId);
    const found = await find(machineId, signal);
    return found && on(found.hostId);
  }

  async function requireHome(machineId: string, signal: AbortSignal): Promise<ComputeProvider> {
    const home = await homeOf(machineId, signal);
    if (home === undefined) throw new ComputeFailure(`Machine ${machineId} is on no host.`);
    return home;
  }

  async function snapshotsAt(machineId: string, signal: AbortSignal): Promise<MachineSnapshots> {
    return requireSnapshots(await requireHome(machineId, signal));
  }

  /** Asks every host within the time; what one throws is its silence. */
  async function askAll<T>(
    question: (provider: ComputeProvider, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<{ answers: Map<string, T>; silent: Map<string, string> }> {
    const answers = new Map<string, T>();
    const silent = new Map<string, string>();
    const within = AbortSignal.any([signal, AbortSignal.timeout(deps.surveyWithinMs ?? surveyWithinMs)]);
    await Promise.all(
      [...deps.hosts()].map(async ([hostId, provider]) => {
        try {
          answers.set(hostId, await orAborted(question(provider, within), within));
        } catch (error) {
          if (signal.aborted) throw error;
          silent.set(hostId, error instanceof Error ? error.message : String(error));
        }
      }),
    );
    return { answers, silent };
  }

  async function survey(signal: AbortSignal): Promise<HostSurvey> {
    const { answers, silent } = await askAll((provider, within) => provider.list(within), signal);
    const machines = [...answers].flatMap(([hostId, listed]) => listed.map((facts) => ({ hostId, facts })));
    return { machines, silent };
  }

  async function find(machineId: string, signal: AbortSignal) {
    const { answers, silent } = await askAll((provider, within) => provider.get(machineId, within), signal);
    for (const [hostId, facts] of answers) if (facts !== undefined) return { hostId, facts };
    for (const [hostId, reason] of silent) throw new HostUnreachable(hostId, reason);
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
    start: async (id, enrollment, signal) => (await requireHome(id, signal)).start(id, enrollment, signal),
    stop: async (id, graceMs, signal) => (await homeOf(id, signal))?.stop(id, graceMs, signal),
    resize: async (id, plan, signal) => (await requireHome(id, signal)).resize(id, plan, signal),
    replaceImage: async (id, image, signal) => (await requireHome(id, signal)).replaceImage(id, image, signal),
    growDisk: async (id, diskBytes, signal) => (await requireHome(id, signal)).growDisk(id, diskBytes, signal),
    destroy: async (id, signal) => (await homeOf(id, signal))?.destroy(id, signal),
    fence: async (id, signal) => (await requireHome(id, signal)).fence(id, signal),
    get: async (id, signal) => (await homeOf(id, signal))?.get(id, signal),
    async list(signal) {
      const { machines, silent } = await survey(signal);
      // A list is the whole truth or none: who can do with a part asks for a survey.
      for (const [hostId, reason] of silent) throw new HostUnreachable(hostId, reason);
      return machines.map(({ facts }) => facts);
    },
    async images(signal) {
      const { answers } = await askAll((provider, within) => provider.images(within), signal);
      return unionOf([...answers.values()].flat());
    },
    snapshots: {
      take: async (id, name, starts, signal) => (await snapshotsAt(id, signal)).take(id, name, starts, signal),
      restore: async (id, name, starts, signal) => (await snapshotsAt(id, signal)).restore(id, name, starts, signal),
      remove: async (id, name, signal) => (await snapshotsAt(id, signal)).remove(id, name, signal),
    },
    guestKernels: {
      replace: async (id, kernel, signal) =>
        requireGuestKernels(await requireHome(id, signal)).replace(id, kernel, signal),
    },
    watch: (onChange) => watchAll(deps, onChange),
  };
}

/** A provider may be deaf to its signal: what it is asked for must not wait for it all the same. */
async function orAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(new Error("no answer in time."));
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([answer, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Follows the hosts that there are, also those that come later. */
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
