import { rmSync } from "node:fs";
import { getPriority } from "node:os";
import { text } from "node:stream/consumers";
import { fromBinary } from "@bufbuild/protobuf";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { isEngine, loadDriver } from "../engines/registry.ts";
import { runProgram } from "../os/program.ts";
import { setThreadPriorities } from "../os/thread-priority.ts";
import { createAgentLink } from "./agent-link.ts";
import type { Job, Report } from "./job.ts";
import { JobFailed } from "./job-failed.ts";
import { createStoreClient } from "./store-client.ts";
import type { JobSurroundings } from "./surroundings.ts";
import { createUrlPurse } from "./url-purse.ts";

/**
 * One backup, verification, restore or archive, as a component of the keeper: it goes on while agents come and go. It runs as the
 * engine's user; what it is to do, keys included, comes on its standard input.
 */
const job = JSON.parse(await text(process.stdin)) as Job;
watchProcessFaults({
  role: "job",
  note: (msg, { error }) =>
    process.stderr.write(
      `${JSON.stringify({ time: Date.now(), name: job.kind, msg, error: error instanceof Error ? error.stack : String(error) })}\n`,
    ),
  monotonicMs: () => performance.now(),
});
const end = new AbortController();
// The first process of a namespace gets no signal that it does not handle.
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => end.abort(new JobFailed("cancelled", "It was told to end.")));
}
// Where the whole machine is at a lower priority already, it stays there: only root may raise one. The threads that
// compress were started when the modules were read.
if (job.kind !== "restore")
  setThreadPriorities(Math.max(getPriority(), job.kind === "backup" && job.background ? 19 : 5));
rmSync(job.outcome, { force: true });
const link = createAgentLink(job.socket, job.outcome);
const purse = createUrlPurse(link, Date.now);
let trouble: string | undefined;

try {
  const report = await perform();
  link.end(report);
  process.exitCode = 0;
} catch (error) {
  const { code, message, cause } = JobFailed.from("failed", end.signal.aborted ? end.signal.reason : error);
  const reason = cause instanceof Error ? cause.message : undefined;
  process.stderr.write(`${JSON.stringify({ time: Date.now(), name: job.kind, code, msg: message, reason })}\n`);
  const state = code === "cancelled" ? "cancelled" : "failed";
  link.end({ state, errorCode: code, error: message });
  process.exitCode = 1;
}
// What was written to an agent is on its way.
setTimeout(() => process.exit(), 50);

async function perform(): Promise<Report> {
  const spec = fromBinary(InstanceSpecSchema, Buffer.from(job.spec, "base64"));
  const driver = isEngine(spec.engine) ? await loadDriver(spec.engine, runProgram) : undefined;
  if (driver?.backup === undefined) throw new JobFailed("source_failed", `${spec.engine} has no backups`);
  const surroundings: JobSurroundings = {
    instance: { spec, paths: job.paths },
    facet: driver.backup,
    store: createStoreClient(purse, (reason) => void (trouble = reason)),
    purse,
    link,
    now: Date.now,
    trouble: () => trouble,
    signal: end.signal,
  };
  switch (job.kind) {
    case "backup":
      return (await import("./run-backup.ts")).runBackup(job, surroundings);
    case "verify":
      return (await import("./run-verify.ts")).runVerify(job, surroundings);
    case "restore":
      return (await import("./run-restore.ts")).runRestore(job, surroundings);
    case "archive":
      return (await import("./run-archive.ts")).runArchive(job, surroundings);
  }
}
