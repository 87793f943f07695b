import type { Log } from "@holdfast/common/log.ts";
import type { Membership } from "#kernel/runtime/membership.ts";
import { root } from "#kernel/store/resource.ts";
import type { Lease, Store } from "#kernel/store/store.ts";
import type { SessionFacts } from "./session-facts.ts";
import type { Session } from "./session.ts";

const prefix = `${root}/session/`;

/** Value of a presence key: the holder of the machine's stream. */
interface Entry {
  readonly facts: SessionFacts;
  /** Start of the holder's process: a restarted controller of the same name holds none of its former streams. */
  readonly holderStartedAt: number;
  readonly modRevision: bigint;
}

type EntryJson = SessionFacts & { readonly holderStartedAt: number };

/** Holders of machines' streams, known to every controller. The keys live under the holders' leases. */
export interface Presence {
  get(machineId: string): SessionFacts | undefined;
  entries(): IterableIterator<[machineId: string, facts: SessionFacts]>;
  /** Writes the session's key; resolves false when a newer stream of the machine is elsewhere already. */
  enter(session: Session, lease: Lease): Promise<boolean>;
  /** Writes the key of a stream that outlived its lease; resolves false when the machine has a stream elsewhere by now. */
  renew(session: Session, lease: Lease): Promise<boolean>;
  /** Takes the key back unless a newer stream has written it. */
  leave(session: Session): void;
  /** Takes back own keys that had no stream at this call and the one before. */
  sweep(hasStream: (machineId: string) => boolean): void;
  close(): void;
}

export interface PresenceDeps {
  readonly store: Store;
  readonly membership: Pick<Membership, "id" | "startedAt" | "members" | "subscribe">;
  readonly log: Log;
  /** A key changed; `taken` says at which revision another controller's stream took the machine. */
  readonly onChange: (machineId: string, taken: bigint | undefined) => void;
}

export function createPresence({ store, membership, log, onChange }: PresenceDeps): Presence {
  const { id: controllerId, startedAt } = membership;
  const entries = new Map<string, Entry>();
  /** When each controller that is there was started. */
  let holders = startsOf(membership);

  /** Entries and members come by ways of their own: an entry counts when its holder is there as well. */
  function isHeld({ facts, holderStartedAt }: Entry): boolean {
    return holderStartedAt === (facts.controllerId === controllerId ? startedAt : holders.get(facts.controllerId));
  }

  const memberWatch = membership.subscribe(() => {
    const before = holders;
    holders = startsOf(membership);
    for (const [machineId, { facts }] of entries) {
      if (before.get(facts.controllerId) !== holders.get(facts.controllerId)) onChange(machineId, undefined);
    }
  });
  // After a reset the listing tells what is there; what it does not tell is gone.
  let unseen: Set<string> | undefined;

  const watch = store.watch(prefix, {
    reset() {
      unseen = new Set(entries.keys());
    },
    put({ key, value, modRevision }) {
      const machineId = key.slice(prefix.length);
      unseen?.delete(machineId);
      const { holderStartedAt, ...told } = JSON.parse(value) as EntryJson;
      // A controller of an earlier version tells less.
      const facts = { ...told, agentDigest: told.agentDigest ?? "", keeperProtocol: told.keeperProtocol ?? 0 };
      entries.set(machineId, { facts, holderStartedAt, modRevision });
      onChange(machineId, facts.controllerId === controllerId ? undefined : modRevision);
    },
    delete(key, revision) {
      const machineId = key.slice(prefix.length);
      // What was written here a moment ago is newer than the end of what stood there before.
      if ((entries.get(machineId)?.modRevision ?? 0n) < revision) forget(machineId);
    },
    synced() {
      const gone = unseen;
      unseen = undefined;
      for (const machineId of gone ?? []) forget(machineId);
    },
  });

  let orphans = new Map<string, bigint>();

  function forget(machineId: string): void {
    if (entries.delete(machineId)) onChange(machineId, undefined);
  }

  /** One try: a key that stays is found by the sweep, or ends with the lease. */
  function takeBack(machineId: string, modRevision: bigint): void {
    const key = `${prefix}${machineId}`;
    store
      .commit({ conditions: [{ key, modRevision }], puts: [], deletes: [key] })
      .catch((error: unknown) => log.warn("presence not taken back", { machine: machineId, error: String(error) }));
  }

  function putOf({ machineId, hello, connectedAt }: Session, lease: Lease) {
    const facts: SessionFacts = {
      controllerId,
      connectedAt,
      agentVersion: hello?.agentVersion ?? "",
      agentDigest: hello?.agentDigest ?? "",
      keeperProtocol: hello?.keeperProtocol ?? 0,
      rights: hello?.rights ?? 0,
      bootId: hello?.bootId ?? "",
    };
    const value: EntryJson = { ...facts, holderStartedAt: startedAt };
    return { facts, put: { key: `${prefix}${machineId}`, value: JSON.stringify(value), lease } };
  }

  /** Notes what was written; false when another controller's stream was written after it, of which the watch may have told already. */
  function note(session: Session, facts: SessionFacts, modRevision: bigint): boolean {
    session.presence = modRevision;
    const known = entries.get(session.machineId);
    if (known !== undefined && known.modRevision > modRevision) return known.facts.controllerId === controllerId;
    entries.set(session.machineId, { facts, holderStartedAt: startedAt, modRevision });
    onChange(session.machineId, undefined);
    return true;
  }

  return {
    get(machineId) {
      const entry = entries.get(machineId);
      return entry !== undefined && isHeld(entry) ? entry.facts : undefined;
    },
    *entries() {
      for (const [machineId, entry] of entries) if (isHeld(entry)) yield [machineId, entry.facts];
    },
    async enter(session, lease) {
      const { facts, put } = putOf(session, lease);
      const done = await store.commit({ conditions: [], puts: [put], deletes: [] });
      if (!done.committed) throw new Error("a put without conditions was not committed");
      return note(session, facts, done.revision);
    },
    async renew(session, lease) {
      const { facts, put } = putOf(session, lease);
      // With its lease the key goes, maybe just now; until then it is as this stream wrote it. Anything else is another stream's.
      for (const modRevision of [0n, session.presence, 0n]) {
        const done = await store.commit({ conditions: [{ key: put.key, modRevision }], puts: [put], deletes: [] });
        if (done.committed) return note(session, facts, done.revision);
      }
      return false;
    },
    leave({ machineId, presence }) {
      if (presence === 0n) return;
      if (entries.get(machineId)?.modRevision === presence) forget(machineId);
      takeBack(machineId, presence);
    },
    sweep(hasStream) {
      const now = new Map<string, bigint>();
      for (const [machineId, { facts, modRevision }] of entries) {
        if (facts.controllerId !== controllerId || hasStream(machineId)) continue;
        if (orphans.get(machineId) === modRevision) takeBack(machineId, modRevision);
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

function startsOf(membership: Pick<Membership, "members">): Map<string, number> {
  return new Map(membership.members().map(({ id, startedAt }) => [id, startedAt]));
}
