import type { Membership } from "#kernel/runtime/membership.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Rights } from "./rights.ts";

/** Ends the rights of machines at all controllers that may grant them. */
export interface Revocation {
  /**
   * Has every controller refuse rights to the machine under this term. Resolves to the milliseconds since the last
   * grant of one; undefined while a controller has not confirmed. Call it only once the store no longer has the machine
   * as the primary, which controllers that start later read.
   */
  revoke(machineId: string, term: bigint, signal: AbortSignal): Promise<number | undefined>;
  close(): void;
}

export interface RevocationDeps {
  readonly membership: Pick<Membership, "id" | "members" | "member" | "listed" | "subscribe">;
  readonly peers: Pick<PeerCalls, "revokeRight">;
  readonly rights: Pick<Rights, "revoke">;
  /** Counts suspend. */
  readonly bootMs: () => number;
}

const answerWithinMs = 1_000;
/** Rights that a controller granted may still count this long after it left. */
const rememberedMs = 60_000;

export function createRevocation({ membership, peers, rights, bootMs }: RevocationDeps): Revocation {
  const { id } = membership;
  const begunMs = bootMs();
  /** Controllers that are gone, or were restarted, and since when by what is known here. */
  const gone = new Map<string, number>();
  let known = new Map<string, number>();

  function look(): void {
    const now = bootMs();
    const there = new Map(membership.members().map((each) => [each.id, each.startedAt]));
    for (const [each, startedAt] of known) if (each !== id && there.get(each) !== startedAt) gone.set(each, now);
    for (const [each, at] of gone) if (now - at > rememberedMs) gone.delete(each);
    known = there;
  }
  const watch = membership.subscribe(look);
  look();

  return {
    async revoke(machineId, term, signal) {
      const listed = await membership.listed(signal);
      look();
      // A controller that was known a moment ago and is no longer listed has only just left.
      const unlisted = [...known.keys()].some((each) => each !== id && !listed.includes(each));
      const asked = listed
        .filter((each) => each !== id)
        .map(async (each) => {
          const address = membership.member(each)?.address;
          if (address === undefined || address === "") throw new Error(`nobody knows where ${each} listens`);
          return peers.revokeRight(address, machineId, term, answerWithinMs);
        });
      const answers = await Promise.all(asked).catch(() => undefined);
      if (answers === undefined || unlisted) return undefined;
      const now = bootMs();
      // Who was there before this controller was, nobody remembers.
      const since = [now - begunMs, ...[...gone.values()].map((at) => now - at)];
      return Math.min(rights.revoke(machineId, term), ...answers, ...since);
    },
    close: () => watch.close(),
  };
}
