import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { discardedTransition } from "./replication-events.ts";
import { partial } from "@holdfast/testing/partial.ts";

/** The service with a node whose machine reports discarded log up to this position, or none. */
function observed(service: ManagedServiceObject, to: string | undefined): ObservedService {
  const discarded = to === undefined ? undefined : { from: "0/10", to, bytes: 32n, savedBytes: 16n };
  const nodes = service.spec.nodes.map((node) => ({
    node,
    machine: undefined,
    connected: true,
    instance: partial<InstanceObservation>({ replication: { role: "replica", discarded } }),
    stoppedForDrain: false,
    isCurrent: true,
    silentHost: undefined,
  }));
  return { nodes, names: "verified", isChanging: false };
}

test("discarded log of a node is announced once, and again when it discards more", () => {
  let service = runningService();
  const reported = [undefined, "0/30", "0/30", undefined, "0/30", "0/50"].map((to) => {
    const { record, events } = discardedTransition(service, observed(service, to));
    if (record !== undefined) service = { ...service, status: { ...service.status, discarded: record } };
    return events.map(({ type, data }) => [type, data["discarded_from"], data["discarded_bytes"], data["kept_bytes"]]);
  });
  const event = ["node.rewound", "0/10", 32, 16];
  expect(reported).toEqual([[], [event], [], [], [], [event]]);
});
