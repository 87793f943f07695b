import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../../managed-service.ts";
import { planManagedService } from "../../reconcile/managed-service-plan.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "../../reconcile/observed-service.ts";
import { replicaNode } from "../new-replica.ts";
import { partial } from "@holdfast/testing/partial.ts";

const [first] = runningService().spec.nodes;
if (first === undefined) throw new Error("a service has a node");
const { joining: _, ...replica } = replicaNode({ id: "r", hostname: "db.local", zone: "local", number: 2 });
const nodes = [first, replica];

interface Observation {
  readonly power?: "on" | "off";
  readonly machine?: MachineObject["status"]["state"];
  readonly engine?: "running" | "stopped" | "failed";
  readonly generation?: number;
  readonly connected?: boolean;
}

function observed(primary: Observation, replicaState: Observation): ObservedService {
  const members = nodes.map((node, index): ObservedNode => {
    const observation = index === 0 ? primary : replicaState;
    const { power = "on", machine = "running", engine = "running", generation = 2, connected = true } = observation;
    const instance = { state: engine, generation: BigInt(generation), restartCount: 0n, checks: [] };
    return partial<ObservedNode>({
      node,
      ...(index > 0 && { isReplica: true }),
      machine: { metadata: { id: node.id }, spec: { power, image: "" }, status: { state: machine, address: "a" } },
      connected,
      instance,
      stoppedForDrain: false,
      isCurrent: true,
      silentHost: undefined,
    });
  });
  return { nodes: members, names: "verified", isChanging: false };
}

/** Steps as texts, such as "stop node-1". */
function planned(service: ManagedServiceObject, observedService: ObservedService): string[] {
  const summary = (step: ServiceStep): string => {
    if (step.kind === "converge") return `${step.running ? "start" : "stop"} ${step.node.id}`;
    return step.kind === "powerMachine" ? `${step.power} ${step.node.id}` : step.kind;
  };
  return planManagedService(service, observedService).map(summary);
}

const spec = { nodes, nextNodeNumber: 3, instanceGeneration: 2 };
const stopping = runningService({}, { ...spec, power: "off" });
const starting = runningService({}, spec, { state: "Provisioning" });
const running = runningService({}, spec);
const old = { generation: 1 };
const off = { engine: "stopped", power: "off", machine: "stopped" } as const;
const stopped = { engine: "stopped", generation: 1 } as const;

// biome-ignore format: a table, aligned so that it reads as one
test.each<[what: string, ManagedServiceObject, primary: Observation, replica: Observation, steps: string[]]>([
  ["a stop begins with the primary",                     stopping, old,                        old,     ["stop node-1"]],
  ["which has ended before its machine is off",          stopping, { engine: "stopped" },      old,     ["off node-1"]],
  ["and replicas, which have all of it, come after",     stopping, off,                        old,     ["stop r"]],
  ["a start begins with the primary",                    starting, stopped,                    stopped, ["start node-1"]],
  ["and replicas come once it is up",                    starting, {},                         stopped, ["start r"]],
  ["or when its machine is lost",                        starting, { ...stopped, machine: "failed", connected: false }, stopped, ["start r"]],
  ["or when its engine does not come up",                starting, { engine: "failed" },       stopped, ["start r"]],
  ["a replica that is stopped in a service that runs is started", running, { connected: false }, stopped, ["start r"]],
])("%s", (_what, service, primary, replicaState, steps) => {
  expect(planned(service, observed(primary, replicaState))).toEqual(steps);
});
