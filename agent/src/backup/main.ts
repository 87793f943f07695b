import { watchProcessFaults } from "@holdfast/common/process-faults.ts";

/*
 * Program of a component of the keeper that runs one job (`run-job.ts`). The first process of a PID namespace receives
 * only signals that it handles, so the handlers precede the job's modules, which a busy machine loads for seconds: an
 * engine that stops waits for the end of its archive, and a signal without a handler would be lost.
 */
let stop: () => void = () => process.exit(1);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop());
watchProcessFaults({
  role: "job",
  logFault(msg, { error }) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`${JSON.stringify({ time: Date.now(), name: "job", msg, error: text })}\n`);
  },
  monotonicMs: () => performance.now(),
});
const { runJob } = await import("./run-job.ts");
await runJob((cancel) => {
  stop = cancel;
});
