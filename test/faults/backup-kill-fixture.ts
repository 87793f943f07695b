import { readFileSync } from "node:fs";
import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

export interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly error_message: string | null;
  readonly operation_id: string;
  readonly key_version: number;
  readonly verified_at: string | null;
}

export type BackupVictim = "component" | "agent" | "engine" | "controller" | "store";
export const backupVictims: readonly BackupVictim[] = ["component", "agent", "engine", "controller", "store"];

/** Limit for any single step, including kills and a loaded machine. */
export const longMs = 240_000;
/** Rows of the table that exists from the start. */
export const initialRows = 240_000;

/** A service with backups whose parts are killed. */
export interface BackupKills {
  readonly platform: Platform;
  readonly services: Services;
  readonly source: RunningService;
  /** Options of `waitUntil`. */
  readonly wait: { readonly withinMs: number; readonly everyMs: number; readonly describe: () => Promise<string> };
  /** Path of the service's backups, with `rest` appended. */
  path(rest?: string): string;
  /** Response to GET; undefined while no controller responds. */
  read<T>(path: string): Promise<T | undefined>;
  /** Retries while controllers are killed, until one accepts the request or has accepted it. */
  post<T>(path: string, body: object, statuses: readonly number[]): Promise<T>;
  /** Resolves when the victim existed and was killed. */
  kill(victim: BackupVictim, machineId: string): Promise<void>;
  /** Stops the object store until the returned function is called. */
  pauseStore(): () => void;
  backup(): Promise<BackupJson>;
  /** The backup, once it has ended. */
  ended(backupId: string): Promise<BackupJson>;
  /** Throws for an operation without an end, and for a machine without an owner. */
  expectNothingLeft(): Promise<void>;
}

/** One PostgreSQL with backups and an archive, as the fixture for kills of its parts. */
export interface BackupKillFixture extends BackupKills {
  query<Row extends object>(of: RunningService, sql: string): Promise<Row[]>;
  /** True while an engine streams its files to a backup. */
  isBeingRead(): boolean;
  /** Resolves when everything written so far is durable. */
  durable(): Promise<void>;
  remove(): Promise<void>;
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    // The process has ended.
    return "";
  }
}

export async function startBackupKillFixture(): Promise<BackupKillFixture> {
  const platform = await startPlatform({
    environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "2" },
  });
  const services = createServices(platform);
  const source = await services.createRunning("orders", { allowed_cidrs: ["127.0.0.0/8"] });
  const { id } = source.service;
  const kills = createBackupKills(platform, services, source);
  const query = <Row extends object>({ connection, password }: RunningService, sql: string) =>
    queryOnce<Row>(platform, connection, { password }, sql);

  // Some parts of a backup contain only this table, and are identical each time.
  const line = "repeat(md5(i::text), 8) AS line";
  await query(source, `CREATE TABLE kept AS SELECT i, ${line} FROM generate_series(1, ${initialRows}) AS i`);
  await query(source, "VACUUM (FREEZE) kept");
  await query(source, "CREATE TABLE entries (i int PRIMARY KEY)");

  async function durable(): Promise<void> {
    const now = new Date().toISOString();
    const newest = async () =>
      (await kills.read<ServiceJson>(`/managed-services/${id}`))?.backups?.restorable?.to ?? "";
    await waitUntil("existing rows are durable", async () => (await newest()) > now, { ...kills.wait, everyMs: 200 });
  }
  await durable();

  return {
    ...kills,
    query,
    durable,
    isBeingRead: () => platform.processes().all.some((pid) => commandOf(pid).includes("sending backup")),
    remove: () => platform.remove(),
  };
}

/** Requests, kills and waits around the backups of a service. */
export function createBackupKills(platform: Platform, services: Services, source: RunningService): BackupKills {
  const { id } = source.service;
  const wait = { withinMs: longMs, everyMs: 50, describe: () => services.describe(id) };
  const path = (rest = "") => `/managed-services/${id}/backups${rest}`;
  const read = async <T>(at: string) => {
    const response = await platform.rest.get<T>(at).catch(() => undefined);
    return response?.status === 200 ? response.json : undefined;
  };

  return {
    platform,
    services,
    source,
    wait,
    path,
    read,
    async post<T>(at: string, body: object, statuses: readonly number[]) {
      const response = await waitUntil(
        `POST ${at} is answered`,
        async () => {
          const found = await platform.rest.post<T>(at, body).catch(() => undefined);
          return found !== undefined && statuses.includes(found.status) ? found : undefined;
        },
        wait,
      );
      return response.json;
    },
    async kill(victim, machineId) {
      const killed = () => {
        const processes = platform.processes();
        const machine = processes.machines.find((each) => each.id === machineId);
        const pids = {
          component: machine?.jobs ?? [],
          agent: machine?.agents ?? [],
          engine: [machine?.engine],
          controller: processes.controllers,
          store: [processes.store],
        }[victim].filter((pid) => pid !== undefined);
        return pids.map((pid) => killImmediately(pid)).includes(true);
      };
      await waitUntil(`the ${victim} was killed`, killed, { ...wait, everyMs: 5 });
    },
    pauseStore() {
      const { store = 0 } = platform.processes();
      killImmediately(store, "SIGSTOP");
      return () => void killImmediately(store, "SIGCONT");
    },
    async backup() {
      return expectStatus(await platform.rest.post<BackupJson>(path()), 202).json;
    },
    ended(backupId) {
      const check = async () => {
        const backup = await read<BackupJson>(path(`/${backupId}`));
        return backup !== undefined && ["completed", "failed"].includes(backup.status) ? backup : undefined;
      };
      return waitUntil(`the backup ${backupId} has ended`, check, wait);
    },
    async expectNothingLeft() {
      await services.settled(id, "Running", longMs);
      const open = async () => {
        const operations = await services.operations(id);
        return operations.filter(({ status }) => !["completed", "failed", "cancelled"].includes(status));
      };
      await waitUntil("every operation has ended", async () => (await open()).length === 0, wait);
      const orphans = async () =>
        (await asOperator(platform, FleetService, (fleet) => fleet.sweepOrphans({ dryRun: true }))).orphans;
      await waitUntil("no machine is an orphan", async () => (await orphans()).length === 0, wait);
    },
  };
}
