import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { readJson, readOrCreateText, readText, replaceFileSync } from "../files.ts";
import {
  bootstrapFileIn,
  historyPasswordFileIn,
  masterKeyFileIn,
  objectsKeyFileIn,
  openControllerSecrets,
} from "../secrets.ts";
import { type CertificateWithKey, newTransportAuthority, newTransportCertificate } from "../transport-certificates.ts";
import { writeTransportFiles } from "../transport-pki.ts";
import { UserError } from "../user-error.ts";
import type { ControllerJoinFile } from "./controller-join-file.ts";
import {
  type ControllersPlan,
  readControllersPlan,
  type ControllersArguments,
  requireObjectsKey,
} from "./controllers-plan.ts";

/**
 * The directory that an operator prepares for an installation on several hosts: `shared/` has its plan, its secrets and
 * the authority's key, `history/` the certificate of the history's PostgreSQL, and `<address>.join.json` is what the
 * host with this address needs.
 */
interface StoredPlan extends ControllersPlan {
  /** Hosts that replaced a lost one: their members join an etcd that runs already. */
  readonly replaced: readonly string[];
}

export interface PrepareOptions extends ControllersArguments {
  /** File with the credential of the object store; the stored credential if absent. */
  readonly objectsKey?: string;
}

/** Paths of what was written. */
export interface PreparedFiles {
  readonly joinFiles: readonly string[];
  readonly shared: string;
  readonly history: string;
}

const sharedIn = (directory: string) => join(directory, "shared");
const planFileIn = (directory: string) => join(sharedIn(directory), "controllers.json");

/** Path of the join file of a host; colons of an address would be a host's name for scp. */
export function joinFileOf(directory: string, address: string): string {
  return join(directory, `${address.replaceAll(":", "-")}.join.json`);
}

/**
 * Prepares a directory, with new secrets at the first call and new certificates at each. Throws a UserError for an
 * argument that is missing or has another format, before anything is written.
 */
export async function prepareControllers(
  directory: string,
  { objectsKey: objectsKeyPath, ...given }: PrepareOptions,
  now: number,
): Promise<PreparedFiles> {
  const stored = readStoredPlan(directory);
  const plan = readControllersPlan(given, stored);
  const objectsKey = readObjectsKey(directory, objectsKeyPath);
  return writePrepared(directory, { ...plan, replaced: stored?.replaced ?? [] }, objectsKey, now);
}

/** Plan of a prepared directory. Throws a UserError if it is none. */
export function openPrepared(directory: string): ControllersPlan {
  const plan = readStoredPlan(directory);
  if (plan === undefined) throw new UserError(`${directory} is not a directory of \`holdfast controllers prepare\``);
  return plan;
}

/** Writes the join file of a host whose member joins an etcd that runs already. Returns its path. */
export async function prepareReplacement(directory: string, address: string, now: number): Promise<string> {
  const plan = readStoredPlan(directory);
  if (plan === undefined) throw new UserError(`${directory} has no plan`);
  const replaced = [...new Set([...plan.replaced, address])];
  await writePrepared(directory, { ...plan, replaced }, readObjectsKey(directory, undefined), now);
  return joinFileOf(directory, address);
}

/** A new certificate of a client of etcd, valid like the certificates of the hosts. */
export async function newEtcdCredentials(directory: string, now: number) {
  const authority = await openAuthority(sharedIn(directory), now);
  const client = await newTransportCertificate({ name: "operator", hosts: [] }, authority, now);
  return {
    ca: Buffer.from(authority.certificate),
    certificate: Buffer.from(client.certificate),
    privateKey: Buffer.from(client.key),
  };
}

/** Writes all files of a plan, also of one for a test whose store is a directory. */
export async function writePrepared(
  directory: string,
  stored: StoredPlan,
  objectsKey: string,
  now: number,
): Promise<PreparedFiles> {
  const { replaced, ...plan } = stored;
  const [shared, history] = [sharedIn(directory), join(directory, "history")];
  for (const each of [directory, shared]) {
    mkdirSync(each, { recursive: true });
    chmodSync(each, 0o700);
  }
  openControllerSecrets(shared);
  const installationId = readOrCreateText(join(shared, "installation-id"), 0o600, () => `${randomUUID()}\n`).trim();
  replaceFileSync(objectsKeyFileIn(shared), objectsKey, 0o600);
  replaceFileSync(planFileIn(directory), `${JSON.stringify(stored, null, 2)}\n`, 0o600);
  const authority = await openAuthority(shared, now);
  const certificateOf = (host: string) =>
    newTransportCertificate({ name: host, hosts: [host, "127.0.0.1"] }, authority, now);

  writeTransportFiles(history, { ...(await certificateOf(plan.history)), ca: authority.certificate }, undefined);
  const secret = (path: string) => readText(path) ?? "";
  const joinFiles: string[] = [];
  for (const address of plan.addresses) {
    const file: ControllerJoinFile = {
      kind: "controller",
      installation_id: installationId,
      address,
      ...plan,
      etcd_state: replaced.includes(address) ? "existing" : "new",
      secrets: {
        master_keys: secret(masterKeyFileIn(shared)),
        bootstrap: secret(bootstrapFileIn(shared)),
        history_password: secret(historyPasswordFileIn(shared)),
        objects_key: objectsKey,
      },
      authority: authority.certificate,
      etcd: await certificateOf(address),
      controller: await certificateOf(address),
    };
    const path = joinFileOf(directory, address);
    replaceFileSync(path, `${JSON.stringify(file, null, 2)}\n`, 0o600);
    joinFiles.push(path);
  }
  return { joinFiles, shared, history };
}

function readStoredPlan(directory: string): StoredPlan | undefined {
  return readJson<StoredPlan>(planFileIn(directory));
}

function readObjectsKey(directory: string, path = objectsKeyFileIn(sharedIn(directory))): string {
  const text = readText(path);
  if (text === undefined)
    throw new UserError(
      `--objects-key: there is no file ${path}; name one with the store's credential, {"id": "...", "secret": "..."}`,
    );
  requireObjectsKey(text, path);
  return text;
}

/** The authority of the directory, created at the first call. The certificate is written last: both exist, or none. */
async function openAuthority(shared: string, now: number): Promise<CertificateWithKey> {
  const [keyFile, certificateFile] = [join(shared, "ca.key"), join(shared, "ca.crt")];
  const [key, certificate] = [readText(keyFile), readText(certificateFile)];
  if (key !== undefined && certificate !== undefined) return { key, certificate };
  const created = await newTransportAuthority("Holdfast transport", now);
  replaceFileSync(keyFile, created.key, 0o600);
  replaceFileSync(certificateFile, created.certificate, 0o644);
  return created;
}
