import type { Log } from "@holdfast/common/log.ts";
import { storedFormat } from "@holdfast/common/stored-names.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import { root } from "#kernel/store/resource.ts";
import type { Lease, Store } from "#kernel/store/store.ts";
import type { SessionFacts } from "./session-facts.ts";
import type { AgentSession } from "./session.ts";

const prefix = `${root}/session/`;

/** A presence key: the controller that has the machine's stream. */
interface Entry {
  readonly facts: SessionFacts;
  /** Start time of the controller's process: a restarted controller with the same id has none of the streams. */
  readonly controllerStartedAt: number;
  readonly modRevision: bigint;
}

type EntryJson = SessionFacts & { readonly controllerStartedAt: number };

/** Format of presence keys, which controllers of the previous release read as well. */
const entryFormat = storedFormat<EntryJson>({
  primaryLeaseVersion: "rights",
  controllerStartedAt: "holderStartedAt",
});

/**
 * The controller that has each machine's stream, shared by all controllers through presence keys. A key is written
 * under its controller's lease; the last writer has the machine's stream.
 */
export interface Presence {
  get(machineId: string): SessionFacts | undefined;
  entries(): IterableIterator<[machineId: string, facts: SessionFacts]>;
  /** Writes the session's key. Resolves to false if another controller wrote the machine's key afterwards. */
  enter(session: AgentSession, lease: Lease): Promise<boolean>;
  /**
   * Writes the key of a stream that outlived its lease. Resolves to false if the machine has a stream elsewhere by now.
   */
  renew(session: AgentSession, lease: Lease): Promise<boolean>;
  /** Deletes the session's key, unless a newer stream has written it. */
  leave(session: AgentSession): void;
  /** Deletes keys of this controller that had no stream at this call and at the previous one. */
  sweep(hasStream: (machineId: string) => boolean): void;
  close(): void;
}

export interface PresenceDeps {
  readonly store: Store;
  readonly controllerRegistry: Pick<ControllerRegistry, "id" | "startedAt" | "controllers" | "subscribe">;
  readonly log: Log;
  /**
   * Called when a key changed. `taken`: revision at which a stream at another controller became the machine's stream.
   */
  readonly onChange: (machineId: string, taken: bigint | undefined) => void;
}

