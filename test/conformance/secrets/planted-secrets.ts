import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { expect } from "vitest";
import { openPostgresql, openValkey } from "@holdfast/testing/api/clients.ts";
import { createOrganizations } from "@holdfast/testing/platform/organizations.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";

/** A platform that is searched for secrets, with a service of each engine; the Valkey is deleted midway. */
export interface SecretsUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  readonly postgresql: RunningService;
  readonly valkey: RunningService;
}

/** A secret with a name for the report, which never shows the secret itself. */
export interface Planted {
  readonly name: string;
  readonly secret: string;
}

/**
 * Creates, reveals and uses every kind of secret, correctly and incorrectly, so that it passes all code that might log
 * it.
 */
export async function plantSecrets({ platform, services, postgresql, valkey }: SecretsUnderTest): Promise<Planted[]> {
  const planted: Planted[] = [];
  const plant = (name: string, secret: unknown) => planted.push({ name, secret: String(secret) });

  /**
   * Creates them under an Idempotency-Key, rotates them, and signs with them, so that each component handles them once.
   */
  async function plantWebhookSecrets(): Promise<void> {
    const options = { headers: { "idempotency-key": "planted" } };
    const created = await platform.rest.post<{ id: string; secret: string }>(
      "/webhooks",
      { url: "https://webhooks.invalid/", events: [] },
      options,
    );
    const { id, secret } = expectStatus(created, 201).json;
    plant("secret of a webhook", secret);
    const rotated = await platform.rest.post<{ secret: string }>(`/webhooks/${id}/rotate-secret`, {}, options);
    plant("secret of a webhook after its rotation", expectStatus(rotated, 200).json.secret);
    expectStatus(await platform.rest.post(`/webhooks/${id}/test`), 202);
  }

  /** Creates, retains by mask, and uses a secret: nothing listens at the address, so the failure is reported. */
  async function plantExportSecrets(): Promise<void> {
    const [token, header] = ["planted-bearer-token-0f3c9a", "planted-header-value-77d1e2"];
    plant("token of an export", token);
    plant("header of an export", header);
    const path = "/api/v1/metrics-exports";
    for (const [destination_type, configuration] of [
      ["prometheus_remote_write", { url: "https://exports.invalid/api/v1/write", bearer_token: token }],
      ["otlp", { endpoint: "https://exports.invalid/", headers: { "x-api-key": header } }],
    ] as const) {
      const body = { service_id: postgresql.service.id, name: "planted", destination_type, data_type: "metrics" };
      const options = { headers: { "idempotency-key": `planted-${destination_type}` } };
      const created = await platform.rest.post<{ id: string }>(path, { ...body, configuration }, options);
      const { id } = expectStatus(created, 201).json;
      expectStatus(await platform.rest.call("PUT", `${path}/${id}`, { body: { name: "again" } }), 200);
      const tested = await platform.rest.post<{ success: boolean }>(`${path}/${id}/test`);
      expect(expectStatus(tested, 200).json.success).toBe(false);
      const elsewhere = { configuration: { ...configuration, color: token } };
      expectStatus(await platform.rest.call("PUT", `${path}/${id}`, { body: elsewhere }), 400);
    }
  }

  function collectEnrollmentTokens(): void {
    for (const file of filesBelow(join(platform.directory, "machines"), (name) => name === "enrollment.json")) {
      const text = contentOf(file).toString("utf8");
      if (text !== "") plant("an enrollment token", JSON.parse(text).token);
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

  async function use(): Promise<void> {
    const session = await openPostgresql(platform, postgresql.connection, { password: postgresql.password });
    await session.query("SELECT 1");
    await session.end();
    (await openValkey(platform, valkey.connection, { password: valkey.password })).disconnect();
    for (const authorization of [platform.operator, platform.owner, `Bearer ${platform.admin.token}`]) {
      expectStatus(await platform.rest.as(authorization).get("/managed-services"), 200);
    }
  }

  async function misuse(): Promise<void> {
    const { service, connection, password } = postgresql;
    const { rest, admin } = platform;
    const wrongDestination = {
      name: admin.api_key_secret,
      database_type: admin.token,
      plan_name: password,
      storage_size_gb: 1,
    };
    expectStatus(await rest.as(`Bearer ${admin.api_key_secret}`).get("/catalog"), 401);
    expectStatus(await rest.as(`Basic ${admin.token}`).post("/managed-services", wrongDestination), 401);
    expectStatus(await rest.get("/managed-services", { headers: { "idempotency-key": admin.token } }), 200);
    const path = `/managed-services/${service.id}/database-users`;
    expectStatus(await rest.post(path, { username: "second", role: "admin" }), 409);
    const wrongUser = openPostgresql(platform, connection, { user: "nobody", password });
    await expect(wrongUser).rejects.toThrow("password authentication failed");
    const wrongDatabase = openPostgresql(platform, connection, { password, database: "none" });
    await expect(wrongDatabase).rejects.toThrow('database "none" does not exist');
  }

  collectEnrollmentTokens();
  for (const { service, password } of [postgresql, valkey]) {
    plant(`password of app_user of ${service.name}`, password);
    const path = `/managed-services/${service.id}/database-users`;
    // One key for all: stored responses contain passwords too.
    const options = { headers: { "idempotency-key": "planted" } };
    expectStatus(await platform.rest.post(path, { username: "second", role: "readwrite" }, options), 201);
    for (const verb of ["reveal-password", "reset-password", "reveal-password"]) {
      const response = await platform.rest.post<{ password: string }>(`${path}/second/${verb}`, undefined, options);
      plant(`password of second of ${service.name} by ${verb}`, expectStatus(response, 200).json.password);
    }
  }
  await plantWebhookSecrets();
  await plantExportSecrets();
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

  await use();
  await misuse();
  await services.verb(postgresql.service.id, "stop");
  await services.verb(postgresql.service.id, "start");
  collectEnrollmentTokens();
  collectPrivateKeys();
  await services.delete(valkey.service.id);
  return planted;
}

/** All accepted files below the directory; disks and compiled code are skipped. */
export function filesBelow(directory: string, accepts: (name: string) => boolean): string[] {
  return ignoreMissing(() => readdirSync(directory, { withFileTypes: true }), []).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return entry.name === "compile-cache" ? [] : filesBelow(path, accepts);
    return entry.isFile() && accepts(entry.name) && entry.name !== "disk.img" ? [path] : [];
  });
}

/** Content of a file; empty when it was deleted since it was listed, as its writers also replace and remove files. */
export function contentOf(file: string): Buffer {
  return ignoreMissing(() => readFileSync(file), Buffer.alloc(0));
}

function ignoreMissing<T>(read: () => T, otherwise: T): T {
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
