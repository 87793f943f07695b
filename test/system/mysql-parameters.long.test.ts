import { connect } from "node:net";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

interface ConfigurationJson {
  readonly parameters: Readonly<
    Record<string, { readonly value: string; readonly status: string; readonly reason: string | null }>
  >;
}

const skip = await requireRecipes(import.meta.filename, "mysql");
/** Numbers of threads for which the redo log of a service of 1 GB is too small. A rejected one is not tried again. */
const tooMany = ["1000", "999"] as const;

describe.skipIf(skip !== undefined)("a MySQL with a parameter that prevents its start", () => {
  let platform: Platform;
  let services: Services;
  let shop: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    shop = await services.createRunning("shop", { database_type: "mysql", storage_size_gb: 1 });
  });
  afterAll(() => platform?.remove());

  const path = (rest: string) => `/managed-services/${shop.service.id}${rest}`;
  const configure = async (parameters: Record<string, string | null>) =>
    expectStatus(await platform.rest.patch<ConfigurationJson>(path("/configuration"), { parameters }), 200).json;
  const configured = async () =>
    expectStatus(await platform.rest.get<ConfigurationJson>(path("/configuration")), 200).json.parameters;

  /** Value in the engine. */
  async function threads(): Promise<number> {
    const { host, port, ca_certificate: ca } = shop.connection;
    const stream = connect({ host: await addressOf(platform, host), port });
    const ssl = { ca, verifyIdentity: true };
    const login = { user: "app_user", password: shop.password, database: "defaultdb" };
    const client = await createConnection({ host, stream, ssl, ...login });
    try {
      const [rows] = await client.query("SELECT @@GLOBAL.innodb_thread_concurrency AS threads");
      return (rows as { threads: number }[])[0]?.threads ?? -1;
    } finally {
      client.destroy();
    }
  }

  const statusOf = async () => (await configured())["innodb_thread_concurrency"];

  it("continues with the value before, and reports what the engine replied", async () => {
    await configure({ innodb_thread_concurrency: tooMany[0] });
    await waitUntil("the value is rejected", async () => (await statusOf())?.status === "rejected");
    expect((await statusOf())?.reason).toContain("innodb_thread_concurrency is too big for safety of redo log files");
    expect(await threads()).toBe(0);
    await services.settled(shop.service.id, "Running");
    await configure({ innodb_thread_concurrency: null });
    await waitUntil("the default is applied", async () => (await statusOf())?.status === "applied");
  });

  it("starts with the value before, and reports what the engine printed", async () => {
    await services.verb(shop.service.id, "stop");
    await configure({ innodb_thread_concurrency: tooMany[1] });
    await services.verb(shop.service.id, "start");
    const reason = expect.stringContaining(`is too small for the innodb_thread_concurrency=${tooMany[1]}`);
    expect(await statusOf()).toMatchObject({ status: "rejected", reason });
    expect(await threads()).toBe(0);
    const operation = (await services.operations(shop.service.id)).find(({ type }) => type === "start");
    expect(operation).toMatchObject({ status: "completed", warnings: [reason] });
    expect(operation?.warnings[0]).toContain(shop.service.nodes[0]?.hostname);
  });

  it("applies another value, with which it also starts", async () => {
    await configure({ innodb_thread_concurrency: "8" });
    await waitUntil("the engine has the value", async () => (await threads()) === 8);
    await services.verb(shop.service.id, "restart");
    expect(await statusOf()).toMatchObject({ value: "8", status: "applied" });
    expect(await threads()).toBe(8);
  });
});
