import { join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { type Archives, createArchives } from "./archives.ts";
import { type Backups, createBackups } from "./backups.ts";
import type { Report } from "./job.ts";
import { createJobComponent } from "./job-component.ts";
import { mintUrls } from "./mint-urls.ts";
import { createRestores, type Restores } from "./restores.ts";

/** All that a machine has to do with backups, each in a component of its own. */
export interface BackupParts {
  readonly backups: Backups;
  readonly restores: Restores;
  readonly archives: Archives;
  /** Adds what they are at. */
  observe(instance: InstanceObservation): InstanceObservation;
  run(signal: AbortSignal): Promise<void>;
}

export interface BackupPartsDeps {
  readonly keeper: KeeperClient;
  /** The components' program. */
  readonly program: string;
  readonly stateDir: string;
  /** Of the machine: the engine's part of it is shared with the components. */
  readonly runDir: string;
  readonly channel: () => ControllerChannel | undefined;
  readonly now: () => number;
  readonly log: Log;
  /** Progress is no news; a state that changed is. */
  readonly onChange: (isNews: boolean) => void;
}

export function createBackupParts({
  keeper,
  program,
  stateDir,
  runDir,
  channel,
  now,
  log,
  onChange,
}: BackupPartsDeps): BackupParts {
  const shared = { keeper, program, runDir: join(runDir, "engine"), logDir: join(stateDir, "log") };

  const backup = createJobComponent({
    ...shared,
    name: "backup",
    load: "bulk",
    onReport(report: Report) {
      backups.reported(report);
      if (report.state === "stored") archives.baseStored();
    },
    mint: (uses) => mintUrls(channel(), backups.scope(), uses),
  });
  const restore = createJobComponent({
    ...shared,
    name: "restore",
    load: "bulk",
    onReport: (report) => restores.reported(report),
    mint: (uses) => {
      const restoreId = restores.observation()?.restoreId;
      return mintUrls(channel(), restoreId === undefined ? undefined : { case: "restoreId", value: restoreId }, uses);
    },
  });
  const archive = createJobComponent({
    ...shared,
    name: "archive",
    load: "steady",
    onReport: (report) => archives.reported(report),
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
      const told = { backup: backups.observation(), restore: restores.observation(), archive: archives.observation() };
      return Object.assign(
        instance,
        Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined)),
      );
    },
    async run(signal) {
      await backups.load();
      const following = [backup, restore, archive].map((component) => component.follow(signal));
      await Promise.all([...following, backups.run(signal), archives.run(signal)]);
    },
  };
}
