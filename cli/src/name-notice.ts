import { execFile } from "node:child_process";
import type { Context } from "./context.ts";

/**
 * Notes in one line that programs of this host do not resolve the name of a service of the local installation, with the
 * command that changes it. Without getent, or if it takes longer than a second, prints nothing.
 */
export async function noteUnresolvedName(
  { settings, note, program, environment }: Context,
  host: string,
): Promise<void> {
  if (settings.dataDirectory === undefined) return;
  const code = await new Promise<unknown>((resolve) => {
    execFile("getent", ["ahosts", host], { timeout: 1_000, env: { PATH: environment.PATH } }, (error) =>
      resolve(error?.code),
    );
  });
  const notFound = 2;
  if (code === notFound) note(`${host} does not resolve on this host yet; as root: ${program} dns install`);
}
