import type { Membership } from "#kernel/runtime/membership.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Silence } from "./rights.ts";

/** What the other controllers hear of primaries whose agents' streams they hold. */
export interface SilenceElsewhere {
  /**
   * As that controller answered a moment ago; undefined for a machine that asks for its right as it should, and while
   * that controller does not answer. It does not grow between two answers: the machine may have asked meanwhile.
   */
  heard(controllerId: string, machineId: string): Silence | undefined;
  close(): void;
}

export interface SilenceElsewhereDeps {
  readonly membership: Pick<Membership, "id" | "members">;
  readonly peers: Pick<PeerCalls, "listSilent">;
}

const askEveryMs = 1_000;

export function createSilenceElsewhere({ membership, peers }: SilenceElsewhereDeps): SilenceElsewhere {
  const told = new Map<string, ReadonlyMap<string, Silence>>();
  const asking = new Set<string>();

  function ask(controllerId: string, address: string): void {
    asking.add(controllerId);
    peers
      .listSilent(address, askEveryMs)
      .then((silent) => told.set(controllerId, silent))
      // What it said before may be over; one of an older release never says anything.
      .catch(() => told.delete(controllerId))
      .finally(() => asking.delete(controllerId));
  }

  const timer = setInterval(() => {
    const others = membership.members().filter(({ id, address }) => id !== membership.id && address !== "");
    for (const id of told.keys()) if (!others.some((each) => each.id === id)) told.delete(id);
    for (const { id, address } of others) if (!asking.has(id)) ask(id, address);
  }, askEveryMs).unref();

  return {
    heard: (controllerId, machineId) => told.get(controllerId)?.get(machineId),
    close: () => clearInterval(timer),
  };
}
