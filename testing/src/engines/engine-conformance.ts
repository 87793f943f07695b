import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { appliesToEngine, metricCatalog } from "@holdfast/common/metric-catalog.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EngineMachine } from "./engine-machine.ts";
import { waitUntil } from "../wait-until.ts";
import { conformsToBackupFacet } from "./backup-conformance.ts";
import { allow, type ConformanceSubject, type ConnectOptions, ended, engineUser } from "./conformance-subject.ts";
import { conformsToUsersFacet } from "./user-conformance.ts";
import { listeningSockets } from "@holdfast/agent/os/listening-sockets.ts";

const inside = "127.9.9.1";
const outside = "127.9.9.2";

const anonymous = { user: "", password: "" };

/**
 * Conformance suite that every driver passes against its real engine. The allow-list is part of it also for an engine
 * without users, whose clients nothing else limits.
 */
export function conformsToEngineDriver(subject: ConformanceSubject): void {
  const { users } = subject;
  const { notAllowed, withoutTls } = subject.refusals;
  const login = (password: string) => (users === undefined ? anonymous : { user: defaultUser, password });
  /** The login after the default user's password was changed. */
  const latest = () => login("second secret");
  const enter = (machine: EngineMachine, options: Partial<ConnectOptions> = {}) =>
    subject.connect(machine, { ...login("first secret"), from: inside, ...options });

  describe.skipIf(subject.skip !== undefined)(
    `${subject.name}${subject.skip === undefined ? "" : `: ${subject.skip}`}`,
    () => {
      let machine: EngineMachine;

      beforeAll(async () => {
        machine = await subject.machine({
          users: users === undefined ? [] : [engineUser(users, defaultUser, "admin", "first secret")],
          allowedCidrs: [`${inside}/32`],
        });
        await machine.bringUp();
      });
      afterAll(() => machine?.remove());

      it("is installed, and reports an absent version", async () => {
        const { driver, instance, signal } = machine;
        expect(driver.users !== undefined, "the suite tests the users of a driver with this facet").toBe(
          users !== undefined,
        );
        expect(await driver.fingerprint(instance.paths.software, signal)).toMatchObject({ present: true });
        expect(await driver.fingerprint("/nowhere", signal)).toMatchObject({ present: false });
      });

      it("renders equal files for equal settings, and none below the data directory", () => {
        const { driver, instance } = machine;
        expect(driver.render(instance)).toEqual(driver.render(structuredClone(instance)));
        for (const { name, content } of driver.render(instance)) {
          expect(name).toMatch(/^[a-z_.]+$/);
          expect(content).not.toContain("first secret");
          if (users !== undefined) expect(content).not.toContain(users.verifierOf("first secret"));
        }
      });

      it("listens at its driver's addresses, and nowhere once stopped", async () => {
        const { driver, instance } = machine;
        const listeners = driver.listeners(instance);
        const found = async () =>
          (await listeningSockets())?.filter(({ address, port }) =>
            listeners.some((listener) => listener.address === address && listener.port === port),
          );
        expect(listeners.map(({ address }) => address)).toContain(instance.spec.address);
        expect(await found()).toHaveLength(listeners.length);
        await machine.stop();
        expect(await found()).toEqual([]);
        await machine.start();
        await driver.ready(instance, machine.signal);
      });

      it("is ready immediately if it runs, and does not bootstrap existing data", async () => {
        await machine.bootstrap();
        await machine.driver.ready(machine.instance, machine.signal);
      });

      it("accepts clients over TLS with its host name verified", async () => {
        const client = await enter(machine);
        await client.write("greeting", "hello");
        expect(await client.read("greeting")).toBe("hello");
        await client.close();
      });

      it("refuses a certificate by another name, and a connection without TLS", async () => {
        await expect(enter(machine, { serverName: "other.local.holdfast.test" })).rejects.toThrow("altnames");
        await expect(enter(machine, { serverName: machine.instance.spec.address })).rejects.toThrow("altnames");
        await expect(subject.connectPlain(machine, { ...login("first secret"), from: inside })).rejects.toThrow(
          withoutTls,
        );
      });

      it("applies the allow-list to new and open sessions immediately", async () => {
        await expect(enter(machine, { from: outside })).rejects.toThrow(notAllowed);
        const open = await enter(machine);
        await allow(machine, [`${outside}/32`]);
        await ended(open);
        await expect(enter(machine)).rejects.toThrow(notAllowed);
        const second = await enter(machine, { from: outside });
        await allow(machine, []);
        await ended(second);
        await expect(enter(machine, { from: outside })).rejects.toThrow(notAllowed);
        await allow(machine, [`${inside}/32`, "fd00::/8"]);
        const readmitted = await enter(machine);
        // A session that is still allowed remains open.
        await allow(machine, ["127.9.9.0/24"]);
        expect(await readmitted.read("greeting")).toBe("hello");
        await readmitted.close();
        await allow(machine, [`${inside}/32`]);
      });

      if (users !== undefined) conformsToUsersFacet(users, () => machine, enter);

      it("applies live parameters immediately, and reports which need a restart", async () => {
        const { driver } = machine;
        machine.change({
          parameters: { [subject.live[0]]: subject.live[1], [subject.atStart[0]]: subject.atStart[1] },
        });
        await machine.writeConfig();
        await driver.reload(machine.instance, machine.signal);
        const before = await driver.observe(machine.instance, machine.signal);
        expect(lookUp(before.effectiveParameters, subject.live[0])).toBe(subject.live[1]);
        expect(lookUp(before.effectiveParameters, subject.atStart[0])).not.toBe(subject.atStart[1]);
        expect(before.pendingRestart).toEqual([subject.atStart[0]]);
        await restart(machine);
        const after = await driver.observe(machine.instance, machine.signal);
        expect(lookUp(after.effectiveParameters, subject.atStart[0])).toBe(subject.atStart[1]);
        expect(after.pendingRestart).toEqual([]);
      });

      it("preserves data, users and passwords over a clean stop and a kill", async () => {
        const { driver, instance } = machine;
        if (users !== undefined)
          await driver.users?.put(instance, engineUser(users, defaultUser, "admin", "second secret"), machine.signal);
        const client = await enter(machine, latest());
        await client.write("kept", "1");
        await restart(machine);
        const withNewPassword = await enter(machine, latest());
        expect(await withNewPassword.read("kept")).toBe("1");
        await withNewPassword.write("kept", "2");
        await withNewPassword.flush?.();
        await restart(machine, "SIGKILL");
        const last = await enter(machine, latest());
        expect(await last.read("kept")).toBe("2");
        await last.close();
      });

      it("counts sessions of users only, and reports every engine metric of the catalog", async () => {
        const { driver, instance, signal } = machine;
        if (driver.metrics === undefined) return;
        const readMetrics = () => driver.metrics?.read(instance, signal);
        const before = await waitUntil("ended sessions are not counted", async () => {
          const found = await readMetrics();
          return found?.gauges["connections"] === 0 && found;
        });
        const clients = await Promise.all([1, 2, 3].map(() => enter(machine, latest())));
        const during = await readMetrics();
        expect(during?.gauges["connections"]).toBe(3);
        expect(during?.epoch).toBe(before.epoch);
        const { gauges, counters, ratios, absent } = { ...during };
        const reported = [gauges, counters, ratios, absent].flatMap((each) => Object.keys(each ?? {}));
        const expected = metricCatalog.filter(
          (each) => each.source === "engine" && appliesToEngine(each, driver.engine),
        );
        expect(reported.sort()).toEqual(expected.map(({ name }) => name).sort());
        expect(Object.values({ ...gauges, ...counters }).every(Number.isFinite)).toBe(true);
        await Promise.all(clients.map((client) => client.close()));
        await restart(machine);
        expect((await readMetrics())?.epoch).not.toBe(during?.epoch);
        await expect(driver.metrics.read(instance, AbortSignal.abort())).rejects.toThrow();
      });

      it("counts users' queries, each kind once, without their values", async () => {
        const { driver, instance, signal } = machine;
        if (driver.queryStats === undefined) return;
        const client = await enter(machine, latest());
        const calls = async () => {
          const options = { limit: 500, order: "total_time" } as const;
          const { queries, totalCount } = (await driver.queryStats?.read(instance, options, signal)) ?? unknown();
          expect(totalCount).toBeGreaterThanOrEqual(queries.length);
          expect(JSON.stringify(queries)).not.toContain("a planted value");
          return queries.reduce((sum, { calls: each }) => sum + each, 0);
        };
        const before = await calls();
        for (let n = 0; n < 5; n += 1) await client.write(`counted-${n}`, "a planted value");
        expect((await calls()) - before).toBeGreaterThanOrEqual(5);
        const least = await driver.queryStats.read(instance, { limit: 1, order: "calls" }, signal);
        expect(least.queries).toHaveLength(1);
        expect(least.since.getTime()).toBeLessThanOrEqual(least.collectedAt.getTime());
        await expect(
          driver.queryStats.read(instance, { limit: 1, order: "calls" }, AbortSignal.abort()),
        ).rejects.toThrow();
        await client.close();
      });

      it("runs reading statements within limits, and no writing ones", async () => {
        const { driver, instance, signal } = machine;
        const { console: fixture } = subject;
        if (driver.readOnlyQuery === undefined || fixture === undefined) return;
        const limits = {
          database: fixture.database,
          functions: [],
          types: [],
          qualified: [],
          relations: [],
          rowsMax: 10,
          bytesMax: 1 << 20,
          timeoutMs: 5_000,
        };
        const run = async (sql: string, change = {}) =>
          (await driver.readOnlyQuery?.run(instance, { ...limits, sql, ...change }, signal)) ?? unknown();
        expect(await run(fixture.oneRow)).toMatchObject({ rows: "[[1]]", rowCount: 1, truncated: false });
        expect(await run(fixture.twenty)).toMatchObject({ rowCount: 10, truncated: true });
        expect(await run(fixture.twenty, { bytesMax: 10 })).toMatchObject({ truncated: true });
        expect(await run(fixture.writing)).toHaveProperty("refusal");
        expect(await run(fixture.endless, { timeoutMs: 200 })).toHaveProperty("refusal");
        // The name of the platform's account means nothing to users.
        expect(await run(fixture.oneRow, { database: "nowhere" })).toHaveProperty(
          "refusal.message",
          expect.not.stringContaining("holdfast"),
        );
        await expect(
          driver.readOnlyQuery.run(instance, { ...limits, sql: fixture.oneRow }, AbortSignal.abort()),
        ).rejects.toThrow();
      });

      it("reports that it is healthy by a write, and that it is not", async () => {
        const { driver, instance } = machine;
        const alive = await driver.observe(instance, machine.signal);
        expect(alive.responded).toBe(true);
        expect(alive.checks.every(({ status }) => status === "healthy")).toBe(true);
        expect(alive.version).toMatch(new RegExp(`^${subject.ownVersion ?? instance.spec.version}`));
        await machine.stop();
        const dead = await driver.observe(instance, machine.signal);
        expect(dead.responded).toBe(false);
        expect(dead.checks[0]).toMatchObject({
          name: "liveness",
          status: "unhealthy",
          reason: "The engine does not listen for connections.",
        });
        await machine.start();
        await driver.ready(instance, machine.signal);
      });

      it("prints lines that its driver can parse, without a secret", async () => {
        await machine.stop();
        const lines = machine
          .output()
          .split("\n")
          .flatMap((line) => machine.driver.parseLog(line) ?? []);
        expect(lines.length).toBeGreaterThan(3);
        for (const { time } of lines) expect(Math.abs(time.getTime() - Date.now())).toBeLessThan(600_000);
        expect(machine.output()).not.toContain("second secret");
        if (users !== undefined) expect(machine.output()).not.toContain(users.verifierOf("second secret"));
      });
    },
  );
  if (subject.hasBackups !== false) conformsToBackupFacet(subject);
}

function unknown(): never {
  throw new Error("the driver lacks a facet that it had");
}

async function restart(machine: EngineMachine, signal?: NodeJS.Signals): Promise<void> {
  await machine.stop(signal);
  await machine.start();
  await machine.driver.ready(machine.instance, machine.signal);
}
