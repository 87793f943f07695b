import fc from "fast-check";
import { expect, test } from "vitest";
import { requests, createServiceScenario, faultsOfImages } from "@holdfast/testing/controller/service-scenario.ts";
import { isFinished, stuckAfterMs } from "#operation/operation.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { drainReason } from "./health/managed-service-health.ts";
import { managedServiceLifecycle } from "./managed-service-lifecycle.ts";
import { requestCommand } from "./service-commands.ts";

test("every operation ends in the requested state, or in Error with a reason", () => {
  const scenarios = fc
    .tuple(
      fc.record({ engine: fc.boolean(), machine: fc.boolean(), silent: fc.boolean() }),
      fc.constantFrom(undefined, ...faultsOfImages),
    )
    .map(([broken, image]) => ({ ...broken, image }));
  const commands = fc.array(fc.tuple(fc.nat(3), fc.nat(2_000), fc.constantFrom(...requests)), { maxLength: 12 });
  fc.assert(
    fc.property(scenarios, commands, (broken, requested) => {
      const observed = createServiceScenario(broken);
      for (const [rounds, elapsedMs, command] of requested) {
        for (let i = 0; i < rounds; i++) observed.round(elapsedMs);
        observed.command(command);
      }
      for (let i = 0; i < 24; i++) observed.round(stuckAfterMs);
      const { service, operation } = observed;
      if (service === undefined) return;
      expect(service.status.operationId).toBeNull();
      expect(isFinished(operation)).toBe(true);
      const { state, error } = service.status;
      expect(["Running", "Stopped", "Error"]).toContain(state);
      if (state === "Error") expect(error?.message).not.toBe("");
      if (!broken.engine && !broken.machine && !broken.silent)
        expect(state).toBe(service.spec.power === "on" ? "Running" : "Stopped");
    }),
    { numRuns: 500 },
  );
});

test("every state of the table but the first can be left and reached", () => {
  const { rows } = managedServiceLifecycle;
  const from = new Set(rows.map((row) => row[0]));
  const to = new Set(rows.map((row) => row[2]));
  expect(from).toEqual(new Set(["Pending", "Provisioning", "Running", "Upgrading", "Stopped", "Error"]));
  expect(to).toEqual(new Set(["Provisioning", "Running", "Upgrading", "Stopped", "Error"]));
});

test("remains stopped with a reason during a drain of its host, and then starts unless it was stopped", () => {
  const observed = createServiceScenario();
  const rounds = () => {
    for (let round = 0; round < 10; round += 1) observed.round(1_000);
  };
  rounds();
  expect(observed.service?.status.state).toBe("Running");
  observed.pauseAutomation(true);
  rounds();
  expect(observed.service?.status).toMatchObject({
    state: "Stopped",
    nodes: [{ status: "Stopped" }],
    health: { status: "unknown", reason: drainReason },
  });
  expect(() =>
    requestCommand(observed.service as ManagedServiceObject, "start", undefined, { operationId: "op", now: 1 }),
  ).toThrow(drainReason);
  observed.pauseAutomation(false);
  rounds();
  expect(observed.service?.status).toMatchObject({ state: "Running", health: { status: "healthy" } });
  observed.pauseAutomation(true);
  rounds();
  observed.command("stop");
  rounds();
  observed.pauseAutomation(false);
  rounds();
  expect(observed.service?.status.state).toBe("Stopped");
  expect(observed.operation.status.state).toBe("completed");
});
