import { idOf, root } from "../store/resource.ts";
import type { Store, Watch } from "../store/store.ts";
import type { Member } from "./membership.ts";

/** A process of a controller: the next one may have its id. */
type Process = Pick<Member, "id" | "startedAt">;

/** How one controller asks another to drain: a key that the other one watches. */
export interface DrainRequests {
  ask(controller: Process, signal: AbortSignal): Promise<void>;
  /**
   * Calls back once on a request to this process. Requests are removed as they are read, also those to an earlier
   * process.
   */
  serve(controller: Process, drain: () => void): Watch;
}

const prefix = `${root}/drain/`;

export function createDrainRequests(store: Store): DrainRequests {
  return {
    async ask({ id, startedAt }, signal) {
      const put = { key: prefix + id, value: JSON.stringify({ startedAt }) };
      await store.commit({ conditions: [], puts: [put], deletes: [] }, signal);
    },
    serve({ id, startedAt }, drain) {
      let asked = false;
      return store.watch(prefix + id, {
        reset() {},
        put({ key, value }) {
          if (idOf(key) !== id) return;
          store.commit({ conditions: [], puts: [], deletes: [key] }).catch(() => undefined);
          // A controller of an older version names no process.
          const wanted = (JSON.parse(value) as Partial<Process>).startedAt ?? startedAt;
          if (asked || wanted !== startedAt) return;
          asked = true;
          drain();
        },
        delete() {},
        synced() {},
      });
    },
  };
}
