import { HoldfastError } from "@holdfast/common/errors.ts";
import { testHostedApp } from "@holdfast/testing/controller/hosted-app.ts";
import { expect, test } from "vitest";
import { scaled, started, stopped } from "./hosting-changes.ts";

const asOf = { operationId: "op", now: 9 };
const running = testHostedApp({ nodeIds: ["n"], readyIds: ["n"], servingId: "d" });

const keyOf = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    return error instanceof HoldfastError ? error.key : "other";
  }
  return "none";
};

test("an app is stopped once, and started again from Stopped", () => {
  const off = stopped(running, asOf);
  expect(off.app.spec.hosting.power).toBe("off");
  expect(off.operation).toMatchObject({ metadata: { id: "op" }, spec: { type: "stop" } });
  expect(off.app.status.hosting).toMatchObject({ state: "Running", operationId: "op" });
  expect(keyOf(() => stopped(off.app, asOf))).toBe("WRONG_STATE");
  expect(keyOf(() => started(running, asOf))).toBe("WRONG_STATE");
  const isStopped = { ...off.app, status: { hosting: { ...off.app.status.hosting, state: "Stopped" as const } } };
  const on = started(isStopped, asOf);
  expect(on.app.spec.hosting).not.toHaveProperty("power");
  expect(on.app.status.hosting).toMatchObject({ state: "Provisioning", since: 9 });
  expect(on.operation.spec.type).toBe("start");
});

test("the number of machines changes while the app is started", () => {
  const { app, operation } = scaled(running, 3, asOf);
  expect([app.spec.hosting.replicas, operation.spec.type]).toEqual([3, "scale"]);
  expect(keyOf(() => scaled(running, 1, asOf))).toBe("NOT_POSSIBLE");
  expect(keyOf(() => scaled(stopped(running, asOf).app, 3, asOf))).toBe("WRONG_STATE");
});
