import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { checkCollations, collationCheck } from "../../workload/engine/collation-check.ts";
import { collations } from "./collations.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { platform } from "./layout.ts";
import { withSession } from "./session.ts";

describe.skipIf(!hasEngine("postgresql", "17"))("collations that the data depends on", () => {
  let machine: EngineMachine;
  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", "17");
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  const uses = () => collations.uses(machine.instance, machine.signal);
  const check = () => checkCollations(machine.driver, machine.instance, machine.signal);
  const inPlatform = (sql: string) => withSession(machine.instance, machine.signal, (session) => session.rows(sql));

  it("are none by default: new databases use PostgreSQL's builtin provider", async () => {
    expect(await uses()).toEqual([]);
    expect(await check()).toMatchObject({ libraries: [], check: { status: "healthy" } });
  });

  it("are reported for columns and databases, also after the library changed", async () => {
    await inPlatform(`CREATE TABLE public.names (name text COLLATE "de-x-icu")`);
    await inPlatform(`CREATE DATABASE sorted TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C.UTF-8'`);
    const found = await uses();
    expect(found.map(({ database, library }) => `${database} ${library}`).sort()).toEqual([
      `${platform} ICU`,
      "sorted ICU",
    ]);
    expect(found.every(({ recorded, actual }) => recorded !== "" && recorded === actual)).toBe(true);
    expect(await check()).toMatchObject({ libraries: ["ICU"], check: { status: "healthy" } });

    // Simulates an image with another library: the recorded version is the previous library's.
    await inPlatform("UPDATE pg_database SET datcollversion = '1.0' WHERE datname = 'sorted'");
    await inPlatform("UPDATE pg_collation SET collversion = '1.0' WHERE collname = 'de-x-icu'");
    const after = collationCheck(await uses());
    expect(after.status).toBe("degraded");
    expect(after.reason).toMatch(/in database sorted \(ICU 1\.0, now \d/);
    expect(after.reason).toMatch(/de-x-icu in database holdfast \(ICU 1\.0, now \d/);
  });
});
