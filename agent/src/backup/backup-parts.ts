import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Log } from "@holdfast/common/log.ts";
import { agentMethods, type ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import {
  type MintObjectUrlsRequest,
  MintObjectUrlsRequestSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { type Archives, createArchives } from "./archives.ts";
import { type Backups, createBackups } from "./backups.ts";
import { createJobComponent, type JobComponentDeps } from "./job-component.ts";
import type { ObjectUseJson, Report, UrlGrant } from "./job.ts";
import { createRestores, type Restores } from "./restores.ts";

/**
 * Backups, restores and log archives of the machine. Each runs in a separate component, so that it survives the agent;
 * a task starts it, and its progress is observed.
 */
export interface BackupParts {
  readonly backups: Backups;
  readonly restores: Restores;
  readonly archives: Archives;
  /** Adds their observations. */
  observe(instance: InstanceObservation): InstanceObservation;
  run(signal: AbortSignal): Promise<void>;
}

export interface BackupPartsDeps {
  readonly keeper: KeeperClient;
  /** Program of the components. */
  readonly program: string;
  readonly stateDir: string;
  /** Log of the engine. */
  readonly engineLog: JobComponentDeps["log"];
  /** Directory for sockets; its subdirectory for the engine is shared with the components. */
  readonly runDir: string;
  readonly channel: () => ControllerChannel | undefined;
  readonly now: () => number;
  readonly log: Log;
  /** `isStateChange` is true if a state changed, and false for progress only. */
  readonly onChange: (isStateChange: boolean) => void;
}

export function createBackupParts({
  keeper,
  program,
  stateDir,
  engineLog,
  runDir,
  channel,
  now,
  log,
  onChange,
}: BackupPartsDeps): BackupParts {
  const shared = { keeper, program, runDir: join(runDir, "engine") };
  const logOf = (name: string) => ({ path: join(stateDir, "log", `${name}.log`), maxBytes: 1 << 20, keep: 2 });

  const backup = createJobComponent({
    ...shared,
    name: "backup",
    log: logOf("backup"),
    load: "bulk",
    onReport(report: Report) {
      backups.recordReport(report);
      if (report.state === "stored") archives.baseStored();
    },
    mint: (uses) => mintUrls(channel(), backups.scope(), uses),
  });
  const restore = createJobComponent({
    ...shared,
    name: "restore",
    // Users read the reason of a failed recovery, which is the engine's, where they read its log.
    log: engineLog,
    load: "bulk",
    onReport: (report) => restores.recordReport(report),
    mint: (uses) => {
      const restoreId = restores.observation()?.restoreId;
      return mintUrls(channel(), restoreId === undefined ? undefined : { case: "restoreId", value: restoreId }, uses);
    },
  });
  const archive = createJobComponent({
    ...shared,
    name: "archive",
    log: logOf("archive"),
    load: "steady",
    onReport: (report) => archives.recordReport(report),
    mint: (uses) => {
      const archiveId = archives.archiveId();
      return mintUrls(channel(), archiveId === undefined ? undefined : { case: "archiveId", value: archiveId }, uses);
    },
  });
  const backups = createBackups({ component: backup, stateDir, now, log, onChange });
  const restores = createRestores({ component: restore, now, onChange });
  const archives = createArchives({ component: archive, now, onChange });

  return {
    backups,
    restores,
    archives,
    observe(instance) {
      const observations = {
        backup: backups.observation(),
        restore: restores.observation(),
        archive: archives.observation(),
      };
      return Object.assign(
        instance,
        Object.fromEntries(Object.entries(observations).filter(([, value]) => value !== undefined)),
      );
    },
    async run(signal) {
      await backups.load();
      const following = [backup, restore, archive].map((component) => component.follow(signal));
      await Promise.all([...following, backups.run(signal), archives.run(signal)]);
    },
  };
}

type Scope = Exclude<MintObjectUrlsRequest["scope"], { case: undefined }>;

const mintWithinMs = 15_000;

/** Requests signed URLs for objects of the scope from the controller; throws without a connection, or if it refuses. */
async function mintUrls(
  channel: ControllerChannel | undefined,
  scope: Scope | undefined,
  uses: readonly ObjectUseJson[],
): Promise<UrlGrant> {
  if (channel === undefined) throw new Error("no controller is connected");
  if (scope === undefined) throw new Error("no job with objects is running");
  const request = create(MintObjectUrlsRequestSchema, { scope, uses: [...uses] });
  const { urls, expiresAt, endpoint } = await channel.unary(agentMethods.mintObjectUrls, request, mintWithinMs);
  if (expiresAt === undefined || endpoint === undefined) throw new Error("the controller signed no URLs");
  const { addresses, port, trustBundle } = endpoint;
  return {
    urls: urls.map(({ url, headers }) => ({ url, headers })),
    expiresAtMs: timestampMs(expiresAt),
    endpoint: { addresses, port, trustBundle },
  };
}
