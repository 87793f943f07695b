import { idOf, root } from "../store/resource.ts";
import type { Store, Watch } from "../store/store.ts";

/** How one controller asks another to drain: a key that the other one watches. */
export interface DrainRequests {
  ask(controllerId: string, signal: AbortSignal): Promise<void>;
  /** Calls back once when this controller is asked. The request goes with it. */
  serve(controllerId: string, drain: () => void): Watch;
}

const prefix = `${root}/drain/`;

export function createDrainRequests(store: Store): DrainRequests {
  return {
    async ask(controllerId, signal) {
      await store.commit({ conditions: [], puts: [{ key: prefix + controllerId, value: "{}" }], deletes: [] }, signal);
    },
    serve(controllerId, drain) {
      let asked = false;
      return store.watch(prefix + controllerId, {
        reset() {},
        put({ key }) {
          if (asked || idOf(key) !== controllerId) return;
          asked = true;
          drain();
          // Left behind it would only be read again by nobody: ids of controllers are not used twice.
          void store.commit({ conditions: [], puts: [], deletes: [key] }).catch(() => undefined);
        },
        delete() {},
        synced() {},
      });
    },
  };
}
