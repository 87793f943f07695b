import { expect, test } from "vitest";
import type { Companion, EngineDriver, Instance } from "../../engines/engine-driver.ts";
import type { KeeperClient } from "../../os/keeper-client.ts";
import { createEngineProcess } from "./engine-process.ts";
import { partial } from "@holdfast/testing/partial.ts";

test.each([
  ["closed before the engine is stopped", false, ["closeSessions", "beforeStop", "stop 1"]],
  ["not waited for by an engine that is killed", true, ["closeSessions", "stop 0", "beforeStop", "stop 1"]],
])("sessions that work on queues are %s", async (_, force, expected) => {
  const orders: string[] = [];
  const keeper = partial<KeeperClient>({
    component: () => ({ name: "engine", state: "running", starts: 1 }),
    order: async (order) => {
      if (order.op === "stop") orders.push(`stop ${order.graceMs}`);
      return {};
    },
    subscribe: () => ({ close: () => undefined }),
  });
  const driver = partial<EngineDriver>({
    stop: { signal: "SIGINT", graceMs: 1 },
    queues: { closeSessions: () => void orders.push("closeSessions") },
  });
  const beforeStop = async () => void orders.push("beforeStop");
  const engine = createEngineProcess({ keeper, logPath: "/nowhere", beforeStop });
  await engine.stop(driver, {} as Instance, { force });
  expect(orders).toEqual(expected);
});

test("an engine needs neither its optional companions nor disabled ones, such as those of clients in a drill", async () => {
  const running = ["engine", "needed"];
  const keeper = partial<KeeperClient>({
    component: (name) => (running.includes(name) ? partial({ name, state: "running", starts: 1 }) : undefined),
    subscribe: () => ({ close: () => undefined }),
  });
  const companions = [
    partial<Companion>({ name: "needed" }),
    partial<Companion>({ name: "optional", isOptional: true }),
    partial<Companion>({ name: "disabled", isEnabled: false }),
  ];
  const driven = { driver: partial<EngineDriver>({ companions: () => companions }), instance: {} as Instance };
  const engine = createEngineProcess({ keeper, logPath: "/nowhere", beforeStop: async () => undefined });
  expect(engine.companionsRun(driven)).toBe(true);
  expect(await engine.whileCompanionsRun(driven, new AbortController().signal, async () => "ready")).toBe("ready");
  running.pop();
  expect(engine.companionsRun(driven)).toBe(false);
});
