import { decodeJwt } from "jose";
import * as client from "openid-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AuthJson, createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

const longMs = 180_000;

describe("erased users of an app", () => {
  const fixture = createSignInUnderTest();
  let signedIn: Awaited<ReturnType<typeof fixture.signIn>>;

  beforeAll(async () => {
    await fixture.start({ HOLDFAST_FIRST_BACKUP_AFTER_S: "3600" });
    await fixture.enable();
  }, longMs);
  afterAll(() => fixture.remove(), longMs);

  const emails = async (of: RunningService) => {
    const sql = await openPostgresql(fixture.platform, of.connection, { password: of.password });
    const { rows } = await sql.query<{ email: string }>("SELECT email FROM _mdb_auth.users ORDER BY email");
    await sql.end();
    return rows.map(({ email }) => email);
  };

  async function ended(path: string, body: object = {}): Promise<unknown> {
    const { rest } = fixture.platform;
    const { task_id: id } = expectStatus(await rest.post<{ task_id: string }>(path, body), 202).json;
    return waitUntil(`${path} is done`, async () => {
      const { json } = await rest.get<{ status: string; result: unknown }>(`/tasks/${id}`);
      return json.status === "completed" ? json.result : undefined;
    });
  }

  it("do not return with a fork of the database from before", { timeout: longMs }, async () => {
    const { rest } = fixture.platform;
    await fixture.signIn("yara@example.com");
    await fixture.signIn("zoe@example.com");
    signedIn = await fixture.signIn("adam@example.com");
    const backup = await fixture.cli("--output", "json", "backups", "create", "first", "--wait");
    expect(backup, backup.stderr).toMatchObject({ code: 0 });
    const { id: backupId } = JSON.parse(backup.stdout) as { id: string };
    expect(await ended(fixture.path("/users/delete"), { email: "yara@example.com" })).toEqual({ erased: true });
    const { json: found } = await rest.get<{ users: { id: string }[] }>(fixture.path("/users?email=zoe@example.com"));
    expect(await ended(fixture.path("/users/delete"), { user_id: found.users[0]?.id })).toEqual({ erased: true });
    const { sid: session } = decodeJwt<{ sid: string }>(signedIn.access_token);
    expect(await ended(fixture.path(`/sessions/${session}/revoke`))).toEqual({ revoked: true });

    const restored = await fixture.cli(
      "--output",
      "json",
      "services",
      "restore",
      "first",
      "--name",
      "second",
      "--backup",
      backupId,
      "--wait",
    );
    expect(restored, restored.stderr).toMatchObject({ code: 0 });
    const second = await fixture.services.open((JSON.parse(restored.stdout) as { id: string }).id);
    expect(await emails(second)).toEqual(["adam@example.com", "yara@example.com", "zoe@example.com"]);
    const attachment = await rest.post<{ id: string }>(`/app-services/${fixture.appId}/attachments`, {
      service_id: second.service.id,
    });
    await rest.post(fixture.path("/disable"), {});
    await fixture.enable({ attachment_id: expectStatus(attachment, 201).json.id });
    expect(await emails(second)).toEqual(["adam@example.com"]);
    const config = await fixture.discover();
    await expect(client.refreshTokenGrant(config, signedIn.refresh_token ?? "")).rejects.toMatchObject({
      error: "invalid_grant",
    });
    const { json } = await rest.get<AuthJson & { database_service_id: string }>(fixture.path());
    expect(json.database_service_id).toBe(second.service.id);
  });

  it("have one event each, with any process killed in between", { timeout: longMs }, async () => {
    const { rest } = fixture.platform;
    const addresses = Array.from({ length: 5 }, (_, n) => `user${n}@example.com`);
    for (const email of addresses) expectStatus(await rest.post(fixture.path("/users"), { email }), 201);
    const eventsOf = async () =>
      (await rest.insist<{ events: object[] }>("GET", "/events?type=auth.user.deleted&limit=200")).json.events.length;
    const before = await eventsOf();
    const tasks: string[] = [];
    for (const email of addresses) {
      tasks.push(
        expectStatus(await rest.post<{ task_id: string }>(fixture.path("/users/delete"), { email }), 202).json.task_id,
      );
      const { controllers, machines } = fixture.platform.processes();
      for (const pid of [...controllers, machines.at(-1)?.agent]) if (pid !== undefined) killImmediately(pid);
      await rest.insist("GET", fixture.path());
    }
    for (const id of tasks) {
      const result = await waitUntil(
        "the erasure is over",
        async () => {
          const { json } = await rest.insist<{ status: string; result: unknown }>("GET", `/tasks/${id}`);
          return json.status === "completed" ? json.result : undefined;
        },
        { withinMs: 60_000 },
      );
      expect(result).toEqual({ erased: true });
    }
    await waitUntil("every erasure has an event", async () => (await eventsOf()) - before === addresses.length);
  });
});
