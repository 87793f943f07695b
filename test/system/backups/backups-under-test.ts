import { expect } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { type CommandLine, createCommandLine, type CommandResult } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
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
  readonly backup_type: string;
  readonly size_bytes: number | null;
  readonly error_message: string | null;
  readonly key_version: number;
  readonly verified_at: string | null;
  readonly operation_id: string;
}

export const longMs = 120_000;
const rows = 20_000;

/** One PostgreSQL for cases of backups and restores, mostly by the users' commands. */
export interface BackupsUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  readonly source: RunningService;
  run(...args: string[]): Promise<CommandResult>;
  /** The output of a command, which must not fail. */
  holdfast<T>(line: string): Promise<T>;
  pathOf(id: string, rest?: string): string;
  read(id: string): Promise<BackupJson>;
  sql(of: RunningService, text: string, password?: string): Promise<Record<string, unknown>[]>;
  /** Creates the table `kept`, and a role with another password. */
  writeRows(): Promise<void>;
  /** Digest of the rows of `kept`. */
  digest(of: RunningService): Promise<Record<string, unknown> | undefined>;
  takeBackup(): Promise<BackupJson>;
  /** The service that the command creates, once it runs. */
  created(line: string): Promise<RunningService>;
  /** Creates a service by the command line, and returns it with the distinct steps of its task summary. */
  createdInSteps(line: string): Promise<RunningService & { readonly steps: readonly string[] }>;
  window(): Promise<ServiceJson["backups"]>;
  /** Resolves when the log continues from a base backup. */
  untilRestorable(): Promise<void>;
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  remove(): Promise<void>;
}

type Started = Pick<BackupsUnderTest, "platform" | "services" | "source">;

export function createBackupsUnderTest(): BackupsUnderTest {
  let running: Started | undefined;
  let platform: Platform | undefined;
  let shell: CommandLine | undefined;
  const started = () => {
    if (running === undefined) throw new Error("the service was not created");
    return running;
  };
  const fixture: BackupsUnderTest = {
    get platform() {
      return started().platform;
    },
    get services() {
      return started().services;
    },
    get source() {
      return started().source;
    },
    run(...args) {
      if (shell === undefined) throw new Error("the platform was not started");
      return shell.runHere(args);
    },
    async holdfast<T>(line: string) {
      const ran = await fixture.run("--output", "json", ...line.split(" "));
      expect(ran, line).toMatchObject({ code: 0 });
      return JSON.parse(ran.stdout) as T;
    },
    pathOf: (id, rest = "") => `/managed-services/${id}/backups${rest}`,
    read: async (id) =>
      expectStatus(
        await fixture.platform.rest.get<BackupJson>(fixture.pathOf(fixture.source.service.id, `/${id}`)),
        200,
      ).json,
    async sql(of, text, password = of.password) {
      const client = await openPostgresql(fixture.platform, of.connection, { password });
      try {
        return (await client.query(text)).rows as Record<string, unknown>[];
      } finally {
        await client.end();
      }
    },
    async writeRows() {
      const series = `SELECT i, md5(i::text) AS text FROM generate_series(1, ${rows}) AS i`;
      await fixture.sql(fixture.source, `CREATE TABLE kept AS ${series}`);
      await fixture.sql(fixture.source, "CREATE ROLE made_in_sql LOGIN PASSWORD 'known to the source'");
    },
    digest: async (of) =>
      (
        await fixture.sql(of, "SELECT count(*)::int AS count, md5(string_agg(text, ',' ORDER BY i)) AS sum FROM kept")
      )[0],
    async takeBackup() {
      const backup = await fixture.holdfast<BackupJson>("backups create orders --wait");
      expect(backup).toMatchObject({ backup_type: "manual", encryption_algorithm: "AES-256-GCM" });
      return backup;
    },
    async created(line) {
      const { id } = await fixture.holdfast<ServiceJson>(`${line} --wait`);
      await fixture.services.settled(id, "Running", longMs);
      return fixture.services.open(id);
    },
    async createdInSteps(line) {
      const { id } = await fixture.holdfast<ServiceJson>(line);
      const steps: string[] = [];
      const path = `/managed-services/${id}/task-summary`;
      const isRunning = async () => {
        const { json } = expectStatus(
          await fixture.platform.rest.get<{ status: string; current_task: string | null }>(path),
          200,
        );
        if (json.current_task !== null && json.current_task !== steps.at(-1)) steps.push(json.current_task);
        return json.status === "Running";
      };
      await waitUntil("it runs", isRunning, {
        withinMs: longMs,
        everyMs: 20,
        describe: () => fixture.services.describe(id),
      });
      await fixture.services.settled(id, "Running", longMs);
      return { ...(await fixture.services.open(id)), steps };
    },
    window: async () => (await fixture.services.get(fixture.source.service.id)).backups,
    async untilRestorable() {
      const isRestorable = async () => ((await fixture.window())?.restorable ?? null) !== null;
      await waitUntil("the log continues from a base", isRestorable, { withinMs: longMs, everyMs: 200 });
    },
    async start(environment = {}) {
      platform = await startPlatform({ environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", ...environment } });
      const services = createServices(platform);
      shell = createCommandLine({ HOLDFAST_DATA: platform.directory });
      const source = await services.createRunning("orders", {
        allowed_cidrs: ["127.0.0.0/8"],
        parameters: { work_mem: "5MB" },
      });
      running = { platform, services, source };
    },
    async remove() {
      shell?.remove();
      await platform?.remove();
    },
  };
  return fixture;
}
