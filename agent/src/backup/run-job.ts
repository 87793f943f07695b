import { rmSync, writeFileSync } from "node:fs";
import { getPriority } from "node:os";
import { text } from "node:stream/consumers";
import { fromBinary } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { isEngine, loadDriver } from "../engines/drivers.ts";
import { ProgramFailed, runProgram } from "../os/program.ts";
import { setThreadPriorities } from "../os/thread-priority.ts";
import { type AgentLink, createAgentLink } from "./agent-link.ts";
import type { Job, Report } from "./job.ts";
import { JobFailed } from "./job-failed.ts";
import { createStoreClient } from "./store-client.ts";
import type { JobContext } from "./job-context.ts";
import { createPresignedUrlCache } from "./presigned-url-cache.ts";

/**
 * Runs one backup, restore or log archive as a component of the keeper, so that it survives the agent. It runs as the
 * engine's user and receives its job, including keys, on standard input. Before the job is known it leaves `onStop` as
 * it is; then it calls `onStop` with the function that cancels the job.
 */
export async function runJob(onStop: (cancel: () => void) => void): Promise<void> {
  preferForKill();
  const job = JSON.parse(await text(process.stdin)) as Job;
  const end = new AbortController();
  onStop(() => end.abort(new JobFailed("cancelled", "It was canceled.")));
  // Lowers the priority of all threads, including the compression threads, which started with the modules. A lower
  // priority of the machine is retained, since only root may raise it.
  if (job.kind !== "restore")
    setThreadPriorities(Math.max(getPriority(), job.kind === "backup" && job.background ? 19 : 5));
  rmSync(job.outcome, { force: true });
  const link = createAgentLink(job.socket, job.outcome);
  try {
    const report = await perform(job, link, end.signal);
    link.end(report);
    process.exitCode = 0;
  } catch (error) {
    const { code, message, cause, object, requiredMemoryBytes } = JobFailed.from(
      "failed",
      end.signal.aborted ? end.signal.reason : error,
    );
    const reason = cause instanceof Error ? cause.message : undefined;
    process.stderr.write(programOutputOf(cause));
    process.stderr.write(`${JSON.stringify({ time: Date.now(), name: job.kind, code, msg: message, reason })}\n`);
    const state = code === "cancelled" ? "cancelled" : "failed";
    link.end({
      state,
      errorCode: code,
      error: message,
      ...(object !== undefined && { damagedObject: object }),
      ...(requiredMemoryBytes > 0 && { requiredMemoryBytes }),
    });
    process.exitCode = 1;
  }
  // Gives data written to an agent time to leave.
  setTimeout(() => process.exit(), 50);
}

/**
 * Score of the job for the kernel's OOM killer, the highest: a job begins again, and an engine that is killed
 * interrupts all of its clients (proc(5), oom_score_adj).
 */
const killScore = "1000";

/** Makes the kernel's OOM killer prefer the job, with the programs that it runs, to the engine. */
function preferForKill(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", killScore);
  } catch (error) {
    const entry = { time: Date.now(), name: "job", msg: "the kill score was not set", error: String(error) };
    process.stderr.write(`${JSON.stringify(entry)}\n`);
  }
}

async function perform(job: Job, link: AgentLink, signal: AbortSignal): Promise<Report> {
  const spec = fromBinary(InstanceSpecSchema, Buffer.from(job.spec, "base64"));
  const driver = isEngine(spec.engine) ? await loadDriver(spec.engine, runProgram) : undefined;
  if (driver?.backup === undefined) throw new JobFailed("source_failed", `${spec.engine} has no backups.`);
  const urls = createPresignedUrlCache(link, Date.now);
  let storeFailure: string | undefined;
  const context: JobContext = {
    instance: { spec, paths: job.paths },
    facet: driver.backup,
    store: createStoreClient(urls, (reason) => void (storeFailure = reason)),
    urls,
    link,
    now: Date.now,
    storeFailure: () => storeFailure,
    signal,
  };
  switch (job.kind) {
    case "backup":
      return (await import("./run-backup.ts")).runBackup(job, context);
    case "restore":
      return (await import("./run-restore.ts")).runRestore(job, context);
    case "archive":
      return (await import("./run-archive.ts")).runArchive(job, context);
  }
}

/** The last lines of the program whose failure caused the error; empty if there is none. */
function programOutputOf(error: unknown): string {
  if (error instanceof ProgramFailed) return error.output.endsWith("\n") ? error.output : `${error.output}\n`;
  return error instanceof Error && error.cause !== undefined ? programOutputOf(error.cause) : "";
}