export function createPresence({ store, controllerRegistry, log, onChange }: PresenceDeps): Presence {
  const { id: controllerId, startedAt } = controllerRegistry;
  const entries = new Map<string, Entry>();
  /** Start time of each registered controller, by its id. */
  let starts = startsOf(controllerRegistry);

  /** True if the entry's controller is registered. Presence keys and controllers are watched separately. */
  function isControllerAlive({ facts, controllerStartedAt }: Entry): boolean {
    return controllerStartedAt === (facts.controllerId === controllerId ? startedAt : starts.get(facts.controllerId));
  }

  const memberWatch = controllerRegistry.subscribe(() => {
    const before = starts;
    starts = startsOf(controllerRegistry);
    for (const [machineId, { facts }] of entries) {
      if (before.get(facts.controllerId) !== starts.get(facts.controllerId)) onChange(machineId, undefined);
    }
  });
  // After a watch reset the store lists all keys; keys missing from the list were deleted.
  let unseen: Set<string> | undefined;

  const watch = store.watch(prefix, {
    reset() {
      unseen = new Set(entries.keys());
    },
    put({ key, value, modRevision }) {
      const machineId = key.slice(prefix.length);
      unseen?.delete(machineId);
      const { controllerStartedAt, ...facts } = entryFormat.parse(value);
      entries.set(machineId, { facts, controllerStartedAt, modRevision });
      onChange(machineId, facts.controllerId === controllerId ? undefined : modRevision);
    },
    delete(key, revision) {
      const machineId = key.slice(prefix.length);
      // The deletion of an earlier key must not remove a newer one that was just written here.
      if ((entries.get(machineId)?.modRevision ?? 0n) < revision) removeEntry(machineId);
    },
    synced() {
      const deleted = unseen;
      unseen = undefined;
      for (const machineId of deleted ?? []) removeEntry(machineId);
    },
  });

  let orphans = new Map<string, bigint>();

  function removeEntry(machineId: string): void {
    if (entries.delete(machineId)) onChange(machineId, undefined);
  }

  /** Deletes a key. It is tried once: after a failure the sweep deletes the key, or it is deleted with the lease. */
  function deleteKey(machineId: string, modRevision: bigint): void {
    const key = `${prefix}${machineId}`;
    store
      .commit({ conditions: [{ key, modRevision }], puts: [], deletes: [key] })
      .catch((error: unknown) => log.warn("presence key not deleted", { machine: machineId, error: String(error) }));
  }

  function putOf({ machineId, hello, connectedAt }: AgentSession, lease: Lease) {
    const facts: SessionFacts = {
      controllerId,
      connectedAt,
      agentVersion: hello?.agentVersion ?? "",
      agentDigest: hello?.agentDigest ?? "",
      keeperProtocol: hello?.keeperProtocol ?? 0,
      primaryLeaseVersion: hello?.primaryLeaseVersion ?? 0,
      ...(hello !== undefined && hello.workloads.length > 0 && { workloads: hello.workloads }),
      bootId: hello?.bootId ?? "",
    };
    const value: EntryJson = { ...facts, controllerStartedAt: startedAt };
    return { facts, put: { key: `${prefix}${machineId}`, value: entryFormat.format(value), lease } };
  }

  /** Records a write. Returns false if the watch has already reported a later key of another controller. */
  function recordWrite(session: AgentSession, facts: SessionFacts, modRevision: bigint): boolean {
    session.presence = modRevision;
    const current = entries.get(session.machineId);
    if (current !== undefined && current.modRevision > modRevision) return current.facts.controllerId === controllerId;
    entries.set(session.machineId, { facts, controllerStartedAt: startedAt, modRevision });
    onChange(session.machineId, undefined);
    return true;
  }

  return {
    get(machineId) {
      const entry = entries.get(machineId);
      return entry !== undefined && isControllerAlive(entry) ? entry.facts : undefined;
    },
    *entries() {
      for (const [machineId, entry] of entries) if (isControllerAlive(entry)) yield [machineId, entry.facts];
    },
    async enter(session, lease) {
      const { facts, put } = putOf(session, lease);
      const done = await store.commit({ conditions: [], puts: [put], deletes: [] });
      if (!done.committed) throw new Error("etcd did not commit a put without conditions");
      return recordWrite(session, facts, done.revision);
    },
    async renew(session, lease) {
      const { facts, put } = putOf(session, lease);
      // The key is deleted with its lease, perhaps during this loop; until then it has the revision that this stream
      // wrote. Any other revision belongs to another stream.
      for (const modRevision of [0n, session.presence, 0n]) {
        const done = await store.commit({ conditions: [{ key: put.key, modRevision }], puts: [put], deletes: [] });
        if (done.committed) return recordWrite(session, facts, done.revision);
      }
      return false;
    },
    leave({ machineId, presence }) {
      if (presence === 0n) return;
      if (entries.get(machineId)?.modRevision === presence) removeEntry(machineId);
      deleteKey(machineId, presence);
    },
    sweep(hasStream) {
      const now = new Map<string, bigint>();
      for (const [machineId, { facts, modRevision }] of entries) {
        if (facts.controllerId !== controllerId || hasStream(machineId)) continue;
        if (orphans.get(machineId) === modRevision) deleteKey(machineId, modRevision);
        else now.set(machineId, modRevision);
      }
      orphans = now;
    },
    close() {
      watch.close();
      memberWatch.close();
    },
  };
}

function startsOf(controllerRegistry: Pick<ControllerRegistry, "controllers">): Map<string, number> {
  return new Map(controllerRegistry.controllers().map(({ id, startedAt }) => [id, startedAt]));
}
