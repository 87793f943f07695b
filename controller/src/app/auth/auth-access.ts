import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { AppAccess } from "../app/app-access.ts";
import type { AuthObject, AuthSpec } from "./auth.ts";

/** Finds the sign-in of an app for a caller. */
export interface AuthAccess {
  /** The cached sign-in. Throws APP_NOT_FOUND and AUTH_NOT_ENABLED. */
  require(appId: string, call: Call): Stored<AuthObject>;
  /** The sign-in as the store has it, for a change. Throws APP_NOT_FOUND and AUTH_NOT_ENABLED. */
  getCurrent(appId: string, call: Call): Promise<Stored<AuthObject>>;
  /** The cached sign-in in state Active. Throws AUTH_NOT_ACTIVE, and the errors of `require`. */
  active(appId: string, call: Call): Stored<AuthObject>;
}

export function createAuthAccess(apps: AppAccess, auths: Collection<AuthObject>): AuthAccess {
  function found(auth: Stored<AuthObject> | undefined): Stored<AuthObject> {
    if (auth === undefined) throw new HoldfastError("AUTH_NOT_ENABLED", "The app has no sign-in.");
    return auth;
  }
  const require: AuthAccess["require"] = (appId, call) => {
    apps.require(appId, call);
    return found(auths.get(appId));
  };
  return {
    require,
    async getCurrent(appId, call) {
      apps.require(appId, call);
      return found(await auths.getCurrent(appId, call.signal));
    },
    active(appId, call) {
      const auth = require(appId, call);
      requireActive(auth.object);
      return auth;
    },
  };
}

export function requireActive({ status }: AuthObject): void {
  if (status.state === "Active") return;
  throw new HoldfastError("AUTH_NOT_ACTIVE", `The sign-in is ${status.state}.`, { members: { status: status.state } });
}

/** Changes the spec of a sign-in in one transaction with the audit entry. */
export type ChangeAuth = (
  appId: string,
  call: Call,
  audit: { readonly action: string; readonly detail?: string },
  edit: (auth: AuthObject) => Partial<AuthSpec>,
  more?: (unit: Changes, after: AuthObject) => void,
) => Promise<AuthObject>;
