import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Message } from "@bufbuild/protobuf";
import { mayTouch, organizationOf } from "#access/caller.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { appKind, type AppObject, type AppSpec } from "./app.ts";

/** Finds apps of the caller's organization. */
export interface AppAccess {
  /** The cached app; undefined if it does not exist, or is not accessible to the caller. */
  find(id: string, call: Call): Stored<AppObject> | undefined;
  /** The cached app. Throws APP_NOT_FOUND, also for an app of another organization. */
  require(id: string, call: Call): Stored<AppObject>;
  /** The app as the store has it, for a change. Throws APP_NOT_FOUND. */
  getCurrent(id: string, call: Call): Promise<Stored<AppObject>>;
}

export function createAppAccess(apps: Collection<AppObject>): AppAccess {
  const isOwn = (app: Stored<AppObject>, id: string, call: Call) =>
    app.object.metadata.organizationId === organizationOf(call) && mayTouch(call, appKind.name, id);

  function requireOwn(app: Stored<AppObject> | undefined, id: string, call: Call): Stored<AppObject> {
    if (app === undefined || !isOwn(app, id, call))
      throw new HoldfastError("APP_NOT_FOUND", "There is no such app in the organization.");
    return app;
  }
  return {
    find(id, call) {
      const app = apps.get(id);
      return app !== undefined && isOwn(app, id, call) ? app : undefined;
    },
    require: (id, call) => requireOwn(apps.get(id), id, call),
    async getCurrent(id, call) {
      requireOwn(apps.get(id), id, call);
      return requireOwn(await apps.getCurrent(id, call.signal), id, call);
    },
  };
}

/**
 * Changes the spec of an app in one transaction with the audit entry, and with the stored response if `answer` is
 * present.
 */
export type ChangeApp = (
  appId: string,
  call: Call,
  audit: { readonly action: string; readonly detail?: string },
  edit: (app: AppObject) => AppSpec,
  answer?: Message,
) => Promise<AppObject>;
