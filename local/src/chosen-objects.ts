import { existsSync, mkdirSync } from "node:fs";
import { isAbsolute } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { readJson, readText, writeAtomically } from "./files.ts";
import type { Installation } from "./installation.ts";
import { objectsUrl } from "./installation-objects.ts";
import type { Layout } from "./layout.ts";
import { masterKeyFileIn, objectsKeyFileIn } from "./secrets.ts";
import { UserError } from "./user-error.ts";

/** Files that an installation of a chosen object store begins with. */
export interface ChosenFiles {
  /** Master keys that what is in the store was sealed under. */
  readonly masterKey?: string | undefined;
  /** Credential of an S3 store. */
  readonly objectsKey?: string | undefined;
}

/** URL of a store that is given as one, or as an absolute directory. Throws a UserError for anything else. */
export function objectsUrlOf(text: string): string {
  if (isAbsolute(text)) return pathToFileURL(text).href;
  if (text.startsWith("file:///")) return pathToFileURL(fileURLToPath(text)).href;
  if (text.startsWith("s3://")) return text;
  throw new UserError(`--objects: ${text} is neither an absolute directory nor a URL with file: or s3:`);
}

/** Throws a UserError for a directory in which no service has left anything. */
export function requireServices(url: string): void {
  if (!url.startsWith("file:") || existsSync(new URL(`${url}/services`))) return;
  throw new UserError(`--objects: there is nothing of a service in ${fileURLToPath(url)}`);
}

/** Throws a UserError for an installation that has another store: whatever it has backed up lies there. */
export function requireSameStore(layout: Layout, objects: string): void {
  const installation = readJson<Installation>(layout.installation);
  if (installation === undefined) return;
  const own = objectsUrl({ installation, layout });
  if (own !== objects)
    throw new UserError(`${layout.root} has another object store, ${own}; name another --data directory`);
}

/** Copies them to where the installation reads them. Throws a UserError when it has others there. */
export function takeFiles({ keys }: Layout, { masterKey, objectsKey }: ChosenFiles): void {
  mkdirSync(keys, { recursive: true, mode: 0o700 });
  if (masterKey !== undefined) takeFile(masterKey, masterKeyFileIn(keys), "master keys");
  if (objectsKey !== undefined) takeFile(objectsKey, objectsKeyFileIn(keys), "a key of the object store");
}

function takeFile(from: string, to: string, what: string): void {
  const text = readText(from);
  if (text === undefined) throw new UserError(`there is no file ${from}`);
  const own = readText(to);
  if (own === undefined) writeAtomically(to, text, 0o600);
  else if (own.trim() !== text.trim())
    throw new UserError(`${to} has other ${what} than ${from}; name another --data directory`);
}
