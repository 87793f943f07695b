import { idOf, root } from "../store/resource.ts";
import type { Store, Watch } from "../store/store.ts";
import type { RegisteredController } from "./controller-registry.ts";

/** One process of a controller: a restarted controller may have the same id. */
type Process = Pick<RegisteredController, "id" | "startedAt">;

/** Requests to a controller to drain. Each is a key in etcd that the target watches. */
export interface DrainRequests {
  request(controller: Process, signal: AbortSignal): Promise<void>;
  /**
   * Calls back once on a request to this process. Requests are deleted when they are read, including requests to an
   * earlier process with the same id.
   */
  serve(controller: Process, drain: () => void): Watch;
}

const prefix = `${root}/drain/`;

export function createDrainRequests(store: Store): DrainRequests {
  return {
    async request({ id, startedAt }, signal) {
      const put = { key: prefix + id, value: JSON.stringify({ startedAt }) };
      await store.commit({ conditions: [], puts: [put], deletes: [] }, signal);
    },
    serve({ id, startedAt }, drain) {
      let isRequested = false;
      return store.watch(prefix + id, {
        reset() {},
        put({ key, value }) {
          if (idOf(key) !== id) return;
          store.commit({ conditions: [], puts: [], deletes: [key] }).catch(() => undefined);
          const { startedAt: targetStartedAt } = JSON.parse(value) as Pick<Process, "startedAt">;
          if (isRequested || targetStartedAt !== startedAt) return;
          isRequested = true;
          drain();
        },
        delete() {},
        synced() {},
      });
    },
  };
}
