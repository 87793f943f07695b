import { create, toBinary } from "@bufbuild/protobuf";
import {
  type AppObservation,
  AppObservationSchema,
  type Check,
  type Hello,
  type InstanceObservation,
  InstanceObservationSchema,
  type TaskProgress,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";

/**
 * Maximum size of an observation, far above that of a correct agent. Observations are stored in etcd and cached by
 * every controller.
 */
const observationBytesMax = 64 << 10;
const reasonLengthMax = 1_000;
const nameLengthMax = 128;
const checksMax = 64;
const namesMax = 256;
/** Releases of an app on its machine, and last lines of one that failed. */
const releasesMax = 4;
const linesMax = 20;
const openTasksMax = 10_000;
const termsMax = 1_000;
const workloadsMax = 32;

/**
 * The observation if it has at most 64 KiB; otherwise the observation with truncated texts and without parameters and
 * the progress of backups, so that the machine's state is still reported.
 */
export function boundedObservation(instance: InstanceObservation): InstanceObservation {
  if (toBinary(InstanceObservationSchema, instance).byteLength <= observationBytesMax) return instance;
  const { serviceId, nodeId, state, reason, engineVersion, checks, pendingRestart, textLibraries } = instance;
  const truncatedList = (list: readonly string[], max: number) => list.slice(0, max).map(truncated);
  return create(InstanceObservationSchema, {
    ...instance,
    serviceId: truncated(serviceId),
    nodeId: truncated(nodeId),
    state: truncated(state),
    reason: reason.slice(0, reasonLengthMax),
    engineVersion: truncated(engineVersion),
    checks: checks.slice(0, checksMax).map(boundedCheck),
    pendingRestart: truncatedList(pendingRestart, namesMax),
    textLibraries: truncatedList(textLibraries, checksMax),
    rejectedParameters: {},
    effectiveParameters: {},
    absentMetrics: {},
    backup: undefined,
    archive: undefined,
    restore: undefined,
    ...(instance.app && { app: boundedApp(instance.app) }),
    $unknown: [],
  });
}

/** The releases that a machine can have, with truncated texts: the programs of users print the lines. */
function boundedApp({ servingReleaseId, releases }: AppObservation): AppObservation {
  return create(AppObservationSchema, {
    servingReleaseId: truncated(servingReleaseId),
    releases: releases.slice(0, releasesMax).map(({ id, state, reason, lastLines }) => ({
      id: truncated(id),
      state: truncated(state),
      reason: reason.slice(0, reasonLengthMax),
      lastLines: lastLines.slice(0, linesMax).map((line) => line.slice(0, reasonLengthMax)),
    })),
  });
}

/** Progress with a truncated step and a percentage between 0 and 100. */
export function boundedProgress(progress: TaskProgress): TaskProgress {
  const step = progress.step.slice(0, nameLengthMax);
  return { ...progress, step, progressPct: Math.min(100, Math.max(0, progress.progressPct)) };
}

/** The reason why a hello is invalid: larger than that of a correct agent. Undefined for a valid one. */
export function helloProblem(hello: Hello): string | undefined {
  const { agentVersion, agentDigest, bootId, sessionId, replacesSessionId, openTasks, terms, workloads } = hello;
  const isLong = (text: string) => text.length > nameLengthMax;
  if ([agentVersion, agentDigest, bootId, sessionId, replacesSessionId].some(isLong))
    return "a name in hello is too long";
  if (openTasks.length > openTasksMax || openTasks.some(isLong)) return "too many open tasks in hello";
  if (Object.keys(terms).length > termsMax) return "too many terms in hello";
  if (workloads.length > workloadsMax || workloads.some(isLong)) return "too many workloads in hello";
  return undefined;
}

function boundedCheck(check: Check): Check {
  const { name, status, reason } = check;
  return { ...check, name: truncated(name), status: truncated(status), reason: reason.slice(0, reasonLengthMax) };
}

function truncated(text: string): string {
  return text.slice(0, nameLengthMax);
}
