import { create, toBinary } from "@bufbuild/protobuf";
import {
  type Check,
  type Hello,
  type InstanceObservation,
  InstanceObservationSchema,
  type TaskProgress,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";

/** What an honest agent's words stay far below. It is kept in etcd and in the memory of each controller, for each machine. */
const observationBytes = 64 << 10;
const reasonLength = 1_000;
const wordLength = 128;
const mostChecks = 64;
const mostNames = 256;
const mostOpenTasks = 10_000;
const mostTerms = 1_000;

/**
 * Pure: the observation as it came, or without its lists of parameters, and with its texts cut, when it is over 64 KiB: what
 * a machine is like stays known.
 */
export function boundedObservation(instance: InstanceObservation): InstanceObservation {
  if (toBinary(InstanceObservationSchema, instance).byteLength <= observationBytes) return instance;
  const { serviceId, nodeId, state, reason, engineVersion, checks, pendingRestart, textLibraries } = instance;
  const words = (list: readonly string[], most: number) => list.slice(0, most).map(word);
  return create(InstanceObservationSchema, {
    ...instance,
    serviceId: word(serviceId),
    nodeId: word(nodeId),
    state: word(state),
    reason: reason.slice(0, reasonLength),
    engineVersion: word(engineVersion),
    checks: checks.slice(0, mostChecks).map(boundedCheck),
    pendingRestart: words(pendingRestart, mostNames),
    textLibraries: words(textLibraries, mostChecks),
    rejectedParameters: {},
    effectiveParameters: {},
    absentMetrics: {},
    backup: undefined,
    archive: undefined,
    restore: undefined,
    $unknown: [],
  });
}

/** Pure: progress that is fit to be shown and kept. */
export function boundedProgress(progress: TaskProgress): TaskProgress {
  const step = progress.step.slice(0, wordLength);
  return { ...progress, step, progressPct: Math.min(100, Math.max(0, progress.progressPct)) };
}

/** Pure: what of a hello is larger than any agent has it; undefined for a good one. */
export function helloFault(hello: Hello): string | undefined {
  const { agentVersion, agentDigest, bootId, sessionId, succeeds, openTasks, terms } = hello;
  const isLong = (text: string) => text.length > wordLength;
  if ([agentVersion, agentDigest, bootId, sessionId, succeeds].some(isLong)) return "a name in hello is too long";
  if (openTasks.length > mostOpenTasks || openTasks.some(isLong)) return "too many open tasks in hello";
  if (Object.keys(terms).length > mostTerms) return "too many terms in hello";
  return undefined;
}

function boundedCheck(check: Check): Check {
  const { name, status, reason } = check;
  return { ...check, name: word(name), status: word(status), reason: reason.slice(0, reasonLength) };
}

function word(text: string): string {
  return text.slice(0, wordLength);
}
