import { afterAll, beforeAll, describe, it } from "vitest";
import {
  type BackupKillFixture,
  type BackupVictim,
  backupVictims,
  longMs,
  startBackupKillFixture,
} from "../faults/backup-kill-fixture.ts";
import { type BackupKillStep, backupKillSteps } from "../faults/backup-kill-steps.ts";

const steps = Object.keys(backupKillSteps) as BackupKillStep[];
const all = steps.flatMap((step) => backupVictims.map((victim) => [step, victim] as const));
/** Each step and each part once; all combinations with `npm run faults -- --backups`. */
const sample: readonly (readonly [BackupKillStep, BackupVictim])[] = [
  ["backup", "component"],
  ["restore", "agent"],
  ["archive", "engine"],
  ["expiry", "store"],
  ["rotation", "controller"],
];

describe("backups whose processes are killed", () => {
  let fixture: BackupKillFixture;

  beforeAll(async () => {
    fixture = await startBackupKillFixture();
  }, longMs);
  afterAll(() => fixture?.remove(), longMs);

  it.each(process.env["HOLDFAST_TEST_BACKUPS"] === "all" ? all : sample)(
    "%s completes although the %s is killed, and leaves nothing behind",
    async (step, victim) => {
      await backupKillSteps[step](fixture, victim);
      await fixture.expectNothingLeft();
    },
    2 * longMs,
  );
});
