import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import {
  hostileSettings,
  hostileStatements,
  shortTimeoutParameters,
} from "@holdfast/testing/engines/hostile-settings.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { withConsoleSession } from "./console-session.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

const password = "a-password-of-the-test";
const users = [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier(password) })];
const hasImage = hasEngine("postgresql", "17");

/** A statement that outlasts each of these time-outs. */
const outlasting = "SELECT count(*) FROM generate_series(1, 500000)";

describe.skipIf(!hasImage)(`sessions of the platform${hasImage ? "" : " (skipped: there is no node image)"}`, () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", "17", { users });
    await machine.bringUp();
    const client = await connectPostgresql(machine, { user: "app_user", password });
    for (const statement of hostileStatements("defaultdb")) await client.query(statement);
    await client.end();
    await machine.stop();
    machine.change({ parameters: shortTimeoutParameters });
    await machine.writeConfig();
    await machine.start();
  });
  afterAll(() => machine?.remove());
  beforeEach(() => onTestFailed(() => console.log(machine.output())));

  test("an engine with minimal timeouts becomes ready, is observed, reloaded and backed up", async () => {
    const { driver, instance, signal } = machine;
    await driver.ready(instance, signal);
    const { checks, effectiveParameters } = await driver.observe(instance, signal);
    expect(checks.filter(({ status }) => status !== "healthy")).toEqual([]);
    expect(effectiveParameters).toMatchObject({ transaction_timeout: "1", IntervalStyle: "sql_standard" });
    await driver.reload(instance, signal);
    const source = await driver.backup?.open(instance, signal);
    for (const { bytes } of source?.streams ?? []) for await (const _ of bytes);
    expect(await source?.end()).toMatchObject({ positions: { branch: "1" } });
    await source?.close();
    expect(await driver.databases?.list(instance, signal)).toMatchObject([{ name: "defaultdb" }, { name: "postgres" }]);
    expect(
      (await driver.databases?.create(instance, { name: "other", owner: "app_user", mark: "" }, signal))?.created,
    ).toBe(true);
    expect((await driver.databases?.drop(instance, "other", signal))?.existed).toBe(true);
  });

  test("settings of a database's owner do not apply to the platform's sessions", async () => {
    const { instance, signal } = machine;
    const settingsSql =
      "SELECT name, setting FROM pg_settings WHERE source IN ('database', 'configuration file') AND name = ANY ($1)";
    const names = [[...Object.keys(shortTimeoutParameters), ...Object.keys(hostileSettings)]];
    const [reached, late] = await withSession(
      instance,
      signal,
      async (session) => {
        const rows = await session.rows(settingsSql, names);
        expect(await session.rows("SELECT session_user AS who")).toEqual([{ who: "holdfast" }]);
        await session.rows("BEGIN");
        await session.rows(outlasting);
        await session.rows("COMMIT");
        return [rows, await session.rows<{ at: Date }>("SELECT '2026-02-01 12:00+00'::timestamptz AS at")];
      },
      { database: "defaultdb" },
    );
    expect(reached).toEqual([]);
    expect(late).toEqual([{ at: new Date("2026-02-01T12:00:00Z") }]);
    const limits = { database: "defaultdb", timeoutMs: 5_000, bytesMax: 1 << 20 };
    const inConsole = await withConsoleSession(instance, limits, signal, async (session) => {
      const rows = await session.query(settingsSql, names);
      await session.query("BEGIN");
      await session.query(outlasting);
      return rows.map(([name]) => name);
    });
    // The console's role has a separate limit.
    expect(inConsole).toEqual([]);
  });
});
