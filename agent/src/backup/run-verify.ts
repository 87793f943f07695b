import { openBackup } from "@holdfast/common/backup/backup-reader.ts";
import type { Report, VerifyJob } from "./job.ts";
import { type JobSurroundings, readerOf } from "./surroundings.ts";

/** Opens every byte of a backup. */
export async function runVerify(job: VerifyJob, deps: JobSurroundings): Promise<Report> {
  const { place } = job;
  const { link } = deps;
  let report: Report = { state: "running", backupId: place.backup, attempt: place.attempt };
  link.report(report);
  const reader = await openBackup(readerOf(job, deps));
  const sourceTotalBytes = reader.manifest.streams.reduce((sum, { bytes }) => sum + bytes, 0);
  await reader.verify("all", (sourceBytes) => link.report((report = { ...report, sourceBytes, sourceTotalBytes })));
  return { ...report, state: "verified" };
}
