import { expect } from "vitest";
import { openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { OperationJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface UnderWayJson extends ProblemJson {
  readonly operation: OperationJson | null;
  readonly password?: string;
}

interface UserJson {
  readonly username: string;
  readonly managed: boolean;
  readonly operation: OperationJson | null;
}

/** Resolves with the operation once it has ended. */
export async function endOf({ rest }: Pick<Platform, "rest">, id: string): Promise<OperationJson> {
  const check = async () => {
    const { status, json } = await rest.get<OperationJson>(`/operations/${id}`);
    return status === 200 && json.finished_at !== null ? json : undefined;
  };
  return waitUntil(`operation ${id} has ended`, check, { everyMs: 200 });
}

/** Expects each statement to wait for a lock, so that no change below is delayed for another reason. */
async function expectLocked(
  platform: Platform,
  { connection, password }: Pick<RunningService, "connection" | "password">,
  statements: readonly string[],
): Promise<void> {
  const client = await openPostgresql(platform, connection, { password });
  await client.query("SET lock_timeout = '100ms'");
  // SQLSTATE of a lock timeout.
  for (const statement of statements)
    await expect(client.query(statement), statement).rejects.toMatchObject({ code: "55P03" });
  await client.end();
}

/**
 * A session of a user locks the catalog rows by which users and databases are changed, for longer than a response may
 * take. Controller and agent are killed while the locks exist. Then the session ends, and so does each change: some
 * succeed, others fail because the session created an object of the same name.
 */
export async function changeUnderLocks(platform: Platform, { service, connection, password }: RunningService) {
  const { rest } = platform;
  const path = (below: string) => `/managed-services/${service.id}${below}`;
  const create = (username: string) => rest.post<UnderWayJson>(path("/database-users"), { username, role: "readonly" });
  const user = (name: string) => path(`/database-users/${name}`);
  const key = { headers: { "idempotency-key": "reset under a lock" } };
  const reset = () => rest.post<UnderWayJson>(user("kept/reset-password"), undefined, key);
  const reveal = async (name: string) =>
    expectStatus(await rest.post<{ password: string }>(user(`${name}/reveal-password`)), 200).json.password;
  for (const name of ["kept", "leaving"]) expectStatus(await create(name), 201);
  expectStatus(await rest.post(path("/databases"), { name: "leaving" }), 201);
  const before = await reveal("kept");

  const holder = await openPostgresql(platform, connection, { password });
  const committer = await openPostgresql(platform, connection, { password });
  await committer.query("BEGIN; CREATE ROLE duplicate");
  // Not ALTER DATABASE ... SET: the engine releases its lock at the end of the statement, not of the transaction.
  await holder.query("BEGIN; CREATE ROLE coming; COMMENT ON DATABASE leaving IS 'held'");
  await holder.query("ALTER ROLE kept CONNECTION LIMIT 7; ALTER ROLE leaving CONNECTION LIMIT 7");
  await expectLocked(platform, { connection, password }, [
    "CREATE ROLE coming",
    "CREATE ROLE duplicate",
    "ALTER ROLE kept PASSWORD 'another'",
    "DROP ROLE leaving",
    "DROP DATABASE leaving",
  ]);

  const requests = [
    create("coming"),
    create("duplicate"),
    reset(),
    rest.delete<UnderWayJson>(user("leaving")),
  ] as const;
  const dropped = rest.delete<UnderWayJson>(path("/databases/leaving"));
  const underWay = await waitUntil("pending users are listed with their operations", async () => {
    const { json } = await rest.get<{ users: UserJson[] }>(path("/database-users"));
    const changing = json.users.filter(({ operation }) => operation !== null);
    return changing.length === 4 && new Map(changing.map((each) => [each.username, each]));
  });
  expect([...underWay.keys()]).toEqual(["coming", "duplicate", "kept", "leaving"]);
  const conflict = expectStatus(await create("coming"), 409).json;
  expect(conflict.code).toBe("operation_in_progress");
  expect(conflict.operation?.id).toBe(underWay.get("coming")?.operation?.id);
  const conflicting = expectStatus(await rest.post<UnderWayJson>(user("leaving/reset-password")), 409).json;
  expect(conflicting.operation?.type).toBe("delete_user");
  const leavingAgain = rest.delete<UnderWayJson>(user("leaving"));
  // Handles the rejection when the test fails earlier.
  leavingAgain.catch(() => undefined);
  expect(await reveal("kept")).toBe(before);

  const responses = await Promise.all([...requests, dropped]);
  expect(responses.map(({ status, json }) => ({ status, type: json?.operation?.type }))).toEqual(
    ["create_user", "create_user", "reset_password", "delete_user", "delete_database"].map((type) => ({
      status: 202,
      type,
    })),
  );
  const [coming, duplicate, resetUser, leaving, database] = responses.map(({ json, headers }) => {
    expect(headers["location"]).toBe(`/operations/${json.operation?.id}`);
    return json.operation?.id ?? "";
  });
  expect(expectStatus(await leavingAgain, 202).json.operation?.id).toBe(leaving);
  const replayed = await reset();
  expect([replayed.status, replayed.text]).toEqual([202, responses[2]?.text]);
  expect(replayed.headers["idempotency-replayed"]).toBe("true");
  const after = responses[2]?.json.password ?? "";
  expect(after).not.toBe(before);

  const { controllers, machines } = platform.processes();
  const machine = machines.find(({ id }) => id === service.nodes[0]?.id);
  for (const pid of [...controllers, machine?.agent ?? 0]) killImmediately(pid);
  await committer.query("COMMIT");
  await holder.query("ROLLBACK");
  for (const client of [committer, holder]) await client.end();

  for (const id of [coming, resetUser, leaving, database])
    expect(await endOf(platform, id ?? "")).toMatchObject({ status: "completed", error: null });
  const refused = await endOf(platform, duplicate ?? "");
  expect(refused.status).toBe("failed");
  expect(["engine_refused", "name_taken"]).toContain(refused.error?.code);
  expect(platform.processes().machines.find(({ id }) => id === machine?.id)?.engine).toBe(machine?.engine);

  // The engine and the store agree.
  const rows = await queryOnce<{ name: string }>(
    platform,
    connection,
    { password },
    "SELECT rolname AS name FROM pg_roles WHERE rolname IN ('coming', 'kept', 'leaving', 'duplicate') ORDER BY 1",
  );
  expect(rows.map(({ name }) => name)).toEqual(["coming", "duplicate", "kept"]);
  const listed = (await rest.get<{ users: UserJson[] }>(path("/database-users"))).json.users;
  const managed = ["app_user", "coming", "kept"];
  expect(listed.filter((each) => each.managed).map(({ username }) => username)).toEqual(managed);
  const keys = [...(await dumpEtcd(platform.directory)).keys()].map((name) => name.split("/").slice(3).join("/"));
  const userKeys = keys.filter((name) => name.startsWith(`database-user/${service.id}.`)).sort();
  expect(userKeys).toEqual(managed.map((name) => `database-user/${service.id}.${name}`));
  expect(keys.filter((name) => name.startsWith("engine-change/"))).toEqual([]);
  expect(await reveal("kept")).toBe(after);
  await queryOnce(platform, connection, { user: "kept", password: after }, "SELECT 1");
  await queryOnce(platform, connection, { user: "coming", password: await reveal("coming") }, "SELECT 1");
  await queryOnce(platform, connection, { password }, "DROP ROLE duplicate");
  for (const name of ["coming", "kept"]) expectStatus(await rest.delete(user(name)), 204);
}
