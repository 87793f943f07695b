import { ControlService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { Rest } from "@holdfast/testing/api/rest.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { startWebhookReceiver, type WebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AlertJson, createAlertsUnderTest, type RuleJson } from "./alerts/alerts-under-test.ts";

/** Rules while their evaluator, or their subject, is down. */
describe("alerts", { timeout: 600_000 }, () => {
  const fixture = createAlertsUnderTest();
  /** A rule without a channel, and the session whose transaction makes it true. */
  let slow: RuleJson;
  let idle: Awaited<ReturnType<typeof openPostgresql>>;
  /** A service without samples while another is tested, and its rule that fires then. */
  let silent: RunningService;
  let silence: RuleJson;

  beforeAll(async () => {
    await fixture.start({ HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" });
    const { platform, services, watched } = fixture;
    silent = await services.createRunning("silent");
    idle = await openPostgresql(platform, watched.connection, { password: watched.password });
    await idle.query("BEGIN; SELECT count(*) FROM pg_class");
    const body = { metric: "pg_oldest_transaction_seconds", condition: "gt", threshold: 0.1, duration_minutes: 1 };
    slow = expectStatus(await platform.rest.post<RuleJson>(fixture.rulesPath(), body), 201).json;
    await waitUntil("it is found to be true", async () => typeof (await slowAt(platform.rest))?.since === "string");
    await fallSilent();
  });
  afterAll(async () => {
    await idle?.end().catch(() => undefined);
    await fixture.remove();
  });

  /** The rule from one of the controllers; undefined while that does not respond. */
  const slowAt = async (rest: Rest) =>
    (await rest.get<RuleJson & { since: string }>(`${fixture.rulesPath()}/${slow.id}`).catch(() => undefined))?.json;
  const logOf = (program: string) => readFileSync(join(fixture.platform.directory, "log", `${program}.log`), "utf8");
  const pathOfSilence = () => `/managed-services/${silent.service.id}/alerts/rules/${silence.id}`;
  const stateOfSilence = async () =>
    expectStatus(await fixture.platform.rest.get<RuleJson>(pathOfSilence()), 200).json.state;
  const agentOfSilent = () =>
    fixture.platform.processes().machines.find((machine) => machine.id === silent.service.nodes[0]?.id)?.agent ?? 0;

  async function fallSilent(): Promise<void> {
    const path = `/managed-services/${silent.service.id}/alerts/rules`;
    const body = { metric: "pg_connections", condition: "gt", threshold: 1e6, duration_minutes: 0, no_data: "fire" };
    silence = expectStatus(await fixture.platform.rest.post<RuleJson>(path, body), 201).json;
    await waitUntil("it is looked at", async () => (await stateOfSilence()) === "ok");
    killImmediately(agentOfSilent(), "SIGSTOP");
  }

  it("fires once and is resolved while its controllers are killed alternately", async () => {
    const before = await slowAt(fixture.platform.rest);
    expect(before?.since).toEqual(expect.any(String));
    const second = await startSecondController(fixture.platform);
    try {
      const [first = 0] = fixture.platform.processes().controllers;
      killImmediately(first);
      await waitUntil("it is started again", () =>
        fixture.platform.processes().controllers.some((pid) => pid !== first),
      );
      await waitUntil("the second one owns everything", () =>
        asOperator(fixture.platform, ControlService, async (rpcs) => {
          await rpcs.drainController({ controllerId: "controller-1" });
          const { controllers } = await rpcs.listControllers({});
          return controllers.every(({ id: controller, shards }) => (controller === "controller-2") === shards > 0);
        }).catch(() => false),
      );
      await waitUntil("it fires", async () => (await slowAt(second.rest))?.state === "firing");
      expect((await slowAt(second.rest))?.since).toBe(before?.since);
    } finally {
      for (const pid of [second.pid, ...fixture.platform.processes().controllers]) killImmediately(pid);
      await second.stop();
    }
    await waitUntil("the first one is back", async () => (await slowAt(fixture.platform.rest))?.state === "firing");
    await idle.query("COMMIT");
    const resolved = await waitUntil("it is resolved", async () => {
      const events = (await fixture.eventsOfAlerts()).filter(({ data }) => data.rule_id === slow.id);
      const inOrder = events.toSorted((one, other) => one.event_type.localeCompare(other.event_type));
      return inOrder.at(-1)?.event_type === "alert.resolved" && inOrder;
    });
    expect(resolved).toMatchObject([
      { event_type: "alert.fired", data: { state: "firing" } },
      { event_type: "alert.resolved", data: { id: resolved[0]?.data.id, reason: "condition_false" } },
    ]);
    expect(resolved).toHaveLength(2);
    // The session that fired it has ended.
    const ended = new RegExp(`"rule":"${slow.id}".*"from":"firing","to":"ok"`);
    await waitUntil("the controller's log has it", () => ended.test(logOf("controller")));
    expectStatus(await fixture.platform.rest.delete(`${fixture.rulesPath()}/${slow.id}`), 204);
  });

  it("report a service without samples, by a rule that requests it", async () => {
    const firing = async () =>
      expectStatus(await fixture.platform.rest.get<{ alerts: AlertJson[] }>("/alerts/firing"), 200).json.alerts.filter(
        ({ rule_id }) => rule_id === silence.id,
      );
    await waitUntil("no sample arrives", async () => (await stateOfSilence()) === "no_data", { withinMs: 240_000 });
    expect(await firing()).toMatchObject([{ state: "no_data" }]);
    killImmediately(agentOfSilent(), "SIGCONT");
    await waitUntil(
      "its samples arrive again",
      async () => (await stateOfSilence()) === "ok" && (await firing()).length === 0,
    );
    await fixture.services.delete(silent.service.id);
  });

  describe("that go to a default channel", () => {
    let receiver: WebhookReceiver;
    beforeAll(async () => {
      receiver = await startWebhookReceiver();
      const channel = await fixture.jsonOf<{ id: string }>(`channels create on-call --url ${receiver.url}`);
      await fixture.jsonOf(`alerts default-channel ${channel.id}`);
    });
    afterAll(() => receiver?.close());

    const alertsOf = (ruleId: string) =>
      receiver.received.map(({ body }) => JSON.parse(body) as AlertJson).filter(({ rule_id }) => rule_id === ruleId);

    it("resolves firing alerts when their service is deleted", async () => {
      const { service } = await fixture.services.createRunning("short-lived", { database_type: "valkey" });
      const path = `/managed-services/${service.id}/alerts/rules`;
      const body = { metric: "memory", condition: "gt", threshold: 0 };
      const { id } = expectStatus(await fixture.platform.rest.post<RuleJson>(path, body), 201).json;
      await waitUntil("it fires", () => alertsOf(id).length === 1);
      await fixture.services.delete(service.id);
      await waitUntil("it is resolved", () => alertsOf(id).length === 2);
      expect(alertsOf(id)[1]).toMatchObject({ state: "resolved", reason: "service_deleted" });
      await waitUntil("nothing of it fires", async () => {
        const { json } = await fixture.platform.rest.get<{ alerts: readonly AlertJson[] }>("/alerts/firing");
        return json.alerts.every(({ rule_id }) => rule_id !== id);
      });
    });
  });
});
