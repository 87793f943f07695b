import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import { createMysqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");
const catalog = parametersOf("mysql", "9.7");

describe.skipIf(skip !== undefined)("the parameters of mysql 9.7", () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7");
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  async function running(): Promise<Readonly<Record<string, string>>> {
    await machine.writeConfig();
    await machine.driver.reload(machine.instance, machine.signal);
    return (await machine.driver.observe(machine.instance, machine.signal)).effectiveParameters;
  }

  it("have the defaults that the catalog has", async () => {
    expect(await running()).toEqual(Object.fromEntries(effectiveParameters(machine.instance)));
  });

  it("limit the sessions of an account, and not those of the platform", async () => {
    machine.change({ parameters: { max_user_connections: "1" } });
    await running();
    const sessions = [1, 2, 3].map(() => machine.driver.observe(machine.instance, machine.signal));
    for (const { checks } of await Promise.all(sessions)) expect(checks[0]?.status).toBe("healthy");
  });

  it("are applied to the running engine at their limits", async () => {
    const live = [...catalog.values()].filter(({ needsRestart }) => !needsRestart);
    expect(live.length).toBeGreaterThan(40);
    for (const limit of ["minimum", "maximum"] as const) {
      // The redo log of the machine is too small for the maximum of threads.
      const redoLog = { innodb_redo_log_capacity: String(256 << 20) };
      const parameters = { ...redoLog, ...Object.fromEntries(live.flatMap((each) => valueAt(each, limit))) };
      machine.change({ parameters });
      expect(await running()).toMatchObject(parameters);
    }
    machine.change({ parameters: { innodb_io_capacity: "300", innodb_io_capacity_max: "200" } });
    await expect(running()).rejects.toThrow("MySQL rejects innodb_io_capacity_max = 200");
    machine.change({ parameters: {} });
    await running();
  });

  it("include names of time zones for sessions", async () => {
    const [row] = await withSession(machine.instance, machine.signal, (session) =>
      session.rows<{ summer: string; here: string }>(
        `SELECT CONVERT_TZ('2026-07-01 12:00:00', 'UTC', 'Europe/Helsinki') AS summer, @@GLOBAL.time_zone AS here`,
      ),
    );
    expect(row).toEqual({ summer: "2026-07-01 15:00:00", here: "+00:00" });
  });

  it("are rejected if the engine would not start with them", async () => {
    const small = { innodb_redo_log_capacity: String(64 << 20) };
    machine.change({ parameters: { innodb_thread_concurrency: "1000", ...small } });
    await expect(running()).rejects.toThrow("innodb_thread_concurrency is too big for safety of redo log files");
    machine.change({ parameters: { innodb_thread_concurrency: "100", ...small } });
    expect(await running()).toMatchObject({ innodb_thread_concurrency: "100", ...small });
    machine.change({ parameters: { innodb_thread_concurrency: "1000", innodb_redo_log_capacity: String(256 << 20) } });
    expect(await running()).toMatchObject({ innodb_thread_concurrency: "1000" });
    machine.change({ parameters: {} });
    await running();
  });
});

/** Memory at its maximum would not fit on this machine. */
function valueAt({ name, type, values, ...limits }: Parameter, limit: "minimum" | "maximum"): [string, string][] {
  if (values.length > 0) return [[name, values.at(limit === "minimum" ? 0 : -1) ?? ""]];
  if (type === "bytes" || type === "text" || type === "real") return [];
  return [[name, String(limits[limit])]];
}
