import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { describe, expect, it } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { newServiceObject, node } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { healthOf, nodeStatusesOf } from "./managed-service-health.ts";
import type { ManagedServiceObject, NodeStatus } from "../managed-service.ts";
import type { ObservedNode } from "../reconcile/observed-service.ts";

interface Case {
  /** State of the service. */
  readonly service?: ManagedServiceObject["status"]["state"];
  readonly power?: "on" | "off";
  /** Status of the node before. */
  readonly before?: NodeStatus["status"];
  /** Absent: it has no machine yet. */
  readonly machine?: MachineObject["status"]["state"];
  /** State of the engine by its agent's report; absent: none. */
  readonly engine?: string;
  readonly connected?: boolean;
  readonly isCurrent?: boolean;
  readonly stoppedForDrain?: boolean;
}

function status({ service = "Running", power = "on", before = "Provisioning", machine, engine, ...reported }: Case) {
  const { service: created } = newServiceObject();
  const existing = {
    ...created,
    spec: { ...created.spec, power },
    status: {
      ...created.status,
      state: service,
      nodes: created.status.nodes.map((each) => ({ ...each, status: before })),
    },
  };
  const { status, ...object } = runningMachine(node.id, {});
  const observed: ObservedNode = {
    node,
    machine: machine && { ...object, status: { ...status, state: machine } },
    connected: false,
    isCurrent: true,
    stoppedForDrain: false,
    silentHost: undefined,
    ...reported,
    instance: engine === undefined ? undefined : create(InstanceObservationSchema, { state: engine }),
  };
  return nodeStatusesOf(existing, { nodes: [observed], names: "verified", isChanging: false })[0];
}

describe("the status of a node", () => {
  const up = { machine: "running", connected: true } as const;
  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[NodeStatus["status"], string, Case]>([
    ["Provisioning", "has no machine yet",                                     { service: "Pending" }],
    ["Provisioning", "has a machine that starts",                              { service: "Provisioning", machine: "pending" }],
    ["Provisioning", "is connected and has reported no engine",                { service: "Provisioning", ...up }],
    ["Provisioning", "has an engine that starts",                              { ...up, engine: "starting" }],
    ["Running",      "runs its engine",                                        { ...up, engine: "running" }],
    ["Provisioning", "reported an engine before its machine was started again", { ...up, engine: "running", isCurrent: false }],
    ["Error",        "has a failed machine, with any earlier report",          { machine: "failed", connected: true, engine: "running" }],
    ["Error",        "has an engine that failed",                              { ...up, engine: "failed" }],
    ["Stopped",      "was stopped by its user",                                { service: "Stopped", power: "off", machine: "stopped", before: "Running" }],
    ["Stopped",      "is stopped while its host is drained",                   { machine: "stopped", stoppedForDrain: true, before: "Running" }],
    ["Provisioning", "is stopped for another image and is to start again",     { service: "Upgrading", machine: "stopped", before: "Running" }],
    ["Unreachable",  "ran and fell silent",                                    { machine: "running", engine: "running", before: "Running" }],
    ["Unreachable",  "ran on a host that does not answer",                     { machine: "unreachable", engine: "running", before: "Running" }],
    ["Unreachable",  "fell silent before its engine was ready",                { machine: "running", engine: "starting" }],
    ["Running",      "is connected though its host is silent",                 { machine: "unreachable", connected: true, engine: "running" }],
    ["Provisioning", "is silent and was never there",                          { machine: "unreachable" }],
    ["Provisioning", "is silent while its service is created",                 { service: "Provisioning", machine: "running" }],
    ["Provisioning", "is silent while it shuts down",                          { power: "off", machine: "running", before: "Running" }],
  ])("is %s of a node that %s", (expected, _what, input) => {
    expect(status(input)?.status).toBe(expected);
  });

  it("has the addresses of its machine, empty without one", () => {
    expect(status(up)).toMatchObject({ id: node.id, address: "127.98.0.1", publicAddress: "127.98.0.1" });
    expect(status({})).toMatchObject({ id: node.id, address: "", publicAddress: "" });
  });
});

describe("the health of a service whose engine starts", () => {
  const healthWith = (listener: string) => {
    const { service } = newServiceObject();
    const checks = [{ name: "listener", status: listener }];
    const instance = create(InstanceObservationSchema, { state: "starting", reason: "It starts.", checks });
    const reported = { connected: true, isCurrent: true, stoppedForDrain: false, silentHost: undefined };
    const nodes = [{ ...reported, node, machine: runningMachine(node.id, {}), instance }];
    return healthOf(service, { nodes, names: "verified", isChanging: false }, 7);
  };

  it("is unknown, and unhealthy if clients certainly cannot connect", () => {
    expect(healthWith("healthy")).toMatchObject({ status: "unknown", reason: "It starts." });
    expect(healthWith("unhealthy")).toMatchObject({ status: "unhealthy", reason: "It starts." });
  });
});
