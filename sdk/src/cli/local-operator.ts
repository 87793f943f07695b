import type { Context } from "./context.ts";
import { localModule } from "./local-module.ts";

/** An operator with the password in use now. */
export interface Operator {
  readonly username: string;
  readonly password: string;
}

/** What the package that runs the platform on this host gives for a new password. */
interface LocalOperator {
  keepOperatorPassword(dataDirectory: string, operator: Operator): boolean;
}

/**
 * Keeps the new password of a local installation's own operator in its files, which clients of this host and the next
 * start read. False when it is somebody else's password.
 */
export async function keepPassword({ settings, note }: Context, operator: Operator): Promise<boolean> {
  if (settings.dataDirectory === undefined) return false;
  const local = await localModule<LocalOperator>("operator-password.ts");
  const isKept = local !== undefined && local.keepOperatorPassword(settings.dataDirectory, operator);
  if (isKept) note("admin.json has the new password");
  return isKept;
}
