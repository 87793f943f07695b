import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { appKind, type AppObject } from "./app.ts";

/** Finds apps for a caller: what is not the caller's organization's does not exist. */
export interface AppAccess {
  /** Throws APP_NOT_FOUND. */
  require(id: string, call: Call): Stored<AppObject>;
  /** As `require`, and asks the store, for a change. */
  fresh(id: string, call: Call): Promise<Stored<AppObject>>;
}

export function createAppAccess(apps: Collection<AppObject>): AppAccess {
  function theirs(app: Stored<AppObject> | undefined, id: string, call: Call): Stored<AppObject> {
    const isTheirs = app?.object.metadata.organizationId === organizationOf(call);
    if (app === undefined || !isTheirs || !mayTouch(call, appKind.name, id))
      throw new HoldfastError("APP_NOT_FOUND", "There is no such app in the organization.");
    return app;
  }
  return {
    require: (id, call) => theirs(apps.get(id), id, call),
    async fresh(id, call) {
      theirs(apps.get(id), id, call);
      return theirs(await apps.fresh(id, call.signal), id, call);
    },
  };
}
