import { SourceRefused } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { call, OpensearchRefusal } from "../api.ts";
import { platform, repositoryDirectory, securityIndex } from "../layout.ts";

const repositoryPath = `/_snapshot/${platform}`;
/** Path of the only snapshot that a repository has. */
export const snapshotPath = `${repositoryPath}/backup`;

/** A snapshot as the engine describes it. */
export interface SnapshotInfo {
  /** `IN_PROGRESS`, `SUCCESS`, `PARTIAL` or `FAILED`. */
  readonly state: string;
  readonly indices: readonly string[];
  readonly data_streams?: readonly string[];
  readonly failures?: readonly { readonly index?: string; readonly reason?: string }[];
  /** The cause of a failure of the whole snapshot. */
  readonly reason?: string;
}

/** Creates a repository, which is empty if no member has files of it. The engine creates the directory of each. */
export async function createRepository(instance: Instance, bytesPerSecond: number, signal: AbortSignal): Promise<void> {
  await register(instance, { max_snapshot_bytes_per_sec: `${Math.round(bytesPerSecond)}b` }, signal);
}

/** Registers a repository whose files are already there. The engine does not change it. */
export function openRepository(instance: Instance, signal: AbortSignal): Promise<void> {
  return register(instance, { readonly: true, max_restore_bytes_per_sec: "0b" }, signal);
}

async function register(instance: Instance, settings: object, signal: AbortSignal): Promise<void> {
  // The directory that each member's settings permit: its path differs between members.
  const body = { type: "fs", settings: { location: ".", ...settings } };
  await call(instance, { method: "PUT", path: `${repositoryPath}?verify=false`, body }, signal);
}

/** Removes the repository and this member's files of it, and ends a snapshot or a restore that uses it. */
export async function removeRepository(
  { run }: Pick<EngineDeps, "run">,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  try {
    await unregister(instance, signal);
  } catch (error) {
    if (!(error instanceof OpensearchRefusal)) throw error;
    // A snapshot uses it.
    await cancelSnapshot(instance, signal);
    await unregister(instance, signal);
  }
  await run(["rm", "-rf", repositoryDirectory(instance)], { signal });
}

/** Ends a snapshot that runs, and removes its files. */
export async function cancelSnapshot(instance: Instance, signal: AbortSignal): Promise<void> {
  try {
    await call(instance, { method: "DELETE", path: snapshotPath }, signal);
  } catch (error) {
    // Such as one that does not exist, or whose repository has lost its files.
    if (!(error instanceof OpensearchRefusal)) throw error;
  }
}

export async function unregister(instance: Instance, signal: AbortSignal): Promise<void> {
  try {
    await call(instance, { method: "DELETE", path: repositoryPath }, signal);
  } catch (error) {
    if (!(error instanceof OpensearchRefusal) || error.status !== 404) throw error;
  }
}

/** Starts a snapshot of all indices of users, with templates, pipelines and stored scripts. */
export async function startSnapshot(instance: Instance, signal: AbortSignal): Promise<void> {
  const body = {
    indices: `*,-${securityIndex}*,-.${platform}*`,
    expand_wildcards: "all",
    ignore_unavailable: true,
    include_global_state: true,
    partial: false,
  };
  await call(instance, { method: "PUT", path: `${snapshotPath}?wait_for_completion=false`, body }, signal);
}

export async function readSnapshot(instance: Instance, signal: AbortSignal): Promise<SnapshotInfo> {
  const answer = await call(instance, { method: "GET", path: snapshotPath }, signal);
  const [snapshot] = (answer as { snapshots: readonly SnapshotInfo[] }).snapshots;
  if (snapshot === undefined) throw new Error("the engine has no snapshot");
  return snapshot;
}

/** Throws SourceRefused for a snapshot that ended without all data. */
export function requireSuccess({ state, failures = [], reason }: SnapshotInfo): void {
  if (state === "IN_PROGRESS" || state === "SUCCESS") return;
  const [failure] = failures;
  const cause = failure?.reason ?? reason ?? `it ended as ${state}`;
  throw new SourceRefused(`OpenSearch refused the snapshot${failure?.index ? ` of ${failure.index}` : ""}: ${cause}`);
}

/** A refusal by the engine as the failure of a backup, which users read; any other error is returned. */
export function asSourceRefused(error: unknown): unknown {
  if (!(error instanceof OpensearchRefusal)) return error;
  // The engine begins with the name and the id of the snapshot.
  const reason = error.message.replace(new RegExp(`^\\[${platform}:[^\\]]*\\] `), "");
  return new SourceRefused(`OpenSearch refused the snapshot: ${reason}`, { cause: error });
}
