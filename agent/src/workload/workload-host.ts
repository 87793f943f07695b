import type { Log } from "@holdfast/common/log.ts";
import type { WorkloadSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import { createInstanceFiles } from "./engine/instance-files.ts";
import { createSpecFile } from "./spec-file.ts";
import type { Workload, WorkloadDeps, WorkloadKind, WorkloadKinds } from "./workload.ts";

/**
 * The workload of the machine. Its kind is the kind of the spec on disk, or of the first spec that a controller
 * delivers, and never changes.
 */
export interface WorkloadHost {
  /** Undefined before the first spec. */
  current(): Workload | undefined;
  /** Throws "not_supported" for a kind that this agent does not run, and "invalid_task" for another than before. */
  apply(spec: WorkloadSpec, signal: AbortSignal): Promise<void>;
  /** Resolves after the first reconcile since the last call of `run`; immediately if there is no spec. */
  firstRound(): Promise<void>;
  /** Runs the workload until the signal. */
  run(signal: AbortSignal): Promise<void>;
}

export interface WorkloadHostDeps {
  readonly kinds: WorkloadKinds;
  readonly shared: WorkloadDeps;
  readonly log: Log;
}

export function createWorkloadHost({ kinds, shared, log }: WorkloadHostDeps): WorkloadHost {
  let current: { readonly kind: WorkloadKind; readonly workload: Workload } | undefined;
  const opened = Promise.withResolvers<void>();
  let loading: Promise<void> | undefined;
  let loaded = Promise.withResolvers<void>();

  /** The workload of this kind; it is created for the first spec. */
  function open(kind: WorkloadKind | undefined): Workload {
    const createWorkload = kind && kinds[kind];
    if (kind === undefined || createWorkload === undefined)
      throw new TaskFailed("not_supported", "This machine's agent does not run this kind of workload.");
    current ??= { kind, workload: createWorkload(shared) };
    if (current.kind !== kind)
      throw new TaskFailed("invalid_task", `This machine has a workload of the kind ${current.kind}, not ${kind}.`);
    opened.resolve();
    return current.workload;
  }

  /** Opens the workload of the spec on disk, if there is one. */
  async function load(): Promise<void> {
    const stored = await storedKind(shared.directories.stateDir);
    if (stored === "absent") return;
    // A machine whose spec a newer agent wrote remains reachable, so that its agent can be upgraded.
    if (stored === undefined || kinds[stored] === undefined) log.error("kind of the stored workload is unknown");
    else open(stored);
  }

  return {
    current: () => current?.workload,
    async apply(spec, signal) {
      await (loading ??= load());
      await open(spec.workload.case).apply(spec, signal);
    },
    async firstRound() {
      await loaded.promise;
      await current?.workload.firstRound();
    },
    async run(signal) {
      loaded = Promise.withResolvers();
      await (loading ??= load());
      loaded.resolve();
      if (current === undefined) await Promise.race([opened.promise, untilAborted(signal)]);
      if (!signal.aborted) await current?.workload.run(signal);
    },
  };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Kind of the spec on disk; undefined for a kind that this agent does not support. */
async function storedKind(stateDir: string): Promise<WorkloadKind | "absent" | undefined> {
  const spec = await createSpecFile(stateDir).loadSpec();
  if (spec !== undefined) return spec.workload.case;
  const instance = await createInstanceFiles({ stateDir, runDir: "", dataDir: "", softwareRoot: "" }).loadSpec();
  return instance === undefined ? "absent" : "engine";
}
