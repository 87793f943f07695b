import { existsSync, mkdirSync } from "node:fs";
import { isAbsolute } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { readJson, readText, replaceFileSync } from "./files.ts";
import type { Installation } from "./installation.ts";
import type { Layout } from "./layout.ts";
import { masterKeyFileIn, objectsKeyFileIn } from "./secrets.ts";
import { UserError } from "./user-error.ts";
import type { PlatformParts } from "./platform-parts.ts";

/** Files for an installation with an existing object store. */
export interface KeyFiles {
  /** File of the master keys that the store's objects are sealed under. */
  readonly masterKey?: string | undefined;
  /** File with the credential of an S3 store. */
  readonly objectsKey?: string | undefined;
}

/** URL of a store, from a URL or an absolute directory. Throws a UserError for anything else. */
export function objectsUrlOf(text: string): string {
  if (isAbsolute(text)) return pathToFileURL(text).href;
  if (text.startsWith("file:///")) return pathToFileURL(fileURLToPath(text)).href;
  if (text.startsWith("s3://")) return text;
  throw new UserError(`--objects: ${text} is neither an absolute directory nor a URL with file: or s3:`);
}

/** Throws a UserError for a directory without any service. */
export function requireServices(url: string): void {
  if (!url.startsWith("file:") || existsSync(new URL(`${url}/services`))) return;
  throw new UserError(`--objects: there is no service in ${fileURLToPath(url)}`);
}

/** Throws a UserError if the installation has another object store, because that has its backups. */
export function requireSameStore(layout: Layout, objects: string): void {
  const installation = readJson<Installation>(layout.installation);
  if (installation === undefined) return;
  const existing = objectsUrl({ installation, layout });
  if (existing !== objects)
    throw new UserError(`${layout.root} has another object store, ${existing}; name another --data directory`);
}

/** Copies the files to the paths that the installation reads. Throws a UserError if other files are there. */
export function installKeyFiles({ keys }: Layout, { masterKey, objectsKey }: KeyFiles): void {
  mkdirSync(keys, { recursive: true, mode: 0o700 });
  if (masterKey !== undefined) installKeyFile(masterKey, masterKeyFileIn(keys), "master keys");
  if (objectsKey !== undefined) installKeyFile(objectsKey, objectsKeyFileIn(keys), "a key of the object store");
}

function installKeyFile(from: string, to: string, what: string): void {
  const text = readText(from);
  if (text === undefined) throw new UserError(`there is no file ${from}`);
  const existing = readText(to);
  if (existing === undefined) replaceFileSync(to, text, 0o600);
  else if (existing.trim() !== text.trim())
    throw new UserError(`${to} has other ${what} than ${from}; name another --data directory`);
}

type Parts = {
  readonly installation: Pick<PlatformParts["installation"], "objects">;
  readonly layout: Pick<PlatformParts["layout"], "objects">;
};

/** URL of the installation's object store, as controllers read it. */
export function objectsUrl({ installation, layout }: Parts): string {
  return installation.objects ?? pathToFileURL(layout.objects).href;
}

/** Directory of the object store; undefined for S3. */
export function objectsDirectory(parts: Parts): string | undefined {
  const url = objectsUrl(parts);
  return url.startsWith("file:") ? fileURLToPath(url) : undefined;
}

/** File with the credential of an S3 store, or with the secret of the process that serves a directory. */
export function objectsCredentialFile(parts: PlatformParts): string {
  const { objectsKeyFile, storeKeyFile } = parts.secrets;
  return objectsDirectory(parts) === undefined ? objectsKeyFile : storeKeyFile;
}
