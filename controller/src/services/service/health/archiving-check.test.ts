import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ArchiveObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { expect, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { node, runningService } from "@holdfast/testing/controller/service-object.ts";
import { archivingCheck, archivingRecheckInMs } from "./archiving-check.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";
import { advance } from "../reconcile/service-advance.ts";

const minuteMs = 60_000;
const now = 1_000 * minuteMs;

/** A service whose newest recovery point, and whose engine's start, are this many minutes old. */
function observedAt(ageMinutes: number, upMinutes = 900, state = "running"): ObservedService {
  const since = timestampFromMs(now - upMinutes * minuteMs);
  const instance = create(InstanceObservationSchema, { state, since, generation: 1n });
  const machine = runningMachine(node.id, {});
  const reported = {
    connected: true,
    isCurrent: true,
    stoppedForDrain: false,
    silentHost: undefined,
    instance,
    machine,
    node,
  };
  return { nodes: [reported], names: "verified", isChanging: false, newestRecoveryPoint: now - ageMinutes * minuteMs };
}

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, number, number, string | undefined, number | null]>([
  ["new",                                     1,  900, "healthy",   4],
  ["almost 5 minutes old",                    4,  900, "healthy",   1],
  ["5 minutes old",                           5,  900, "degraded",  10],
  ["15 minutes old",                          15, 900, "unhealthy", null],
  ["old of an engine that was just started",  60, 1,   "healthy",   4],
  ["old of an engine that is up for a while", 60, 6,   "degraded",  9],
])("a newest point that is %s", (_what, ageMinutes, upMinutes, status, dueInMinutes) => {
  const observed = observedAt(ageMinutes, upMinutes);
  expect(archivingCheck(runningService(), observed, now)?.status).toBe(status);
  expect(archivingRecheckInMs(runningService(), observed, now)).toBe(dueInMinutes && dueInMinutes * minuteMs);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, number, number, number, string, string]>([
  ["less than half of its limit",             1,  127, 256, "healthy",   ""],
  ["half of its limit",                       1,  128, 256, "degraded",  "At least 128 MiB of log are not in the object store yet; at 256 MiB the log gets a gap."],
  ["without a reported limit",                1,  128, 0,   "healthy",   ""],
  ["beside a newest point that is too old",   15, 200, 256, "unhealthy", "At least 192 MiB of log are not in the object store yet; at 256 MiB the log gets a gap."],
])("log that waits, %s", (_what, ageMinutes, waitingMiB, limitMiB, status, reason) => {
  const observed = observedAt(ageMinutes);
  const bytesOf = (mib: number) => BigInt(mib) << 20n;
  const archive = create(ArchiveObservationSchema, {
    waitingBytes: bytesOf(waitingMiB),
    waitingLimitBytes: bytesOf(limitMiB),
  });
  for (const { instance } of observed.nodes) if (instance !== undefined) instance.archive = archive;
  const check = archivingCheck(runningService(), observed, now);
  expect(check?.status).toBe(status);
  expect(check?.reason.endsWith(reason)).toBe(true);
  expect(check?.reason === "").toBe(reason === "");
});

test("a service without an archive, or whose engine is off, has no such check", () => {
  const { newestRecoveryPoint: _, ...none } = observedAt(60);
  expect(archivingCheck(runningService(), none, now)).toBeUndefined();
  expect(archivingCheck(runningService(), observedAt(60, 900, "stopped"), now)).toBeUndefined();
  expect(archivingCheck(runningService({}, { power: "off" }), observedAt(60), now)).toBeUndefined();
});

test("staleness is announced once, and again only after a recovery", () => {
  let service: ManagedServiceObject = runningService();
  const reported = [16, 17, 20, 6, 16, 1, 16].map((ageMinutes) => {
    const { after, events } = advance(service, observedAt(ageMinutes), undefined, now, silentLog);
    service = after;
    return events.filter(({ type }) => type === "service.recovery_point_stale").length;
  });
  expect(reported).toEqual([1, 0, 0, 0, 0, 0, 1]);
});
