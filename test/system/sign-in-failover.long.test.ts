import * as client from "openid-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplicationStatus, ServiceNode } from "@holdfast/sdk/index.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { argumentsAndEnvironment, findBelow, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createFailures } from "./replication/failures.ts";
import { createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

const longMs = 300_000;

/** Commits are asynchronous, so that a failing primary loses the last ones. */
describe("an app's users, whose primary fails before its replica has all rows", { timeout: longMs }, () => {
  const fixture = createSignInUnderTest();
  const path = (rest = "") => `/managed-services/${fixture.users.service.id}${rest}`;
  const failures = createFailures(
    {
      get platform() {
        return fixture.platform;
      },
      get services() {
        return fixture.services;
      },
      get main() {
        return fixture.users;
      },
      async statusOf(nodeId) {
        const response = await fixture.platform.rest.get<ReplicationStatus>(
          path(`/nodes/${nodeId}/replication-status`),
        );
        return expectStatus(response, 200).json;
      },
    },
    () => undefined,
    [],
  );

  beforeAll(async () => {
    await fixture.start();
    await fixture.enable();
    expectStatus(await fixture.platform.rest.post<ServiceNode>(path("/nodes"), { role: "replica" }), 202);
    await fixture.services.settled(fixture.users.service.id, "Running");
  }, longMs);
  afterAll(() => fixture.remove(), longMs);

  async function emails(): Promise<string[]> {
    const sql = await openPostgresql(fixture.platform, fixture.users.connection, {
      password: fixture.users.password,
      timeoutMs: 2_000,
    });
    try {
      const { rows } = await sql.query<{ email: string }>("SELECT email FROM _mdb_auth.users ORDER BY email");
      return rows.map(({ email }) => email);
    } finally {
      await sql.end();
    }
  }

  async function erase(email: string): Promise<void> {
    const { rest } = fixture.platform;
    const response = await rest.post<{ task_id: string }>(fixture.path("/users/delete"), { email });
    const { task_id: id } = expectStatus(response, 202).json;
    await waitUntil("the erasure is done", async () => {
      const { json } = await rest.get<{ status: string; result: unknown }>(`/tasks/${id}`);
      if (json.status === "completed") expect(json.result).toEqual({ erased: true });
      return json.status === "completed";
    });
  }

  /** Stops the primary's WAL senders, so that replicas receive nothing until the returned function runs. */
  function stopSending(machineId: string): () => void {
    const senders = findBelow(failures.processesOf(machineId).engine ?? 0).filter((pid) =>
      argumentsAndEnvironment(pid).cmdline.includes("walsender"),
    );
    expect(senders).not.toEqual([]);
    for (const pid of senders) killImmediately(pid, "SIGSTOP");
    return () => {
      for (const pid of senders) killImmediately(pid, "SIGCONT");
    };
  }

  it("retains erasures and sessions, and admits new users", async () => {
    const config = await fixture.discover();
    const erased = await fixture.signIn("erased@example.com");
    const retained = await fixture.signIn("retained@example.com");
    await failures.untilReplicaCounts();
    const { primary, replica, term } = await failures.roles();

    const sendAgain = stopSending(primary);
    await erase("erased@example.com");
    expect(await emails()).toEqual(["retained@example.com"]);
    // The replica has not received this either: a token that is newer than its row is genuine.
    const { refresh_token: ahead = "" } = await client.refreshTokenGrant(config, retained.refresh_token ?? "");
    const repair = failures.pauseMachine(primary);
    try {
      await waitUntil("the replica is the primary", async () => (await failures.roles()).primary === replica, {
        withinMs: 60_000,
        describe: () => fixture.services.describe(fixture.users.service.id),
      });
      // The event of the replay shows that the erasures were lost, so that this test proves their repetition.
      await waitUntil("the erasures are repeated", () =>
        /"erased":1\b/.test(lastLogLines(fixture.platform.directory, 50, "erasures replayed")),
      );
      expect((await failures.roles()).term).toBe(term + 1);
      expect(await waitUntil("the new primary answers", emails)).toEqual(["retained@example.com"]);
      const refreshed = await waitUntil("sessions are valid again", () =>
        client.refreshTokenGrant(config, ahead).catch((error: unknown) => {
          if (error instanceof client.ResponseBodyError) throw error;
          return undefined;
        }),
      );
      expect(refreshed.access_token).toBeDefined();
      await expect(client.refreshTokenGrant(config, erased.refresh_token ?? "")).rejects.toMatchObject({
        error: "invalid_grant",
      });
      expect((await fixture.signIn("late@example.com")).claims()?.["email"]).toBe("late@example.com");
    } finally {
      repair();
      sendAgain();
    }
    await waitUntil("the old primary follows", async () => {
      const response = await fixture.platform.rest.get<ReplicationStatus>(path(`/nodes/${primary}/replication-status`));
      return response.json.sync_state === "streaming";
    });
    await fixture.services.settled(fixture.users.service.id, "Running");
    expect(await emails()).toEqual(["retained@example.com", "late@example.com"]);
    const response = await fixture.platform.rest.get<{ events: object[] }>("/events?type=auth.user.deleted");
    expect(response.json.events).toHaveLength(1);
  });
});
