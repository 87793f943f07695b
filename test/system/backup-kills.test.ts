import { afterAll, beforeAll, describe, it } from "vitest";
import {
  type BackupKillGround,
  type BackupVictim,
  backupVictims,
  longMs,
  startBackupKillGround,
} from "../faults/backup-kill-ground.ts";
import { type BackupKillStep, backupKillSteps } from "../faults/backup-kill-steps.ts";

const steps = Object.keys(backupKillSteps) as BackupKillStep[];
const all = steps.flatMap((step) => backupVictims.map((victim) => [step, victim] as const));
/** Each step and each part once; all of them with `npm run faults -- --backups`. */
const sample: readonly (readonly [BackupKillStep, BackupVictim])[] = [
  ["backup", "component"],
  ["restore", "agent"],
  ["archive", "engine"],
  ["expiry", "store"],
  ["rotation", "controller"],
];

describe("backups whose parts are killed", () => {
  let ground: BackupKillGround;

  beforeAll(async () => {
    ground = await startBackupKillGround();
  }, longMs);
  afterAll(() => ground?.remove(), longMs);

  it.each(process.env["HOLDFAST_TEST_BACKUPS"] === "all" ? all : sample)(
    "%s ends well though the %s was killed, and leaves nothing behind",
    async (step, victim) => {
      await backupKillSteps[step](ground, victim);
      await ground.nothingLeft();
    },
    2 * longMs,
  );
});
