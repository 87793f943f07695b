import { execFile } from "node:child_process";
import type { Context } from "./context.ts";

/** Notes in one line that programs of this host do not resolve a name (`isUnresolved`), with the remedy. */
export async function noteUnresolvedName(context: Context, host: string): Promise<void> {
  if (await isUnresolved(context, host))
    context.note(`${host} does not resolve on this host yet; as root: ${context.program} dns install`);
}

/**
 * True if programs of this host do not resolve the name of a service of the local installation. False without getent,
 * or if it takes longer than a second.
 */
export async function isUnresolved(
  { settings, environment }: Pick<Context, "settings" | "environment">,
  host: string,
): Promise<boolean> {
  if (settings.dataDirectory === undefined) return false;
  const code = await new Promise<unknown>((resolve) => {
    execFile("getent", ["ahosts", host], { timeout: 1_000, env: { PATH: environment.PATH } }, (error) =>
      resolve(error?.code),
    );
  });
  const notFound = 2;
  return code === notFound;
}
