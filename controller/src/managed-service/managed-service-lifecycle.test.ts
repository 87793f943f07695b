import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { MachineObject } from "../machine/machine.ts";
import { isOver, newOperation, type OperationObject, stuckAfterMs } from "../operation/operation.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { managedServiceLifecycle } from "./managed-service-lifecycle.ts";
import {
  type ObservedNode,
  type ObservedService,
  planManagedService,
  type ServiceStep,
} from "./managed-service-plan.ts";
import { advance } from "./managed-service-reconciler.ts";
import { requestVerb, type Verb } from "./service-verbs.ts";

const node = { id: "node-1", role: "primary", hostname: "db-1.local", zone: "local" } as const;

function freshService(): { service: ManagedServiceObject; operation: OperationObject } {
  const metadata = { id: "service-1", name: "db", organizationId: "org", generation: 1, createdAt: 0, updatedAt: 0 };
  const operation = newOperation({
    id: "op-0",
    serviceId: "service-1",
    organizationId: "org",
    type: "create",
    instanceGeneration: 1,
    now: 0,
  });
  const service: ManagedServiceObject = {
    metadata,
    spec: {
      databaseType: "postgresql",
      version: "17",
      planName: "tier-1",
      storageSizeGb: 1,
      storageTier: "maxiops",
      zone: "local",
      allowedCidrs: [],
      parameters: {},
      ttlHours: null,
      expiresAt: null,
      deletionProtection: false,
      tags: {},
      hostname: "db.local",
      port: 5432,
      nodes: [node],
      power: "on",
      restartCount: 0,
      instanceGeneration: 1,
    },
    status: {
      state: "Pending",
      operationId: "op-0",
      primaryNodeId: node.id,
      term: 1,
      nodes: [{ id: node.id, status: "Provisioning", address: "" }],
      health: { status: "unknown", since: 0, reason: "", checks: [] },
      error: null,
      observedGeneration: 0,
      expiryWarnings: [],
      announcedProtectedExpiry: false,
    },
  };
  return { service, operation };
}

/** A small model of the machines, the agents and the zone, for the pure parts to act on. */
function createWorld(broken: { engine: boolean; machine: boolean; silent: boolean }) {
  let { service, operation }: { service: ManagedServiceObject | undefined; operation: OperationObject } =
    freshService();
  let machine: MachineObject | undefined;
  let instance: ObservedNode["instance"];
  let names: ObservedService["names"] = "absent";
  let now = 1;
  let operations = 0;

  const observed = (): ObservedService => ({
    nodes: [
      { node, machine, connected: machine?.status.state === "running" && !broken.silent, instance, isCurrent: true },
    ],
    names,
  });

  function perform(step: ServiceStep): void {
    const current = service;
    if (current === undefined) return;
    if (step.kind === "createMachine") {
      machine = {
        metadata: { ...current.metadata, id: node.id },
        spec: { power: current.spec.power } as MachineObject["spec"],
        status: { state: "pending", reason: "", address: "127.0.0.2", enrollment: null, certificate: null },
      };
    } else if (step.kind === "powerMachine" && machine)
      machine = { ...machine, spec: { ...machine.spec, power: step.power } };
    else if (step.kind === "deleteMachine") [machine, instance] = [undefined, undefined];
    else if (step.kind === "publishNames") names = "published";
    else if (step.kind === "verifyNames") names = "verified";
    else if (step.kind === "withdrawNames") names = "absent";
    else if (step.kind === "forget") service = undefined;
    else if (step.kind === "converge") {
      instance = create(InstanceObservationSchema, {
        state: step.running ? (broken.engine ? "failed" : "running") : "stopped",
        reason: broken.engine ? "the engine refused" : "",
        since: timestampFromMs(now),
        generation: BigInt(current.spec.instanceGeneration),
        restartCount: BigInt(current.spec.restartCount),
      });
    }
  }

  function machineMoves(): void {
    if (machine === undefined) return;
    const state = broken.machine ? "failed" : machine.spec.power === "on" ? "running" : "stopped";
    machine = { ...machine, status: { ...machine.status, state, reason: broken.machine ? "the disk is full" : "" } };
  }

  return {
    get service() {
      return service;
    },
    get operation() {
      return operation;
    },
    command(verb: Verb): void {
      if (service === undefined) return;
      try {
        const outcome = requestVerb(
          service,
          verb,
          isOver(operation) ? undefined : operation,
          `op-${++operations}`,
          now,
        );
        if (outcome.kind === "change") [service, operation] = [outcome.after, outcome.operation];
      } catch (error) {
        expect((error as { key?: string }).key).toMatch(/WRONG_STATE|OPERATION_IN_PROGRESS/);
      }
    },
    round(elapsedMs: number): void {
      now += elapsedMs;
      machineMoves();
      if (service === undefined) return;
      for (const step of planManagedService(service, observed())) perform(step);
      machineMoves();
      if (service === undefined) return;
      const before = service.status.operationId === null ? undefined : operation;
      const moved = advance(service, observed(), before, now, silentLog);
      service = moved.after;
      if (moved.operation !== undefined) {
        expect(moved.operation.status.progressPct).toBeGreaterThanOrEqual(before?.status.progressPct ?? 0);
        operation = moved.operation;
      }
    },
  };
}

const verbs = fc.constantFrom<Verb>("start", "stop", "restart", "delete");

test("whatever is asked when, every operation ends, in the state that was asked for or in Error with a reason", () => {
  const worlds = fc.record({ engine: fc.boolean(), machine: fc.boolean(), silent: fc.boolean() });
  const commands = fc.array(fc.tuple(fc.nat(3), fc.nat(2_000), verbs), { maxLength: 12 });
  fc.assert(
    fc.property(worlds, commands, (broken, asked) => {
      const world = createWorld(broken);
      for (const [rounds, elapsedMs, verb] of asked) {
        for (let i = 0; i < rounds; i++) world.round(elapsedMs);
        world.command(verb);
      }
      for (let i = 0; i < 12; i++) world.round(stuckAfterMs);
      const { service, operation } = world;
      if (service === undefined) return;
      expect(service.status.operationId).toBeNull();
      expect(isOver(operation)).toBe(true);
      const { state, error } = service.status;
      expect(["Running", "Stopped", "Error"]).toContain(state);
      if (state === "Error") expect(error?.message).not.toBe("");
      if (!broken.engine && !broken.machine && !broken.silent)
        expect(state).toBe(service.spec.power === "on" ? "Running" : "Stopped");
    }),
    { numRuns: 500 },
  );
});

test("a deletion ends with nothing, from every state", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(3), verbs), { maxLength: 6 }), fc.boolean(), (asked, engine) => {
      const world = createWorld({ engine, machine: false, silent: false });
      for (const [rounds, verb] of asked) {
        for (let i = 0; i < rounds; i++) world.round(1_000);
        world.command(verb);
      }
      world.command("delete");
      for (let i = 0; i < 6; i++) world.round(1_000);
      expect(world.service).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test("every state of the table but the first can be left and reached", () => {
  const { rows } = managedServiceLifecycle;
  const from = new Set(rows.map((row) => row[0]));
  const to = new Set(rows.map((row) => row[2]));
  expect(from).toEqual(new Set(["Pending", "Provisioning", "Running", "Stopped", "Error"]));
  expect(to).toEqual(new Set(["Provisioning", "Running", "Stopped", "Error"]));
});
