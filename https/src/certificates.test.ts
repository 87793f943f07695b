import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { silentLog } from "@holdfast/common/log.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCertificates } from "./certificates.ts";
import { type ApiServer, createApiServer } from "./server.ts";

const certificates = createCertificates();
let server: ApiServer;
let port: number;
let general: string;

beforeAll(async () => {
  const pair = await createTestCertificate();
  general = fingerprintOf(pair.cert);
  server = createApiServer({
    ...pair,
    certificates,
    log: silentLog,
    handler: (_request, response) => void response.end("ok"),
  });
  port = await server.listen(0, "127.0.0.1");
});
afterAll(() => server.close(0));

const fingerprintOf = (cert: string) => new X509Certificate(cert).fingerprint256;

/** Opens a connection with or without this server name. */
async function open(servername?: string): Promise<TLSSocket> {
  const options = { host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["h2"] };
  const socket = connect({ ...options, ...(servername !== undefined && { servername }) });
  await once(socket, "secureConnect");
  return socket;
}

/** Fingerprint of the certificate that a client with this server name receives. */
async function seen(servername?: string): Promise<string | undefined> {
  const socket = await open(servername);
  expect(socket.alpnProtocol).toBe("h2");
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  return certificate?.fingerprint256;
}

async function setNew(name: string): Promise<string> {
  const pair = await createTestCertificate();
  certificates.set(name, pair);
  return fingerprintOf(pair.cert);
}

test("a client gets the certificate of its server name, or the default one", async () => {
  const [own, below] = [await setNew("Own.example.com"), await setNew("*.example.com")];
  expect(await seen("own.example.com")).toBe(own);
  expect(await seen("OWN.EXAMPLE.COM")).toBe(own);
  expect(await seen("other.example.com")).toBe(below);
  for (const name of ["example.com", "a.b.example.com", "localhost", undefined]) expect(await seen(name)).toBe(general);
});

test("a renewed certificate applies to new connections, and open ones stay", async () => {
  const before = await setNew("renewed.test");
  const existing = await open("renewed.test");
  const after = await setNew("renewed.test");
  expect(await seen("renewed.test")).toBe(after);
  expect(existing.getPeerX509Certificate()?.fingerprint256).toBe(before);
  expect(existing.destroyed).toBe(false);
  existing.destroy();
});

test("a removed name gets the default certificate, also after its renewal", async () => {
  await setNew("released.test");
  certificates.delete("released.test");
  expect(await seen("released.test")).toBe(general);
  const pair = await createTestCertificate();
  server.renew(pair.key, pair.cert);
  general = fingerprintOf(pair.cert);
  expect(await seen("released.test")).toBe(general);
});

test("a mismatched key is rejected, and the previous pair stays", async () => {
  const previous = await setNew("mismatch.test");
  const [{ cert }, { key }] = [await createTestCertificate(), await createTestCertificate()];
  expect(() => certificates.set("mismatch.test", { key, cert })).toThrow(/key values mismatch/);
  expect(await seen("mismatch.test")).toBe(previous);
});
