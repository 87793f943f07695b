import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { postgresqlManaged } from "@holdfast/common/engine-catalog/postgresql-parameters.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import { dataDirectory, program } from "./layout.ts";
import { withSession } from "./session.ts";

interface Setting {
  readonly name: string;
  readonly vartype: string;
  readonly context: string;
  readonly min_val: string | null;
  readonly max_val: string | null;
  readonly enumvals: string[] | null;
  readonly unit: string | null;
}

/** Values that are not offered: with less in the log there are neither replicas nor an archive. */
const withheld: Readonly<Record<string, readonly string[]>> = { wal_level: ["minimal"] };

describe.each(["17", "18"])("parameters of postgresql %s", (version) => {
  describe.skipIf(!hasEngine("postgresql", version))("compared with the engine", () => {
    let machine: EngineMachine;
    let settings: Map<string, Setting>;

    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version);
      await machine.bringUp();
      const rows = await withSession(machine.instance, machine.signal, (session) =>
        session.rows<Setting>("SELECT name, vartype, context, min_val, max_val, enumvals, unit FROM pg_settings"),
      );
      settings = new Map(rows.map((row) => [row.name, row]));
    });
    afterAll(() => machine?.remove());

    it("have the engine's names, types, units, values and restart flags, within its limits", () => {
      const types: Readonly<Record<string, readonly string[]>> = {
        integer: ["integer"],
        real: ["real"],
        boolean: ["bool"],
        enum: ["enum"],
        text: ["string"],
        bytes: ["integer"],
        duration: ["integer", "real"],
      };
      for (const [name, parameter] of parametersOf("postgresql", version)) {
        const setting = settings.get(name);
        expect(setting, name).toBeDefined();
        if (setting === undefined) continue;
        expect(types[parameter.type], name).toContain(setting.vartype);
        expect(parameter.needsRestart, name).toBe(setting.context === "postmaster");
        expect(parameter.unit, name).toBe(setting.unit);
        if (parameter.type === "enum")
          expect([...parameter.values, ...(withheld[name] ?? [])].sort(), name).toEqual(
            [...(setting.enumvals ?? [])].sort(),
          );
        if (parameter.minimum !== null) expect(parameter.minimum, name).toBeGreaterThanOrEqual(Number(setting.min_val));
        if (parameter.maximum !== null) expect(parameter.maximum, name).toBeLessThanOrEqual(Number(setting.max_val));
      }
    });

    it("are accepted at the ends of their ranges, and next to the value that turns them off", async () => {
      const { instance, run, signal } = machine;
      const ends = [
        ({ minimum }: Parameter) => minimum,
        ({ minimum, minimumEnabled }: Parameter) =>
          minimumEnabled ?? (minimum !== null && minimum <= 0 ? minimum + 1 : minimum),
        ({ maximum }: Parameter) => maximum,
      ];
      for (const end of ends) {
        const values = [...parametersOf("postgresql", version).values()].flatMap((parameter) => {
          const value = end(parameter);
          return value === null ? [] : ["-c", `${parameter.name}=${value}`];
        });
        const argv = [program(instance, "postgres"), "-D", dataDirectory(instance), "-C", "max_connections", ...values];
        expect(await run(argv, { signal })).toMatch(/^\d+\s*$/);
      }
    });

    it("run with the rendered values, printed in the catalog's form", async () => {
      const observed = await machine.driver.observe(machine.instance, machine.signal);
      expect(observed.effectiveParameters).toEqual(Object.fromEntries(effectiveParameters(machine.instance)));
    });

    it("are refused by name if a running engine rejects them, unless they take effect at a start", async () => {
      const { driver, instance, signal } = machine;
      machine.change({ parameters: { vacuum_buffer_usage_limit: "1kB", work_mem: "9MB", max_connections: "77" } });
      await machine.writeConfig();
      const refusal = { name: "EngineRefused", message: "PostgreSQL rejects vacuum_buffer_usage_limit = 1kB." };
      await expect(driver.reload(machine.instance, signal)).rejects.toMatchObject(refusal);
      machine.change({ parameters: { work_mem: "9MB", max_connections: "77" } });
      await machine.writeConfig();
      await driver.reload(machine.instance, signal);
      const { effectiveParameters: effective, pendingRestart } = await driver.observe(machine.instance, signal);
      expect(effective).toMatchObject({ work_mem: "9MB", max_connections: expect.not.stringMatching("77") });
      expect(pendingRestart).toEqual(["max_connections"]);
      machine.change({ parameters: instance.spec.parameters });
      await machine.writeConfig();
      await driver.reload(machine.instance, signal);
    });

    it("that would break guarantees are reserved for the platform", () => {
      for (const name of [
        "listen_addresses",
        "ssl_cert_file",
        "hba_file",
        "archive_command",
        "fsync",
        "log_destination",
        "data_directory",
      ]) {
        expect(settings.has(name), name).toBe(true);
        expect(
          postgresqlManaged.some((pattern) => pattern.test(name)),
          name,
        ).toBe(true);
      }
    });
  });
});
