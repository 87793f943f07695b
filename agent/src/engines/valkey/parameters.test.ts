import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createValkeyDriver } from "./driver.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import { type Session, withSession } from "./session.ts";

describe.each(["8.1", "9"])("parameters of valkey %s", (version) => {
  describe.skipIf(!hasEngine("valkey", version))("compared with the engine", () => {
    let machine: EngineMachine;

    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createValkeyDriver(deps), "valkey", version);
      await machine.bringUp();
    });
    afterAll(() => machine?.remove());

    const set = (session: Session, name: string, value: string) =>
      session.call("CONFIG", "SET", name, value).then(
        () => "taken",
        (error: Error) => error.message,
      );

    it("run with the rendered values, printed in the catalog's form", async () => {
      const observed = await machine.driver.observe(machine.instance, machine.signal);
      expect(observed.effectiveParameters).toEqual(Object.fromEntries(effectiveParameters(machine.instance)));
      expect(observed.pendingRestart).toEqual([]);
    });

    it("apply live unless they need a restart, at both ends of their range and for each value", async () => {
      await withSession(machine.instance, machine.signal, async (session) => {
        for (const [name, parameter] of parametersOf("valkey", version)) {
          const now = effectiveParameters(machine.instance).get(name) ?? "";
          const limits = [parameter.minimum, parameter.maximum].filter((limit) => limit !== null).map(String);
          const values = parameter.type === "boolean" || parameter.type === "enum" ? parameter.values : limits;
          if (parameter.needsRestart) continue;
          for (const value of values) expect(await set(session, name, value), `${name} ${value}`).toBe("taken");
          await set(session, name, now);
        }
      });
    });
  });
});
