import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Context } from "./context.ts";

/**
 * Imports a file of the package that runs the platform on this host, such as "operator-password.ts". Undefined when the
 * command line was installed without it.
 */
export async function importLocalModule<T>(file: string): Promise<T | undefined> {
  const url = new URL(`../../local/src/${file}`, import.meta.url);
  return existsSync(fileURLToPath(url)) ? ((await import(url.href)) as T) : undefined;
}

/** An operator with its current password. */
export interface Operator {
  readonly username: string;
  readonly password: string;
}

/** Exports of operator-password.ts. */
interface LocalOperator {
  saveOperatorPassword(dataDirectory: string, operator: Operator): boolean;
}

/**
 * Stores a new password of the local installation's own operator in its files, which clients on this host and the next
 * start read. Returns false when the password belongs to another user.
 */
export async function storeOperatorPassword({ settings, note }: Context, operator: Operator): Promise<boolean> {
  if (settings.dataDirectory === undefined) return false;
  const local = await importLocalModule<LocalOperator>("operator-password.ts");
  const isStored = local !== undefined && local.saveOperatorPassword(settings.dataDirectory, operator);
  if (isStored) note("admin.json has the new password");
  return isStored;
}
