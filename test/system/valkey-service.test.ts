import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf, commandOnce, privateConnection, openValkey } from "@holdfast/testing/api/clients.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { testPublicNetwork } from "@holdfast/testing/network/public-network.ts";
import type { PageJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

describe("a managed Valkey", () => {
  let platform: Platform;
  let services: Services;
  let cache: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({ flags: ["--public-addresses", await testPublicNetwork()] });
    services = createServices(platform);
    cache = await services.createRunning("cache", { database_type: "valkey" });
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${cache.service.id}${rest}`;

  const run = (command: string, ...args: string[]) =>
    commandOnce(platform, cache.connection, { password: cache.password }, command, ...args);

  it("stores and returns values over TLS with the certificate verified against its name", async () => {
    expect(await run("SET", "greeting", "hello")).toBe("OK");
    expect(await run("GET", "greeting")).toBe("hello");
  });

  it("fails the verification of the certificate by address", async () => {
    const attempt = openValkey(platform, cache.connection, { password: cache.password, verify: "address" });
    await expect(attempt).rejects.toThrow("altnames");
  });

  it("accepts no connection without TLS, and has no default user", async () => {
    const address = await addressOf(platform, cache.connection.host);
    const plain = await new Promise<string>((resolve) => {
      const socket = connect(cache.connection.port, address, () => socket.write("PING\r\n"));
      socket.once("data", (data) => resolve(data.toString("latin1")));
      socket.once("error", (error) => resolve(error.message));
      socket.once("close", () => resolve("closed"));
      socket.setTimeout(3_000, () => socket.destroy());
    });
    expect(plain).not.toContain("PONG");
    const asDefault = openValkey(platform, cache.connection, { user: "default", password: cache.password });
    await expect(asDefault).rejects.toThrow("WRONGPASS");
  });

  it("lets its default user use data, and not configure or stop the server", async () => {
    for (const command of [
      ["CONFIG", "GET", "*"],
      ["ACL", "LIST"],
      ["SHUTDOWN"],
      ["DEBUG", "SLEEP", "0"],
      ["REPLICAOF", "NO", "ONE"],
      ["MODULE", "LIST"],
    ]) {
      await expect(run(command[0] ?? "", ...command.slice(1))).rejects.toThrow(/NOPERM|not allowed/);
    }
  });

  it("has users with the privileges of their roles, and passwords that can be revealed and reset", async () => {
    const names = { reader: "readonly", writer: "readwrite" };
    for (const [username, role] of Object.entries(names)) {
      expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    }
    const open = async (user: string) => {
      const response = await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`));
      return openValkey(platform, cache.connection, { user, password: expectStatus(response, 200).json.password });
    };
    const [reader, writer] = [await open("reader"), await open("writer")];
    await writer.set("shared", "1");
    expect(await reader.get("shared")).toBe("1");
    await expect(reader.set("shared", "2")).rejects.toThrow(/NOPERM/);
    reader.disconnect();
    writer.disconnect();

    const reset = await platform.rest.post<{ password: string }>(path("/database-users/writer/reset-password"));
    const withNewPassword = await openValkey(platform, cache.connection, {
      user: "writer",
      password: reset.json.password,
    });
    withNewPassword.disconnect();
    const { json } = await platform.rest.get<PageJson<"users", { username: string }>>(path("/database-users"));
    expect(json.users.map(({ username }) => username)).toEqual(["app_user", "reader", "writer"]);
    expectStatus(await platform.rest.delete(path("/database-users/reader")), 204);
  });

  it("has no database that a user can create or delete", async () => {
    const list = await platform.rest.get<ProblemJson>(path("/databases"));
    expect(expectStatus(list, 422).json.code).toBe("not_supported");
    const create = await platform.rest.post<ProblemJson>(path("/databases"), { name: "orders" });
    expect(expectStatus(create, 422).json.code).toBe("not_supported");
  });

  it("applies a changed allow-list, to open sessions too, at both its addresses", async () => {
    const session = await openValkey(platform, cache.connection, { password: cache.password });
    const ofDefaultUser = await openValkey(platform, privateConnection(cache.connection), { password: cache.password });
    expect(ofDefaultUser.stream.remoteAddress).not.toBe(session.stream.remoteAddress);
    const alsoClosed = new Promise((resolve) => ofDefaultUser.once("close", resolve));
    const closed = new Promise((resolve) => session.once("close", resolve));
    expectStatus(await platform.rest.patch(path(), { allowed_cidrs: [] }), 200);
    await Promise.all([closed, alsoClosed]);
    for (const connection of [cache.connection, privateConnection(cache.connection)])
      await expect(openValkey(platform, connection, { password: cache.password })).rejects.toThrow(
        /takes no client: .*(disconnected|ECONNRESET|closed)/,
      );
    session.disconnect();
    ofDefaultUser.disconnect();
    expectStatus(await platform.rest.patch(path(), { allowed_cidrs: ["127.0.0.0/8"] }), 200);
    await waitUntil("the service lets loopback in", async () => (await run("PING")) === "PONG");
  });

  it("accepts an eviction policy as parameter", async () => {
    const response = await platform.rest.patch<{ parameters: Record<string, { value: string; status: string }> }>(
      path("/configuration"),
      { parameters: { "maxmemory-policy": "allkeys-lru" } },
    );
    const policy = expectStatus(response, 200).json.parameters["maxmemory-policy"];
    expect(policy).toMatchObject({ value: "allkeys-lru", status: "applied" });
    expect(String(await run("INFO", "memory"))).toContain("maxmemory_policy:allkeys-lru");
  });

  it("retains its values over a stop, a start and a killed engine", async () => {
    await run("SET", "durable", "yes");
    await services.verb(cache.service.id, "stop");
    await services.verb(cache.service.id, "start");
    expect(await run("GET", "durable")).toBe("yes");
    const engine = platform.processes().machines.find(({ id }) => id === cache.service.nodes[0]?.id)?.engine;
    killImmediately(engine ?? 0);
    await waitUntil("the engine is back with its values", async () => (await run("GET", "durable")) === "yes");
  });
});
