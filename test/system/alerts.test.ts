import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { type MailServer, startMailServer } from "@holdfast/testing/servers/mail-server.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { acceptedBy } from "@holdfast/testing/servers/webhook-verifiers.ts";
import { startWebhookReceiver, type WebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";
import { type AlertJson, createAlertsUnderTest, type RuleJson } from "./alerts/alerts-under-test.ts";

interface ChannelJson {
  readonly id: string;
  readonly type: string;
  readonly config: { readonly secret: string };
}

const mailUser = { name: "holdfast", password: "planted-smtp-password" };
const address = "on-call@example.com";

describe("alerts", { timeout: 600_000 }, () => {
  const fixture = createAlertsUnderTest();
  const { jsonOf, rulesPath, eventsOfAlerts } = fixture;
  let platform: Platform;
  let services: Services;
  let receiver: WebhookReceiver;
  let watched: RunningService;
  let mail: MailServer;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-alerts-"));

  beforeAll(async () => {
    mail = await startMailServer({ user: mailUser });
    writeFileSync(join(directory, "password"), mailUser.password);
    writeFileSync(join(directory, "ca"), mail.ca);
    await fixture.start({
      HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8",
      HOLDFAST_OPERATOR_EGRESS: "127.0.0.0/8",
      HOLDFAST_SMTP_HOST: "127.0.0.1",
      HOLDFAST_SMTP_PORT: String(mail.port),
      HOLDFAST_SMTP_FROM: "alerts@platform.example",
      HOLDFAST_SMTP_USER: mailUser.name,
      HOLDFAST_SMTP_PASSWORD_FILE: join(directory, "password"),
      HOLDFAST_SMTP_CA: join(directory, "ca"),
    });
    ({ platform, services, watched } = fixture);
    receiver = await startWebhookReceiver();
  });
  afterAll(async () => {
    await receiver?.close();
    await fixture.remove();
    await mail?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const alertsOf = (ruleId: string) =>
    receiver.received.map(({ body }) => JSON.parse(body) as AlertJson).filter(({ rule_id }) => rule_id === ruleId);
  const mailsOf = (words: string) => mail.received.filter(({ email }) => email.subject?.includes(words));
  /** Follows a link of a mail as a browser does. */
  const visit = (method: "GET" | "POST", url: string) =>
    new Promise<{ status: number | undefined; html: string }>((resolve, reject) => {
      const outgoing = request(url, { method, ca: platform.ca, servername: "" }, (response) => {
        let html = "";
        response.on("data", (chunk: Buffer) => (html += chunk.toString()));
        response.on("end", () => resolve({ status: response.statusCode, html }));
      });
      outgoing.on("error", reject).end();
    });
  const linkIn = (text: string | undefined) =>
    /https:\S+/.exec(text?.split("\n").find((line) => line.startsWith("https:")) ?? "")?.[0] ?? "";

  it("gives each service default rules", async () => {
    const rules = await waitUntil("the default rules are there", async () => {
      const found = await jsonOf<RuleJson[]>("alerts rules watched");
      return found.length > 2 && found;
    });
    const metrics = rules.map(({ metric }) => metric);
    expect(metrics.toSorted()).toEqual(["disk", "health", "restorable_age_seconds"]);
  });

  it("sends mail only to confirmed addresses, and requests the confirmation once", async () => {
    const channel = await jsonOf<ChannelJson>(`channels create mail --address ${address}`);
    expect(channel).toMatchObject({ confirmed_at: null, warning: expect.stringContaining("link") });
    const [first] = await waitUntil("the link arrives", () => mail.received.length > 0 && mail.received);
    expect(first).toMatchObject({ to: [address], secure: true, user: mailUser.name });
    expect(first?.email.html).toContain("/channel-confirmation?");
    await jsonOf(`channels test ${channel.id}`);
    const links = await waitUntil("another link arrives", () => mail.received.length > 1 && mail.received);
    const [old, link] = links.map(({ email }) => linkIn(email.text));
    expect(await visit("POST", old ?? "")).toMatchObject({ status: 404 });
    // Mail scanners follow links: that alone confirms nothing.
    expect(await visit("GET", link ?? "")).toMatchObject({ status: 200, html: expect.stringContaining("<button>") });
    expect(await jsonOf<ChannelJson>(`channels get ${channel.id}`)).toMatchObject({ confirmed_at: null });
    expect(await visit("POST", `${link?.slice(0, -1)}${link?.endsWith("A") ? "B" : "A"}`)).toMatchObject({
      status: 404,
    });
    expect(await visit("POST", link ?? "")).toMatchObject({ status: 200 });
    expect(await visit("POST", link ?? "")).toMatchObject({ status: 404 });
    expect(await jsonOf<ChannelJson>(`channels get ${channel.id}`)).toMatchObject({
      confirmed_at: expect.any(String),
      warning: null,
    });
    await jsonOf(`channels test ${channel.id}`);
    await waitUntil("the test arrives", () => mailsOf("test of your alert channel").length === 1);
    expect((await platform.rest.call("PATCH", "/channel-confirmation")).status).toBe(405);
  });

  it("sends at most five links a day to an address, whoever requests them", async () => {
    const make = () =>
      platform.rest.post<ChannelJson>("/alerts/channels", {
        name: "m",
        type: "email",
        config: { address: "Other@example.com" },
      });
    const { id } = expectStatus(await make(), 201).json;
    for (const _ of [2, 3, 4, 5]) expectStatus(await platform.rest.post(`/alerts/channels/${id}/test`), 202);
    expect(await platform.rest.post(`/alerts/channels/${id}/test`)).toMatchObject({ status: 429 });
    expect(await make()).toMatchObject({ status: 429 });
    expectStatus(await platform.rest.delete(`/alerts/channels/${id}`), 204);
  });

  it("fires under load, by webhook and mail, and resolves, although the controller is killed in between", async () => {
    const channel = await jsonOf<ChannelJson>(`channels create on-call --url ${receiver.url}`);
    const byMail = (await jsonOf<ChannelJson[]>("channels list")).find(({ type }) => type === "email");
    const rule = await jsonOf<RuleJson>(
      `alerts create watched --metric pg_connections --gt 2 --severity critical --channel ${channel.id}`,
    );
    expect(rule).toMatchObject({ state: "ok", name: "pg_connections gt 2", severity: "critical" });
    const mailed = { metric: "pg_connections", condition: "gt", threshold: 2, notification_channel_id: byMail?.id };
    const named = (name: string) => platform.rest.post(rulesPath(), { ...mailed, name });
    expectStatus(await named("crowded\r\nBcc: victim@example.com"), 400);
    expectStatus(await named("crowded Bcc: victim@example.com"), 201);
    const clients = await Promise.all(
      [1, 2, 3, 4].map(() => openPostgresql(platform, watched.connection, { password: watched.password })),
    );
    await waitUntil("the rule fires", () => alertsOf(rule.id).length > 0);
    const [fired] = alertsOf(rule.id);
    expect(fired).toMatchObject({
      alert_name: "pg_connections gt 2",
      service_name: "watched",
      metric: "pg_connections",
      threshold: 2,
      severity: "critical",
      state: "firing",
      resolved_at: null,
    });
    expect(await acceptedBy(receiver.received.at(-1), channel.config.secret)).toContain(
      "octokit, X-Platform-Signature",
    );
    await waitUntil("the mail arrives", () => mailsOf("is firing").length > 0);
    expect(await jsonOf<AlertJson[]>("alerts firing")).toContainEqual(
      expect.objectContaining({ id: fired?.id, rule_id: rule.id }),
    );
    expect(await jsonOf<RuleJson>(`alerts get watched ${rule.id}`)).toMatchObject({ state: "firing" });

    const recorded = async (id: string | undefined) => jsonOf<object[]>(`channels deliveries ${id}`);
    // A notification that is not on record yet is sent again after a crash.
    await waitUntil("both are on record", async () => {
      const [posted, sent] = [await recorded(channel.id), await recorded(byMail?.id)];
      return posted.length === 1 && sent.length === 4;
    });
    for (const pid of platform.processes().controllers) killImmediately(pid);
    for (const client of clients) await client.end();
    await waitUntil("the alert is resolved", () => alertsOf(rule.id).some(({ state }) => state === "resolved"));
    await waitUntil("the mail arrives", () => mailsOf("is resolved").length > 0);
    expect(alertsOf(rule.id)).toMatchObject([
      { id: fired?.id, state: "firing" },
      { id: fired?.id, state: "resolved", reason: "condition_false" },
    ]);
    const mails = mailsOf("crowded");
    expect(mails.map(({ email }) => email.subject?.replace(/at \d+/, "at N"))).toEqual([
      "[Holdfast] watched: crowded Bcc: victim@example.com (warning) is firing at N",
      "[Holdfast] watched: crowded Bcc: victim@example.com (warning) is resolved",
    ]);
    expect(mails.map(({ to }) => to)).toEqual([[address], [address]]);
    expect(mails[0]?.email.references).toBe(mails[1]?.email.references);
    expect(mails[0]?.email.html).toContain("pg_connections gt 2");
    const events = await eventsOfAlerts();
    expect(events.map(({ event_type }) => event_type).toSorted()).toEqual([
      "alert.fired",
      "alert.fired",
      "alert.resolved",
      "alert.resolved",
    ]);
    await waitUntil("the ends are on record", async () => (await recorded(byMail?.id)).length === 5);
    await waitUntil("so is that of the webhook", async () => (await recorded(channel.id)).length >= 2);
    expect(await recorded(channel.id)).toHaveLength(2);
  });

  it("ends a firing alert when its rule changes or is deleted, and notifies the default channel", async () => {
    const channel = (await jsonOf<ChannelJson[]>("channels list")).find(({ type }) => type === "webhook");
    expect(channel?.config.secret).toBe("********");
    const change = { name: "night shift", config: { url: `${receiver.url}/night` } };
    const patched = await platform.rest.call("PATCH", `/alerts/channels/${channel?.id}`, { body: change });
    expect(expectStatus(patched, 200).json).toMatchObject({ name: "night shift", config: change.config });
    await jsonOf(`channels test ${channel?.id}`);
    await waitUntil("the test arrives where the channel leads now", () =>
      receiver.received.some(({ path, body }) => path === "/night" && body.includes("This is a test")),
    );
    await jsonOf(`alerts default-channel ${channel?.id}`);
    const path = rulesPath();
    const body = { metric: "memory", condition: "gt", threshold: 0, name: "some memory" };
    const { id } = expectStatus(await platform.rest.post<RuleJson>(path, body), 201).json;
    await waitUntil("it fires", () => alertsOf(id).length === 1);
    const changed = await platform.rest.call<RuleJson>("PATCH", `${path}/${id}`, { body: { threshold: 200 } });
    expect(expectStatus(changed, 200).json).toMatchObject({ state: "ok", name: "some memory" });
    await waitUntil("it is resolved", () => alertsOf(id).length === 2);
    expect(alertsOf(id)[1]).toMatchObject({ state: "resolved", reason: "rule_changed", current_value: null });

    expect((await platform.rest.call("PATCH", `${path}/${id}`, { body: { threshold: 0 } })).status).toBe(200);
    await waitUntil("it fires again", () => alertsOf(id).length === 3);
    expect((await platform.rest.delete(`${path}/${id}`)).status).toBe(204);
    await waitUntil("it is resolved by its end", () => alertsOf(id).length === 4);
    expect(alertsOf(id)[3]).toMatchObject({ state: "resolved", reason: "rule_deleted" });
  });

  it("ends a firing alert when its rule is paused, and evaluates again when it is resumed", async () => {
    const body = { metric: "memory", condition: "gt", threshold: 0 };
    const { id } = expectStatus(await platform.rest.post<RuleJson>(rulesPath(), body), 201).json;
    await waitUntil("it fires", () => alertsOf(id).length === 1);
    const path = `${rulesPath()}/${id}`;
    const paused = await platform.rest.call<RuleJson>("PATCH", path, { body: { paused: true } });
    expect(expectStatus(paused, 200).json).toMatchObject({ state: "paused", since: null });
    await waitUntil("it is resolved", () => alertsOf(id).length === 2);
    expect(alertsOf(id)[1]).toMatchObject({ state: "resolved", reason: "rule_paused" });
    expectStatus(await platform.rest.call("PATCH", path, { body: { paused: false } }), 200);
    await waitUntil("it fires again", () => alertsOf(id).length === 3);
    expectStatus(await platform.rest.delete(path), 204);
  });

  it("accepts 50 rules of a service and 20 channels of an organization, and reports the figures", async () => {
    const rule = { metric: "cpu", condition: "gt", threshold: 1_000 };
    const channel = { name: "one of many", type: "webhook", config: { url: receiver.url } };
    for (const [path, body, most] of [
      [rulesPath(), rule, 50],
      ["/alerts/channels", channel, 20],
    ] as const) {
      const created: string[] = [];
      let last = await platform.rest.post<RuleJson>(path, body);
      while (last.status === 201) {
        created.push(last.json.id);
        last = await platform.rest.post<RuleJson>(path, body);
      }
      expect(last).toMatchObject({ status: 409, json: { detail: expect.stringContaining(String(most)) } });
      for (const id of created) expectStatus(await platform.rest.delete(`${path}/${id}`), 204);
    }
  });

  it("rejects invalid rules and channels with the reason", async () => {
    const path = rulesPath();
    const rule = { metric: "cpu", condition: "gt", threshold: 1 };
    const refused = async (body: object) => (await platform.rest.post(path, body)).json;
    expect(await refused({ ...rule, metric: "cup" })).toMatchObject({ status: 400, errors: [{ field: "metric" }] });
    expect(await refused({ ...rule, metric: "valkey_used_memory" })).toMatchObject({ status: 422 });
    expect(await refused({ ...rule, condition: "eq" })).toMatchObject({
      status: 400,
      errors: [{ field: "condition" }],
    });
    expect(await refused({ metric: "cpu", condition: "gt" })).toMatchObject({ errors: [{ field: "threshold" }] });
    expect(await refused({ ...rule, duration_minutes: 1441 })).toMatchObject({
      errors: [{ field: "duration_minutes" }],
    });
    expect(await refused({ ...rule, notification_channel_id: watched.service.id })).toMatchObject({ status: 404 });
    const channel = (await jsonOf<ChannelJson[]>("channels list")).find(({ type }) => type === "webhook");
    expect((await platform.rest.delete(`/alerts/channels/${channel?.id}`)).json).toMatchObject({ status: 409 });
    const make = async (body: object) => (await platform.rest.post("/alerts/channels", body)).json;
    const inside = { name: "inside", type: "webhook", config: { url: "http://10.0.0.1/" } };
    expect(await make(inside)).toMatchObject({ status: 422, code: "target_not_allowed" });
    expect(await make({ ...inside, config: { address: "a@example.com" } })).toMatchObject({
      errors: [{ field: "config.address" }],
    });
    const byMail = (to: string) => make({ ...inside, type: "email", config: { address: to } });
    expect(await byMail("a\r\nb@example.com")).toMatchObject({ errors: [{ field: "config.address" }] });
  });

  it("never leaves a rule with a deleted channel, in either order", async () => {
    const config = { url: receiver.url };
    const rule = { metric: "cpu", condition: "gt", threshold: 1_000 };
    for (let round = 0; round < 8; round += 1) {
      const created = await platform.rest.post<ChannelJson>("/alerts/channels", {
        name: "short",
        type: "webhook",
        config,
      });
      const { id } = expectStatus(created, 201).json;
      const [named, deleted] = await Promise.all([
        platform.rest.post<RuleJson>(rulesPath(), { ...rule, notification_channel_id: id }),
        platform.rest.delete(`/alerts/channels/${id}`),
      ]);
      expect([
        [201, 409],
        [404, 204],
      ]).toContainEqual([named.status, deleted.status]);
      if (named.status !== 201) continue;
      expectStatus(await platform.rest.delete(`${rulesPath()}/${named.json.id}`), 204);
      expectStatus(await platform.rest.delete(`/alerts/channels/${id}`), 204);
    }
  });

  it("returns no answer to a question where operators have configured no model", async () => {
    const translate = (question: string) =>
      platform.rest.post(`/managed-services/${watched.service.id}/ai-query/translate`, { question });
    expect(await translate("How many orders are open?")).toMatchObject({
      status: 501,
      json: { code: "not_configured" },
    });
    expect(await translate("")).toMatchObject({ status: 400 });
  });

  it("resolves firing alerts when their service stops", async () => {
    const body = { metric: "memory", condition: "gt", threshold: 0 };
    const { id } = expectStatus(await platform.rest.post<RuleJson>(rulesPath(), body), 201).json;
    await waitUntil("it fires", () => alertsOf(id).length === 1);
    await services.verb(watched.service.id, "stop");
    await waitUntil("it is resolved", () => alertsOf(id).length === 2);
    expect(alertsOf(id)[1]).toMatchObject({ state: "resolved", reason: "service_stopped" });
  });
});
