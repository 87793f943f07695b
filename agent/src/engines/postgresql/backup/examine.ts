import { mkdir, rm } from "node:fs/promises";
import { ProgramFailed } from "../../../os/program.ts";
import type { Examination, Finding, RecoveryTarget } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../instance.ts";
import { summarizeNames } from "../../summarize-names.ts";
import { invalidReason, listDatabases } from "../database-list.ts";
import { platform, program } from "../layout.ts";
import { programEnvironment } from "../platform-client.ts";
import { type PrivateServer, type RecoveryDeps, startPrivateServer } from "./private-server.ts";

/** The platform commits a heartbeat every 5 s. */
const heartbeatWithinMs = 6_000;

/** Runs `pg_amcheck` over all tables and indexes, and measures how close to its target the recovery came. */
export async function examine(
  deps: RecoveryDeps,
  instance: Instance,
  { target, scratch }: Examination,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  await rm(scratch, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true, mode: 0o700 });
  const server = await startPrivateServer(deps, instance, { scratch, recovery: {} }, signal);
  try {
    // Waits until the server is up, too.
    const heartbeat = await lastHeartbeat(server);
    const { invalid, closed } = await listDatabases(server);
    const structure = await amcheck(deps, instance, server, closed, signal);
    await server.stop();
    return [structure, ...databasesFinding(invalid), ...heartbeatFinding(heartbeat, target)];
  } finally {
    await server.kill();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function lastHeartbeat(server: PrivateServer): Promise<Date | undefined> {
  const [row] = await server.rows<{ at: Date }>(`SELECT at FROM ${platform}.heartbeat`);
  return row?.at;
}

async function amcheck(
  { run }: EngineDeps,
  instance: Instance,
  { socket }: PrivateServer,
  closed: readonly string[],
  signal: AbortSignal,
): Promise<Finding> {
  const connection = [`--host=${socket}`, `--port=${instance.spec.port}`, `--username=${platform}`];
  const options = ["--all", `--maintenance-db=${platform}`, "--install-missing"];
  try {
    await run([program(instance, "pg_amcheck"), ...connection, ...options], { env: programEnvironment(), signal });
    return { name: "structure", passed: true, detail: structureDetail(closed) };
  } catch (error) {
    if (!(error instanceof ProgramFailed)) throw error;
    return { name: "structure", passed: false, detail: error.message };
  }
}

/** The detail of a check without a finding. `closed`: databases that refuse sessions, which are not read. */
export function structureDetail(closed: readonly string[]): string {
  if (closed.length === 0) return "pg_amcheck found nothing wrong.";
  const names = summarizeNames(closed);
  const which = closed.length === 1 ? `Database ${names} was` : `Databases ${names} were`;
  return `pg_amcheck found nothing wrong. ${which} not read: ALLOW_CONNECTIONS is false.`;
}

/** Invalid databases were restored as they are in the source, so the finding passes. */
function databasesFinding(invalid: readonly string[]): Finding[] {
  return invalid.length === 0 ? [] : [{ name: "databases", passed: true, detail: invalidReason(invalid) }];
}

function heartbeatFinding(last: Date | undefined, target: RecoveryTarget): Finding[] {
  if (target.kind !== "time") return [];
  const ageMs = last === undefined ? Number.POSITIVE_INFINITY : target.time.getTime() - last.getTime();
  const passed = ageMs >= 0 && ageMs <= heartbeatWithinMs;
  const detail =
    last === undefined ? "There is no commit of the platform." : `The last commit is at ${last.toISOString()}.`;
  return [{ name: "heartbeat", passed, detail }];
}
