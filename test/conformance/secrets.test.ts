import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql, openValkey } from "../support/clients.ts";
import { dumpEtcd } from "../support/etcd-dump.ts";
import { createOrganizations } from "../support/organizations.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { logFiles } from "../support/platform-logs.ts";
import { argumentsAndEnvironment } from "../support/platform-processes.ts";
import { createServices, expectStatus, type RunningService } from "../support/services.ts";

/** A secret with a name for the report, which never shows the secret itself. */
interface Planted {
  readonly name: string;
  readonly secret: string;
}

describe("secrets", () => {
  let platform: Platform;
  let postgresql: RunningService;
  const planted: Planted[] = [];
  const plant = (name: string, secret: unknown) => planted.push({ name, secret: String(secret) });

  beforeAll(async () => {
    platform = await startPlatform();
    const services = createServices(platform);
    const [pg, valkey] = await Promise.all([
      services.createRunning("ledger"),
      services.createRunning("cache", { database_type: "valkey" }),
    ]);
    postgresql = pg;
    collectEnrolmentTokens();
    for (const { service, password } of [pg, valkey]) {
      plant(`password of app_user of ${service.name}`, password);
      const path = `/managed-services/${service.id}/database-users`;
      // One key for all: kept answers hold passwords too.
      const options = { headers: { "idempotency-key": "planted" } };
      expectStatus(await platform.rest.post(path, { username: "second", role: "readwrite" }, options), 201);
      for (const verb of ["reveal-password", "reset-password", "reveal-password"]) {
        const answer = await platform.rest.post<{ password: string }>(`${path}/second/${verb}`, undefined, options);
        plant(`password of second of ${service.name} by ${verb}`, expectStatus(answer, 200).json.password);
      }
    }
    await plantWebhookSecrets();
    const { admin } = platform;
    plant("password of the operator", admin.password);
    plant("secret of the owner's key", admin.api_key_secret);
    plant("the owner's token", admin.token);
    const organizations = createOrganizations(platform);
    plant("secret of a new key", (await organizations.createKey(await organizations.first())).secret);
    organizations.close();
    for (const name of readdirSync(join(platform.directory, "keys"))) {
      const text = readFileSync(join(platform.directory, "keys", name), "utf8");
      const secrets = name.endsWith(".json") ? textsOf(JSON.parse(text)) : [text.trim()];
      for (const secret of secrets) if (secret.length >= 20) plant(`text of keys/${name}`, secret);
    }

    // Everything is used once, rightly and wrongly, so that it passes by whatever might write it down.
    await use(pg, valkey);
    await misuse(pg);
    await services.verb(pg.service.id, "stop");
    await services.verb(pg.service.id, "start");
    collectEnrolmentTokens();
    collectPrivateKeys();
    await services.delete(valkey.service.id);
  });
  afterAll(() => platform?.remove());

  /** Made under an Idempotency-Key, rotated, and used to sign, so that each place that has them has had its turn. */
  async function plantWebhookSecrets(): Promise<void> {
    const options = { headers: { "idempotency-key": "planted" } };
    const made = await platform.rest.post<{ id: string; secret: string }>(
      "/webhooks",
      { url: "https://webhooks.invalid/", events: [] },
      options,
    );
    const { id, secret } = expectStatus(made, 201).json;
    plant("secret of a webhook", secret);
    const rotated = await platform.rest.post<{ secret: string }>(`/webhooks/${id}/rotate-secret`, {}, options);
    plant("secret of a webhook after its rotation", expectStatus(rotated, 200).json.secret);
    expectStatus(await platform.rest.post(`/webhooks/${id}/test`), 202);
  }

  function collectEnrolmentTokens(): void {
    for (const file of filesBelow(join(platform.directory, "machines"), (name) => name === "enrollment.json")) {
      const text = contentOf(file).toString("utf8");
      if (text !== "") plant("an enrolment token", JSON.parse(text).token);
    }
  }

  function collectPrivateKeys(): void {
    const files = filesBelow(platform.directory, (name) => /\.(key|pem)$/.test(name));
    for (const file of files) {
      const body = /PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+?)-----END/.exec(contentOf(file).toString("utf8"))?.[1];
      if (body !== undefined)
        plant(
          `private key of ${file.slice(platform.directory.length)}`,
          body.trim().split("\n").at(-2) ?? body.trim().slice(-60, -4),
        );
    }
  }

  async function use(pg: RunningService, valkey: RunningService): Promise<void> {
    const session = await openPostgresql(platform, pg.connection, { password: pg.password });
    await session.query("SELECT 1");
    await session.end();
    (await openValkey(platform, valkey.connection, { password: valkey.password })).disconnect();
    for (const authorization of [platform.operator, platform.owner, `Bearer ${platform.admin.token}`]) {
      expectStatus(await platform.rest.as(authorization).get("/managed-services"), 200);
    }
  }

  async function misuse({ service, connection, password }: RunningService): Promise<void> {
    const { rest, admin } = platform;
    const wrongPlace = {
      name: admin.api_key_secret,
      database_type: admin.token,
      plan_name: password,
      storage_size_gb: 1,
    };
    expectStatus(await rest.as(`Bearer ${admin.api_key_secret}`).get("/catalog"), 401);
    expectStatus(await rest.as(`Basic ${admin.token}`).post("/managed-services", wrongPlace), 401);
    expectStatus(await rest.get("/managed-services", { headers: { "idempotency-key": admin.token } }), 200);
    const path = `/managed-services/${service.id}/database-users`;
    expectStatus(await rest.post(path, { username: "second", role: "admin" }), 409);
    const wrongUser = openPostgresql(platform, connection, { user: "nobody", password });
    await expect(wrongUser).rejects.toThrow("password authentication failed");
    const wrongDatabase = openPostgresql(platform, connection, { password, database: "none" });
    await expect(wrongDatabase).rejects.toThrow('database "none" does not exist');
  }

  /** Names of the secrets that are in the text, plain or as basic credentials. */
  function found(text: string | Buffer): string[] {
    return [...new Set(planted.filter(({ secret }) => text.includes(secret)).map(({ name }) => name))];
  }

  it("are many, and each is long", () => {
    expect(planted.length).toBeGreaterThan(15);
    expect(planted.filter(({ secret }) => secret.length < 16).map(({ name }) => name)).toEqual([]);
  });

  it("are not in etcd", async () => {
    const dump = await dumpEtcd(platform.directory);
    expect([...dump.values()].join("\n")).toContain(postgresql.service.hostname);
    for (const [key, value] of dump) expect({ key, found: found(key + value) }).toEqual({ key, found: [] });
  });

  it("are not in the files of etcd, history, objects and DNS either, where old states stay a while", () => {
    for (const folder of ["etcd", "history", "objects", "dns"]) {
      for (const file of filesBelow(join(platform.directory, folder), (name) => !/\.(key|pem)$/.test(name))) {
        expect({ file, found: found(contentOf(file)) }).toEqual({ file, found: [] });
      }
    }
  });

  it("are not in history", async () => {
    const rows = await dumpHistory(platform.directory);
    expect(rows.join("\n")).toContain(postgresql.service.id);
    for (const row of rows) expect(found(row)).toEqual([]);
  });

  it("are not in any log", () => {
    const files = logFiles(platform.directory);
    expect(files.map(contentOf).join("\n")).toContain(postgresql.service.id);
    for (const file of files) {
      const lines = contentOf(file).toString("utf8").split("\n");
      expect(lines.flatMap((line) => found(line).map((name) => `${file}: ${name}`))).toEqual([]);
    }
  });

  it("are not in arguments and environments of processes", () => {
    const { all } = platform.processes();
    expect(all.length).toBeGreaterThan(8);
    for (const pid of all) {
      const { cmdline, environ } = argumentsAndEnvironment(pid);
      expect({ cmdline, found: found(cmdline + environ) }).toEqual({ cmdline, found: [] });
    }
  });

  it("are not in bodies of errors", () => {
    expect(platform.errorBodies.length).toBeGreaterThan(3);
    for (const body of platform.errorBodies) expect(found(body)).toEqual([]);
  });

  it("are in files that only their owner may read", () => {
    const readable = filesBelow(platform.directory, () => true).filter((file) => {
      const stat = statSync(file, { throwIfNoEntry: false });
      return stat !== undefined && (stat.mode & 0o044) !== 0 && isReachable(file, platform.directory);
    });
    expect(readable.filter((file) => found(contentOf(file)).length > 0)).toEqual([]);
  });
});

