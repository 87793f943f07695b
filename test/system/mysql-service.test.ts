import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import type { PageJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { withClientFiles, withHosts } from "@holdfast/testing/engines/client-files.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ReplicatedShop, startReplicatedShop } from "./mysql/replicated-shop.ts";

interface BackupJson {
  readonly id: string;
  readonly status: string;
}

const execute = promisify(execFile);
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;
const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("a managed MySQL that gets a second node", () => {
  let fixture: ReplicatedShop;
  let backupId: string;
  /** Id of a copy that is restored beside the tests after it. */
  let before: string;
  let clients: TestImage;

  beforeAll(async () => {
    const built = await testImage("mysql");
    if (typeof built === "string") throw new Error(built);
    clients = built;
  }, imageMs);
  beforeAll(async () => {
    const environment = { HOLDFAST_IDLE_LOG_AFTER_S: "2" };
    fixture = await startReplicatedShop({ environment, isWritten: false, nodeCount: 1 });
  });
  afterAll(() => fixture?.remove());

  const { query, rest, path } = {
    query: <Row extends object>(...args: Parameters<ReplicatedShop["query"]>) => fixture.query<Row>(...args),
    rest: () => fixture.platform.rest,
    path: (suffix = "") => fixture.path(suffix),
  };
  const reveal = async (user: string) =>
    expectStatus(await rest().post<{ password: string }>(path(`/database-users/${user}/reveal-password`)), 200).json
      .password;

  it("is entered over TLS with the certificate verified against its name, and not without TLS", async () => {
    await query("CREATE TABLE items (id INT PRIMARY KEY, name TEXT)");
    await query("INSERT INTO items VALUES (1, 'one')");
    expect(await query("SELECT name FROM items")).toEqual([{ name: "one" }]);
    await expect(fixture.open({ isPlain: true })).rejects.toThrow("Access denied");
    expect(fixture.shop.connection.uri).toContain("mysql://app_user@");
  });

  it("applies a parameter without a restart, begins a backup and gets a second node", async () => {
    expectStatus(await rest().patch(path("/configuration"), { parameters: { sort_buffer_size: "1MB" } }), 200);
    expect(await query("SELECT @@GLOBAL.sort_buffer_size AS size")).toEqual([{ size: 1_048_576 }]);
    // Both complete beside the next tests.
    expectStatus(await rest().post(path("/nodes"), { role: "replica" }), 202);
    backupId = expectStatus(await rest().post<BackupJson>(path("/backups")), 202).json.id;
  });

  it.skipIf(!asRoot)("is entered by the mysql client by name", async () => {
    const root = findImage(imagesDirectory(process.env), "mysql")?.root ?? "";
    const { host, port } = fixture.shop.connection;
    const tls = ["--ssl-mode=VERIFY_IDENTITY", "--ssl-ca=/mnt/ca.pem"];
    const target = ["--protocol=TCP", "-h", host, "-P", String(port), "-u", "app_user"];
    const argv = ["mysql", "--no-defaults", ...target, ...tls, "-Ne", "SELECT name FROM items", "defaultdb"];
    // The client of the image resolves the name by a file of hosts over the image's own.
    const script =
      'mount --bind "$1/hosts" "$2/etc/hosts" && mount --bind "$1" "$2/mnt" && shift 2 && exec chroot "$@"';
    const inside = [`--userspec=${testUid}:${testUid}`, root, ...argv];
    const env = { ...process.env, MYSQL_PWD: fixture.shop.password };
    const { stdout } = await withClientFiles(fixture.platform, fixture.shop, (directory) =>
      execute("unshare", ["--mount", "sh", "-c", script, "sh", directory, root, ...inside], { env, cwd: "/" }),
    );
    expect(stdout).toBe("one\n");
  });

  it("is entered by PyMySQL by name, with transactions and values of each kind", async () => {
    const { shop } = fixture;
    const { host, port } = shop.connection;
    const script = join(import.meta.dirname, "mysql");
    const output = await withClientFiles(fixture.platform, shop, (directory) =>
      clients.run(
        withHosts(join(directory, "hosts"), ["/usr/bin/python3", join(script, "pymysql-client.py")]),
        [directory, script],
        { MYSQL_HOST: host, MYSQL_PORT: String(port), MYSQL_PWD: shop.password, MYSQL_CA: join(directory, "ca.pem") },
      ),
    );
    expect(JSON.parse(output)).toEqual({ same: true, tls: "TLSv1.3", "without TLS": 1045, "another password": 1045 });
  });

  it("begins a restore to the moment before rows were deleted", async () => {
    const stateOf = async () => (await rest().get<BackupJson>(path(`/backups/${backupId}`))).json.status;
    await waitUntil("the backup is complete", async () => (await stateOf()) === "completed");
    await query("INSERT INTO items VALUES (2, 'two'), (3, 'three')");
    const point = new Date(Date.now() + 1);
    await waitUntil("the moment is over", () => new Date() > point);
    await query("DELETE FROM items WHERE id > 1");
    const isArchived = async () =>
      ((await fixture.services.get(fixture.shop.service.id)).backups?.restorable?.to ?? "") >= point.toISOString();
    await waitUntil("the log of the moment is archived", isArchived);
    const body = { restore_point: point.toISOString(), target_service_name: "before" };
    const restored = await rest().post<ServiceJson>(path("/backups/restore"), body);
    before = expectStatus(restored, 202).json.id;
  });

  it("has users with the privileges of their roles, and passwords that can be revealed and reset", async () => {
    for (const [username, role] of Object.entries({ reader: "readonly", writer: "readwrite" }))
      expectStatus(await rest().post(path("/database-users"), { username, role }), 201);
    await query("INSERT INTO items VALUES (2, 'two')", { user: "writer", password: await reveal("writer") });
    const reader = { user: "reader", password: await reveal("reader") };
    expect(await query("SELECT id FROM items ORDER BY id", reader)).toEqual([{ id: 1 }, { id: 2 }]);
    await expect(query("DELETE FROM items", reader)).rejects.toThrow(/denied/);
    expectStatus(await rest().post(path("/database-users/writer/reset-password")), 200);
    expect(await query("SELECT 1 AS one", { user: "writer", password: await reveal("writer") })).toEqual([{ one: 1 }]);
    // A password that was changed in SQL is not the platform's any more.
    await query("ALTER USER 'writer'@'%' IDENTIFIED BY 'by hand'");
    expectStatus(await rest().post(path("/database-users/writer/reveal-password")), 409);
    const long = { username: "u".repeat(33), role: "readonly" };
    expect(expectStatus(await rest().post<ProblemJson>(path("/database-users"), long), 400).text).toContain("32");
    expectStatus(await rest().delete(path("/database-users/reader")), 204);
    const { json } = await rest().get<PageJson<"users", { username: string }>>(path("/database-users"));
    expect(json.users.map(({ username }) => username)).toEqual(["app_user", "writer"]);
  });

  it("counts statements without their values, and its console only reads", async () => {
    const statistics = await rest().get<{ queries: { query: string }[] }>(path("/metrics/query-stats?limit=500"));
    const statements = expectStatus(statistics, 200).json.queries.map((each) => each.query);
    expect(statements.some((each) => each.startsWith("INSERT INTO `items`"))).toBe(true);
    expect(statistics.text).not.toContain("three");
    const execute = (sql: string) => rest().post<{ rows: unknown[][] }>(path("/ai-query/execute"), { sql });
    expect(expectStatus(await execute("SELECT id FROM items ORDER BY id"), 200).json.rows).toEqual([[1], [2]]);
    for (const sql of ["DELETE FROM items", "SELECT 1 /*! INTO @a */", "SELECT id FROM items FOR UPDATE"])
      expectStatus(await execute(sql), 400);
  });

  it("fails over under a writer when its primary is killed with its data, and loses no acknowledged row", async () => {
    await fixture.services.settled(fixture.shop.service.id, "Running");
    expectStatus(await rest().patch(path(), { replication_mode: "sync" }), 200);
    fixture.startWriting();
    await fixture.writesContinue();
    const { primary, replica, term } = await fixture.rolesNow();
    await fixture.follows(replica);
    const { id } = fixture.shop.service;
    const wait = { describe: () => fixture.services.describe(id) };
    const counts = () => isFailoverCandidate(fixture.platform.directory, id, primary);
    await waitUntil("the primary counts on its replica", counts, wait);
    const engine = fixture.engineOf(primary);
    rmSync(`/proc/${engine}/cwd/mysql.ibd`);
    killImmediately(engine);
    const isPromoted = async () => {
      const now = await fixture.rolesNow();
      return now.primary === replica && now.term > term;
    };
    await waitUntil("the replica is the primary", isPromoted, wait);
    await fixture.writesContinue();
    expect(await fixture.lost()).toEqual([]);
  });

  it("is restored to that moment into a new service with other passwords", async () => {
    await fixture.services.settled(before, "Running");
    const { connection, password } = await fixture.services.open(before);
    const found = await query("SELECT id FROM items ORDER BY id", { host: connection.host, password });
    expect(found).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
    await expect(query("SELECT 1", { host: connection.host })).rejects.toThrow("Access denied");
  });

  it("is deleted", async () => {
    const remove = async (id: string) => {
      expectStatus(await rest().delete(`/managed-services/${id}?skip_final_backup=true`), 202);
      await fixture.services.deleted(id);
    };
    await Promise.all([fixture.shop.service.id, before].map(remove));
  });
});
