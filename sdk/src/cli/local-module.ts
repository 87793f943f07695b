import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * A file of the checkout's package that runs the platform on this host; undefined where the command came without it.
 */
export async function localModule<T>(file: string): Promise<T | undefined> {
  const url = new URL(`../../../local/src/${file}`, import.meta.url);
  return existsSync(fileURLToPath(url)) ? ((await import(url.href)) as T) : undefined;
}