/** May others pass through every directory above it? */
function isReachable(file: string, root: string): boolean {
  const parts = file
    .slice(root.length + 1)
    .split("/")
    .slice(0, -1);
  return parts.every((_, index) => {
    const stat = statSync(join(root, ...parts.slice(0, index + 1)), { throwIfNoEntry: false });
    return stat !== undefined && (stat.mode & 0o001) !== 0;
  });
}

function filesBelow(directory: string, accepts: (name: string) => boolean): string[] {
  return unlessGone(() => readdirSync(directory, { withFileTypes: true }), []).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return entry.name === "compile-cache" ? [] : filesBelow(path, accepts);
    return entry.isFile() && accepts(entry.name) && entry.name !== "disk.img" ? [path] : [];
  });
}

/** Nothing of a file that went since it was listed: those who write there also replace and remove. */
function contentOf(file: string): Buffer {
  return unlessGone(() => readFileSync(file), Buffer.alloc(0));
}

function unlessGone<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return otherwise;
    throw error;
  }
}

function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

/** Every row of every table of the history database, as text. */
async function dumpHistory(directory: string): Promise<string[]> {
  const { ports } = JSON.parse(readFileSync(join(directory, "installation.json"), "utf8"));
  const client = new Client({
    host: "127.0.0.1",
    port: ports.history,
    user: "holdfast",
    database: "holdfast",
    password: readFileSync(join(directory, "keys", "history-password"), "utf8").trim(),
    ssl: { ca: readFileSync(join(directory, "pki", "controller", "ca.crt")) },
  });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    const rows: string[] = [];
    for (const { name } of tables.rows) {
      const { rows: found } = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} AS t`);
      rows.push(...found.map(({ row }) => row));
    }
    return rows;
  } finally {
    await client.end();
  }
}
