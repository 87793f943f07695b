import type { Call } from "@holdfast/common/call.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { AuthObject, AuthSpec } from "./auth.ts";

/** Changes the spec of a sign-in in one transaction with the audit entry. */
export type ChangeAuth = (
  appId: string,
  call: Call,
  audit: { readonly action: string; readonly detail?: string },
  edit: (auth: AuthObject) => Partial<AuthSpec>,
  more?: (unit: UnitOfWork, after: AuthObject) => void,
) => Promise<AuthObject>;
