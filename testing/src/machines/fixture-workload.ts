import { join } from "node:path";
import type { LogLevel } from "@holdfast/agent/engines/engine-driver.ts";
import { createHealthSource } from "@holdfast/agent/workload/sample-source.ts";
import { createTextLogReader } from "@holdfast/agent/workload/log-reader.ts";
import { createSpecFile } from "@holdfast/agent/workload/spec-file.ts";
import type { Workload, WorkloadDeps } from "@holdfast/agent/workload/workload.ts";
import { createWorkloadStatus } from "@holdfast/agent/workload/workload-status.ts";
import { createWorkloadSupervisor, type ReconcileSignals } from "@holdfast/agent/workload/workload-supervisor.ts";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import type { WorkloadSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

const name = "fixture";
const stop = { signal: "SIGTERM", graceMs: 2_000 } as const;

/** A workload that is not an engine, and an example of a workload: a plain process that prints the spec's message. */
export function createFixtureWorkload({ directories, keeper, report, clock, log }: WorkloadDeps): Workload {
  const { stateDir } = directories;
  const logPath = join(stateDir, "log", "fixture.log");
  const appliedPath = join(stateDir, "workload", "applied");
  const status = createWorkloadStatus({ now: clock.now, onChange: () => report.schedule() });
  const logs = createTextLogReader({ component: name, path: logPath, parse: () => parseLine });
  const isEmpty = () => (keeper.component(name)?.state ?? "empty") === "empty";

  async function converge(spec: WorkloadSpec, { changed }: ReconcileSignals): Promise<void> {
    const { value } = spec.workload;
    if (value?.$typeName !== "holdfast.agent.v1.FixtureSpec") throw new Error("the spec has no fixture");
    const label = `${spec.restartCount} ${value.message}`;
    const applied = (await readIfExists(appliedPath))?.toString("utf8");
    if (!isEmpty() && (!spec.running || applied !== label)) {
      status.setState("stopping");
      status.removeChecks();
      await keeper.order({ op: "stop", name, ...stop });
    }
    status.setSpec(spec);
    if (!spec.running) return status.setState("stopped");
    if (isEmpty()) {
      status.setState("starting");
      // Recorded before the start: the next agent adopts the process, also if this agent ends in between.
      await writeDurably(appliedPath, label);
      const mark = await logs.end();
      const argv = [process.execPath, join(import.meta.dirname, "fixture-process.ts"), value.message, stateDir];
      const segments = { path: logPath, maxBytes: 1 << 20, keep: 2 };
      const ended = new AbortController();
      const watching = keeper.subscribe((component) => {
        if (component.name !== name || component.state !== "empty") return;
        ended.abort(new Error("The process ended before it printed a line."));
      });
      try {
        await keeper.order({
          op: "start",
          component: { name, argv, env: {}, cwd: stateDir, log: segments, stop, deadlineMs: null },
        });
        await logs.nextLine(mark, { matches: () => true, ended: ended.signal, signal: changed });
      } finally {
        watching.close();
      }
    }
    status.setState("running");
    status.setCheck({ name: "liveness", status: "healthy", reason: "" });
  }

  const supervisor = createWorkloadSupervisor<WorkloadSpec>({
    files: createSpecFile(stateDir),
    ownerOf: ({ ownerId }) => ownerId,
    noun: "process",
    keeper,
    reconciler: { converge, isReady: () => status.state === "running" && !isEmpty() },
    dueAt: () => undefined,
    status,
    probeNow: () => undefined,
    clock,
    log,
  });
  return {
    status,
    apply: supervisor.apply,
    recheck: supervisor.recheck,
    firstRound: supervisor.firstRound,
    run: supervisor.run,
    suspend: () => undefined,
    observe: status.message,
    logs,
    sources: [createHealthSource(status)],
  };
}

function parseLine(line: string) {
  const [, time = "", level = "", message = ""] = /^(\S+) (info|error) (.*)$/.exec(line) ?? [];
  return time === "" ? undefined : { time: new Date(time), level: level as LogLevel, message };
}
