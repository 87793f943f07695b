import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Log, silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { createTestCertificate, type TestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { HostUnreachable } from "../compute-failure.ts";
import { openIncus } from "./open-incus.ts";

/** Decisions of the client without a daemon; incus-daemon.long.test.ts has the cases with a real daemon. */
describe("an Incus daemon over HTTPS", () => {
  const servers: Server[] = [];
  let files = "";
  let own: TestCertificate;
  let requested = 0;

  beforeAll(async () => {
    files = await mkdtemp(join(tmpdir(), "holdfast-open-incus-"));
    own = await createTestCertificate(Date.now() + 90 * 86_400_000);
  });
  afterAll(async () => {
    for (const server of servers) server.close().closeAllConnections();
    await rm(files, { recursive: true, force: true });
  });

  /** A server with this certificate that trusts every client; returns its URL. */
  async function serving({ cert, key }: TestCertificate): Promise<string> {
    const server = createServer({ cert, key }, (request, response) => {
      requested += 1;
      response.end(JSON.stringify({ type: "sync", metadata: { auth: "trusted" } }));
    });
    servers.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async function open(url: string, server: TestCertificate, client = own, log: Log = silentLog) {
    const write = async (name: string, text: string) => {
      await writeFile(join(files, name), text, { mode: 0o600 });
      return join(files, name);
    };
    const settings = {
      incusSocket: "",
      incusProject: "p",
      incusUrl: url,
      incusCert: await write("client.crt", client.cert),
      incusKey: await write("client.key", client.key),
      incusServerCert: await write("server.crt", server.cert),
      incusTokenFile: "",
    };
    return openIncus(settings, log);
  }

  it("is identified by the pinned certificate", async () => {
    const daemon = await createTestCertificate();
    const incus = await open(await serving(daemon), daemon);
    expect(await incus.call("GET", "/1.0", AbortSignal.timeout(60_000))).toEqual({ auth: "trusted" });
    await incus.close();
  });

  it("is refused with another or an expired certificate, before any request", async () => {
    const [known, other] = [await createTestCertificate(), await createTestCertificate()];
    const expired = await createTestCertificate(Date.now() - 60_000);
    const before = requested;
    await expect(open(await serving(other), known)).rejects.toThrow(
      /its Incus presents another certificate\. .* copy its server\.crt to HOLDFAST_INCUS_SERVER_CERT/,
    );
    await expect(open(await serving(expired), expired)).rejects.toThrow("the certificate of its Incus has expired");
    expect(requested).toBe(before);
  });

  it("may be down at the start, and every call reports it", async () => {
    const [port = 0] = await freePorts(1);
    const incus = await open(`https://127.0.0.1:${port}`, await createTestCertificate());
    const call = incus.call("GET", "/1.0", AbortSignal.timeout(60_000));
    await expect(call).rejects.toThrow("its Incus cannot be reached (ECONNREFUSED)");
    await expect(call).rejects.toBeInstanceOf(HostUnreachable);
    await incus.close();
  });

  it("refuses an expired client certificate or a wrong key, and warns before the expiry", async () => {
    const daemon = await createTestCertificate();
    const url = await serving(daemon);
    const ended = await createTestCertificate(Date.now() - 60_000);
    await expect(open(url, daemon, ended)).rejects.toThrow(
      /^HOLDFAST_INCUS_CERT: .*client\.crt has expired on \d{4}-.*incus config trust add-certificate/,
    );
    await expect(open(url, daemon, { ...own, key: daemon.key })).rejects.toThrow(
      /^HOLDFAST_INCUS_KEY: .*client\.key is not the key of the certificate .*client\.crt/,
    );
    const warned: string[] = [];
    const log = { ...silentLog, warn: (message: string) => void warned.push(message) };
    await (await open(url, daemon, own, log)).close();
    expect(warned).toEqual([]);
    await (await open(url, daemon, await createTestCertificate(), log)).close();
    expect(warned).toEqual(["incus client certificate expires soon"]);
  });
});
