import { execFile } from "node:child_process";
import { chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { inImage } from "@holdfast/image/in-image.ts";
import { findSoftware, imagesDirectory } from "@holdfast/image/node-image.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf, inside, openPostgresql, queryOnce } from "../support/clients.ts";
import { askDns, resolveName } from "../support/dns-query.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { asRoot, programDirectory, testUid } from "../support/platform-software.ts";
import { testPublicNetwork } from "../support/public-network.ts";
import type { LogsJson, PageJson, ProblemJson } from "../support/service-json.ts";
import { createServices, expectStatus, type RunningService, type Services } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";

const run = promisify(execFile);

interface UserJson {
  readonly username: string;
  readonly role: string;
  readonly managed: boolean;
}

describe("a managed PostgreSQL", () => {
  let platform: Platform;
  let services: Services;
  let main: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({ flags: ["--public-addresses", await testPublicNetwork()] });
    services = createServices(platform);
    main = await services.createRunning("main", { tags: { team: "data" } });
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${main.service.id}${rest}`;
  const login = (user: string, password: string, database?: string) => ({
    user,
    password,
    ...(database === undefined ? {} : { database }),
  });

  async function passwordOf(username: string): Promise<string> {
    const answer = await platform.rest.post<{ password: string }>(path(`/database-users/${username}/reveal-password`));
    return expectStatus(answer, 200).json.password;
  }

  async function createUser(username: string, role: string): Promise<string> {
    expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    return passwordOf(username);
  }

  describe("connections", () => {
    it("answers a query over TLS with the certificate verified against its name", async () => {
      const rows = await queryOnce<{ one: number; tls: boolean }>(
        platform,
        main.connection,
        { password: main.password },
        "SELECT 1 AS one, (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls",
      );
      expect(rows).toEqual([{ one: 1, tls: true }]);
    });

    it("fails the verification of the certificate by address", async () => {
      const attempt = openPostgresql(platform, main.connection, { password: main.password, verify: "address" });
      await expect(attempt).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    });

    it("takes psql with sslmode=verify-full by name, and refuses it by address", async () => {
      const { connection, password } = main;
      const directory = programDirectory("holdfast-psql");
      try {
        const address = await addressOf(platform, connection.host);
        writeForProgram(join(directory, "ca.pem"), connection.ca_certificate);
        writeForProgram(join(directory, "password"), `*:*:*:*:${password}\n`);
        const psql = (host: string) =>
          runPsql(directory, [
            `host=${host} hostaddr=${address} port=${connection.port} user=${connection.user}`,
            `dbname=${connection.database} sslmode=verify-full sslrootcert=${directory}/ca.pem passfile=${directory}/password`,
          ]);
        expect((await psql(connection.host)).stdout.trim()).toBe("1");
        await expect(psql(address)).rejects.toThrow(/certificate|verify/i);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    });

    it("refuses a connection without TLS, a wrong password and the engine's superuser", async () => {
      const address = await addressOf(platform, main.connection.host);
      const { connection, password } = main;
      await expect(openPostgresql(platform, connection, login("app_user", "wrong"))).rejects.toMatchObject({
        code: "28P01",
      });
      await expect(openPostgresql(platform, connection, login("postgres", password))).rejects.toThrow();
      const { Client } = await import("pg");
      const plain = new Client({
        host: address,
        port: connection.port,
        user: connection.user,
        password,
        database: "defaultdb",
      });
      await expect(plain.connect()).rejects.toMatchObject({ code: "28000" });
    });

    it("tells everything but the password in its connection object", async () => {
      const { connection, service, password } = main;
      expect(connection.host).toBe(service.hostname);
      expect(connection.uri).toContain(`${service.hostname}:${service.port}`);
      expect(JSON.stringify(connection)).not.toContain(password);
      expect(connection.ca_certificate).toContain("BEGIN CERTIFICATE");
      expect(connection.nodes).toHaveLength(1);
      expect(await resolveName(platform.admin.dns_server, connection.nodes[0]?.hostname ?? "")).toEqual(
        connection.nodes[0]?.addresses,
      );
    });

    it("reaches its public address by name and its private one by the private name, each verified", async () => {
      const { connection, password, service } = main;
      const [publicAddress, privateAddress] = await Promise.all([
        addressOf(platform, connection.host),
        addressOf(platform, connection.private_host),
      ]);
      expect(publicAddress).not.toBe(privateAddress);
      expect(connection.nodes[0]).toMatchObject({ addresses: [publicAddress], private_addresses: [privateAddress] });
      expect(connection.private_host).toBe(service.private_hostname);
      expect(connection.private_uri).toBe(connection.uri.replace(connection.host, connection.private_host));
      const sql = "SELECT host(inet_server_addr()) AS at";
      expect(await queryOnce(platform, connection, { password }, sql)).toEqual([{ at: publicAddress }]);
      expect(await queryOnce(platform, inside(connection), { password }, sql)).toEqual([{ at: privateAddress }]);
    });
  });

  describe("its names", () => {
    it("resolve over UDP and TCP, with and without EDNS, with authority and no recursion", async () => {
      for (const transport of ["udp", "tcp"] as const) {
        for (const udpPayloadSize of [undefined, 1_232]) {
          const edns = udpPayloadSize === undefined ? {} : { udpPayloadSize };
          const question = { name: main.connection.host, transport, recursionDesired: true, ...edns };
          const answer = await askDns(platform.admin.dns_server, question);
          expect(answer).toMatchObject({ rcode: "NOERROR", flag_aa: true, flag_ra: false });
          expect(answer.answers).toHaveLength(1);
        }
      }
    });

    it("answer NXDOMAIN for a name that is not there, NODATA for another type, REFUSED outside of the zone", async () => {
      const server = platform.admin.dns_server;
      const { host } = main.connection;
      const absent = await askDns(server, { name: `nothing.${host.split(".").slice(1).join(".")}` });
      expect(absent).toMatchObject({ rcode: "NXDOMAIN" });
      expect(absent.authorities?.[0]).toMatchObject({ type: "SOA" });
      const noData = await askDns(server, { name: host, type: "AAAA" });
      expect(noData).toMatchObject({ rcode: "NOERROR", answers: [] });
      expect(noData.authorities?.[0]).toMatchObject({ type: "SOA" });
      expect(await askDns(server, { name: "example.com" })).toMatchObject({ rcode: "REFUSED" });
    });
  });

  describe("its record", () => {
    it("tells what was asked and what is", () => {
      expect(main.service).toMatchObject({
        name: "main",
        status: "Running",
        database_type: "postgresql",
        version: "17",
        plan_name: "tier-1",
        storage_size_gb: 1,
        allowed_cidrs: ["127.0.0.0/8"],
        tags: { team: "data" },
        deletion_protection: false,
        ttl_hours: null,
        expires_at: null,
        operation: null,
        error: null,
        port: 5432,
        health: { status: "healthy" },
      });
    });

    it("has a node that runs, also as a list", async () => {
      const { json } = expectStatus(await platform.rest.get<PageJson<"nodes", object>>(path("/nodes")), 200);
      expect(json.nodes).toMatchObject([{ role: "primary", status: "Running" }]);
      expect(json.next_cursor).toBeNull();
    });

    it("has an operation for its creation that is over", async () => {
      const [create] = await services.operations(main.service.id);
      expect(create).toMatchObject({ type: "create", status: "completed", progress_pct: 100, error: null });
      const { json } = await platform.rest.get(`/operations/${create?.id}`);
      expect(json).toEqual(create);
    });
  });

  describe("users", () => {
    it("have the rights of their roles, also in what others make later", async () => {
      const writer = await createUser("writer", "readwrite");
      const reader = await createUser("reader", "readonly");
      const admin = await createUser("boss", "admin");
      const as = (user: string, password: string, sql: string) =>
        queryOnce<Record<string, unknown>>(platform, main.connection, login(user, password), sql);

      await as("boss", admin, "CREATE TABLE notes (id int PRIMARY KEY, text text)");
      await as("writer", writer, "INSERT INTO notes VALUES (1, 'one')");
      expect(await as("reader", reader, "SELECT text FROM notes")).toEqual([{ text: "one" }]);
      // Read-only by default, and by right when the session says otherwise.
      const insert = "INSERT INTO notes VALUES (2, 'two')";
      await expect(as("reader", reader, insert)).rejects.toThrow();
      await expect(as("reader", reader, `BEGIN READ WRITE; ${insert}`)).rejects.toMatchObject({
        code: "42501",
      });
      await expect(as("writer", writer, "CREATE ROLE other")).rejects.toMatchObject({ code: "42501" });
      const ddl = "BEGIN READ WRITE; CREATE TABLE mine (id int)";
      await expect(as("reader", reader, ddl)).rejects.toMatchObject({ code: "42501" });
    });

    it("lists those made in SQL too, and does not know their passwords", async () => {
      const { connection, password } = main;
      await queryOnce(platform, connection, { password }, "CREATE ROLE made_in_sql LOGIN PASSWORD 'chosen-in-sql'");
      const { json } = await platform.rest.get<PageJson<"users", UserJson>>(path("/database-users"));
      expect(json.users).toContainEqual(expect.objectContaining({ username: "made_in_sql", managed: false }));
      expect(json.users).toContainEqual(
        expect.objectContaining({ username: "app_user", role: "admin", managed: true }),
      );
      const names = json.users.map(({ username }) => username);
      expect(names).not.toContain("postgres");
      const reveal = await platform.rest.post<ProblemJson>(path("/database-users/made_in_sql/reveal-password"));
      expect(expectStatus(reveal, 409).json.code).toBe("password_not_known");
    });

    it("come in pages that together are all of them", async () => {
      const seen: string[] = [];
      let cursor = "";
      do {
        const page = await platform.rest.get<PageJson<"users", UserJson>>(
          path(`/database-users?limit=2${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`),
        );
        expect(page.json.users.length).toBeLessThanOrEqual(2);
        seen.push(...page.json.users.map(({ username }) => username));
        cursor = page.json.next_cursor ?? "";
      } while (cursor !== "");
      const { json } = await platform.rest.get<PageJson<"users", UserJson>>(path("/database-users?limit=200"));
      expect(seen).toEqual(json.users.map(({ username }) => username));
    });

    it("whose password was changed in SQL are not revealed until it is reset", async () => {
      const before = await createUser("changed", "readwrite");
      await queryOnce(
        platform,
        main.connection,
        login("changed", before),
        "ALTER ROLE changed PASSWORD 'chosen-by-the-user'",
      );
      const reveal = await platform.rest.post<ProblemJson>(path("/database-users/changed/reveal-password"));
      expect(expectStatus(reveal, 409).json.code).toBe("password_not_known");
      const reset = await platform.rest.post<{ password: string }>(path("/database-users/changed/reset-password"));
      const after = expectStatus(reset, 200).json.password;
      expect(await passwordOf("changed")).toBe(after);
      await queryOnce(platform, main.connection, login("changed", after), "SELECT 1");
      const old = openPostgresql(platform, main.connection, login("changed", "chosen-by-the-user"));
      await expect(old).rejects.toMatchObject({ code: "28P01" });
    });

    it("can be read one by one, made once, and deleted, but for the service's own", async () => {
      await createUser("brief", "readonly");
      const one = await platform.rest.get<UserJson>(path("/database-users/brief"));
      expect(expectStatus(one, 200).json).toMatchObject({ username: "brief", role: "readonly", managed: true });
      const again = await platform.rest.post<ProblemJson>(path("/database-users"), {
        username: "brief",
        role: "admin",
      });
      expect(expectStatus(again, 409).json.code).toBe("name_taken");
      expectStatus(await platform.rest.delete(path("/database-users/brief")), 204);
      expect((await platform.rest.get(path("/database-users/brief"))).status).toBe(404);
      expect((await platform.rest.delete(path("/database-users/brief"))).status).toBe(404);
      expect((await platform.rest.delete(path("/database-users/app_user"))).status).toBe(422);
    });
  });

  describe("databases", () => {
    it("are made, listed with those made in SQL, and dropped with their sessions", async () => {
      const { connection, password } = main;
      expectStatus(await platform.rest.post(path("/databases"), { name: "orders" }), 201);
      await queryOnce(platform, connection, { password }, "CREATE DATABASE by_sql");
      const { json } = await platform.rest.get<PageJson<"databases", { name: string; owner: string }>>(
        path("/databases"),
      );
      expect(json.databases.map(({ name }) => name)).toEqual(["by_sql", "defaultdb", "orders"]);
      const again = await platform.rest.post<ProblemJson>(path("/databases"), { name: "orders" });
      expect(expectStatus(again, 409).json.code).toBe("name_taken");

      const session = await openPostgresql(platform, connection, login("app_user", password, "orders"));
      await session.query("CREATE TABLE t (id int)");
      expectStatus(await platform.rest.delete(path("/databases/orders")), 204);
      await expect(session.query("SELECT 1")).rejects.toThrow();
      await session.end().catch(() => undefined);
      expect((await platform.rest.delete(path("/databases/orders"))).status).toBe(404);
      await expect(openPostgresql(platform, connection, login("app_user", password, "orders"))).rejects.toMatchObject({
        code: "3D000",
      });
    });
  });

  describe("the default user", () => {
    it("may make roles, databases and listed extensions, and is no superuser", async () => {
      const ask = (sql: string) => queryOnce(platform, main.connection, { password: main.password }, sql);
      await ask("CREATE ROLE helper NOLOGIN");
      await ask("CREATE EXTENSION IF NOT EXISTS pgcrypto");
      expect(await ask("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")).toEqual([{ rolsuper: false }]);
      await expect(ask("CREATE EXTENSION adminpack")).rejects.toThrow();
      await expect(ask("COPY (SELECT 1) TO PROGRAM 'id'")).rejects.toMatchObject({ code: "42501" });
      await expect(ask("SELECT pg_read_file('/etc/passwd')")).rejects.toMatchObject({ code: "42501" });
      await expect(ask("ALTER SYSTEM SET work_mem = '1GB'")).rejects.toThrow();
    });
  });

  describe("the allow-list", () => {
    it("acts on open sessions and on new ones, and lets in again", async () => {
      const { connection, password } = main;
      const session = await openPostgresql(platform, connection, { password });
      const closed = new Promise((resolve) => session.once("end", resolve));
      expectStatus(await platform.rest.patch(path(), { allowed_cidrs: ["192.0.2.0/24"] }), 200);
      await closed;
      await expect(openPostgresql(platform, connection, { password })).rejects.toThrow();
      await expect(openPostgresql(platform, inside(connection), { password })).rejects.toThrow();

      expectStatus(await platform.rest.patch(path(), { allowed_cidrs: ["127.0.0.0/8"] }), 200);
      await waitUntil("the service lets loopback in", async () => {
        await queryOnce(platform, connection, { password }, "SELECT 1");
        return true;
      });
    });

    it("is kept in canonical form and names each entry that is no network", async () => {
      const cidrs = ["127.0.0.1/8", "2001:DB8::/32", "127.0.0.0/8"];
      const { json } = await platform.rest.patch<{ allowed_cidrs: string[] }>(path(), { allowed_cidrs: cidrs });
      expect(json.allowed_cidrs).toEqual(["127.0.0.0/8", "2001:db8::/32"]);
      const bad = await platform.rest.patch<ProblemJson>(path(), {
        allowed_cidrs: ["127.0.0.0/8", "10.0.0.0/33", "x"],
      });
      expect(expectStatus(bad, 400).json.errors.map(({ pointer }) => pointer)).toEqual([
        "/allowed_cidrs/1",
        "/allowed_cidrs/2",
      ]);
      expectStatus(await platform.rest.patch(path(), { allowed_cidrs: ["127.0.0.0/8"] }), 200);
    });
  });

  describe("logs", () => {
    it("come in pages by cursor, by level and since a time", async () => {
      const { connection, password } = main;
      await expect(queryOnce(platform, connection, { password }, "SELECT from_the_log_test")).rejects.toThrow();
      const read = (query: string) => platform.rest.get<LogsJson>(path(`/logs?${query}`));
      const found = await waitUntil("the error is in the log", async () => {
        const lines: LogsJson["lines"][number][] = [];
        for (let cursor = ""; ; ) {
          const { json } = expectStatus(await read(`limit=50&level=error${cursor}`), 200);
          lines.push(...json.lines);
          if (!json.has_more) return lines.find(({ message }) => message.includes("from_the_log_test"));
          cursor = `&cursor=${encodeURIComponent(json.next_cursor)}`;
        }
      });
      expect(found).toMatchObject({ level: "error" });
      const later = await read(`since=${encodeURIComponent(new Date(Date.now() + 60_000).toISOString())}`);
      expect(expectStatus(later, 200).json).toMatchObject({ lines: [], has_more: false });
      expect((await read("cursor=junk")).status).toBe(400);
    });

    it("are followed as server-sent events", async () => {
      const { get } = await import("node:https");
      const lines = Promise.withResolvers<string>();
      const headers = { authorization: platform.owner, accept: "text/event-stream" };
      const follow = get(
        `${platform.rest.baseUrl}${path("/logs?follow=true")}`,
        { headers, ca: platform.ca },
        (answer) => {
          let text = "";
          expect(answer.headers["content-type"]).toMatch(/^text\/event-stream/);
          answer.setEncoding("utf8").on("data", (chunk: string) => {
            text += chunk;
            if (text.includes("from_the_follower")) lines.resolve(text);
          });
        },
      );
      follow.once("error", lines.reject);
      const { connection, password } = main;
      await expect(queryOnce(platform, connection, { password }, "SELECT from_the_follower")).rejects.toThrow();
      const text = await lines.promise;
      follow.destroy();
      expect(text).toMatch(/^id: ?\S+/m);
    });
  });

  describe("configuration", () => {
    interface ParameterJson {
      readonly value: string;
      readonly default: string;
      readonly status: string;
      readonly reason: string | null;
    }
    const change = (parameters: Record<string, unknown>) =>
      platform.rest.patch<{ parameters: Record<string, ParameterJson> } & ProblemJson>(path("/configuration"), {
        parameters,
      });
    const show = async (name: string) => {
      const [row] = await queryOnce<Record<string, string>>(
        platform,
        main.connection,
        { password: main.password },
        `SHOW ${name}`,
      );
      return row?.[name];
    };

    it("is applied at once where the engine can", async () => {
      const { json } = expectStatus(await change({ work_mem: "12MB" }), 200);
      expect(json.parameters["work_mem"]).toMatchObject({ status: "applied" });
      expect(await show("work_mem")).toBe("12MB");
      const reset = expectStatus(await change({ work_mem: null }), 200).json.parameters["work_mem"];
      expect(reset?.value).toBe(reset?.default);
    });

    it("waits for a restart where the engine needs one", async () => {
      const before = await show("max_connections");
      const { json } = expectStatus(await change({ max_connections: "61" }), 200);
      expect(json.parameters["max_connections"]).toMatchObject({ value: "61", status: "pending_restart" });
      expect(await show("max_connections")).toBe(before);
      await services.verb(main.service.id, "restart");
      expect(await show("max_connections")).toBe("61");
      const after = await platform.rest.get<{ parameters: Record<string, ParameterJson> }>(path("/configuration"));
      expect(after.json.parameters["max_connections"]).toMatchObject({ status: "applied" });
    });

    it("rejects all when one is bad, and names each", async () => {
      const before = (await platform.rest.get(path("/configuration"))).json;
      const answer = expectStatus(await change({ work_mem: "8MB", max_connections: "many", no_such: "1" }), 400);
      expect(answer.json.errors.map(({ pointer }) => pointer).sort()).toEqual([
        "/parameters/max_connections",
        "/parameters/no_such",
      ]);
      expect((await platform.rest.get(path("/configuration"))).json).toEqual(before);
    });
  });

  it("keeps its data over a stop and start, and its passwords can be revealed while it is stopped", async () => {
    const { connection, password, service } = main;
    await queryOnce(platform, connection, { password }, "CREATE TABLE kept AS SELECT 42 AS answer");
    await services.verb(service.id, "stop");
    expect(await passwordOf("app_user")).toBe(password);
    expect((await platform.rest.get(path("/database-users"))).status).toBe(409);
    expect((await platform.rest.get(path("/databases"))).status).toBe(409);
    const stored = await platform.rest.patch<{ parameters: Record<string, { status: string }> }>(
      path("/configuration"),
      { parameters: { max_connections: "71" } },
    );
    expect(expectStatus(stored, 200).json.parameters["max_connections"]).toMatchObject({ status: "pending_restart" });
    await services.verb(service.id, "start");
    const rows = await queryOnce(
      platform,
      connection,
      { password },
      "SELECT answer, current_setting('max_connections') AS max FROM kept",
    );
    expect(rows).toEqual([{ answer: 42, max: "71" }]);
  });

  it("leaves no name behind when it is deleted", async () => {
    const { service, connection } = main;
    await services.delete(service.id);
    expect(await resolveName(platform.admin.dns_server, connection.host)).toEqual([]);
    expect(platform.processes().machines.map(({ id }) => id)).not.toContain(service.nodes[0]?.id);
  });
});

function writeForProgram(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 });
  if (asRoot) chownSync(file, testUid, testUid);
}

/** psql out of the node image, which has the libpq that users have. */
function runPsql(directory: string, conninfo: readonly string[]) {
  const found = findSoftware(imagesDirectory(process.env), "postgresql", "17");
  if (found === undefined) throw new Error("no node image");
  const psql = join(found.software, "bin", "psql");
  const argv = [psql, "-XAtc", "SELECT 1", conninfo.join(" ")];
  const { command, args } = inImage(found.image.root, { argv, uid: testUid, binds: [directory], asRoot });
  return run(command, args, { cwd: "/" });
}
