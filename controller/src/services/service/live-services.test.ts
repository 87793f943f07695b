import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ObservedInstance } from "#fleet/session/observations.ts";
import type { SessionFacts } from "#fleet/session/session-facts.ts";
import { createLiveServices } from "./live-services.ts";
import type { ManagedServiceObject } from "./managed-service.ts";

type Health = ManagedServiceObject["status"]["health"]["status"];

function service(health: Health, power: "on" | "off" = "on"): ManagedServiceObject {
  return runningService({}, { power }, { health: { status: health, since: 1, reason: "", checks: [] } });
}

const session = (bootId: string): SessionFacts => ({
  controllerId: "c",
  connectedAt: 1,
  agentVersion: "",
  agentDigest: "",
  keeperProtocol: 0,
  bootId,
});
const observed = (bootId: string): ObservedInstance => ({
  instance: create(InstanceObservationSchema, { state: "running" }),
  observedAt: 1,
  bootId,
});

// biome-ignore format: a table
test.each<[why: string, health: Health, power: "on" | "off", session: string | undefined, observed: string | undefined, reported: Health]>([
  ["an agent is connected and has reported its engine", "healthy",   "on",  "boot-1",  "boot-1",  "healthy"],
  ["an agent is away",                             "healthy",   "on",  undefined, "boot-1",  "unknown"],
  ["a machine was started and has not reported yet", "healthy",   "on",  "boot-2",  "boot-1",  "unknown"],
  ["nothing was ever reported",                    "healthy",   "on",  "boot-1",  undefined, "unknown"],
  ["unhealthy stays unhealthy",                    "unhealthy", "on",  undefined, "boot-1",  "unhealthy"],
  ["a stopped service needs no agent",             "healthy",   "off", undefined, undefined, "healthy"],
])("%s", (_, health, power, sessionBoot, observedBoot, reported) => {
  const facts = sessionBoot === undefined ? undefined : session(sessionBoot);
  const observation = observedBoot === undefined ? undefined : observed(observedBoot);
  const { withCurrentHealth: live } = createLiveServices({ session: () => facts, observation: () => observation }, () => 7);
  const before = service(health, power);
  const after = live(before);
  expect(after.status.health.status).toBe(reported);
  // Results are cached by object.
  expect(live(before)).toBe(after);
  expect(after === before).toBe(reported === health);
});
