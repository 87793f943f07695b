import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { silentLog } from "@holdfast/common/log.ts";
import { createTestCertificate } from "@holdfast/test/support/controller/test-certificate.ts";
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

/** A connection that asks for the name, or for none. */
async function open(servername?: string): Promise<TLSSocket> {
  const options = { host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["h2"] };
  const socket = connect({ ...options, ...(servername !== undefined && { servername }) });
  await once(socket, "secureConnect");
  return socket;
}

/** Fingerprint of the certificate that a client sees that asks for the name. */
async function seen(servername?: string): Promise<string | undefined> {
  const socket = await open(servername);
  expect(socket.alpnProtocol).toBe("h2");
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  return certificate?.fingerprint256;
}

async function hold(name: string): Promise<string> {
  const pair = await createTestCertificate();
  certificates.hold(name, pair);
  return fingerprintOf(pair.cert);
}

test("a client gets the certificate of the name that it asks for, and the default one for any other", async () => {
  const [own, below] = [await hold("Own.example.com"), await hold("*.example.com")];
  expect(await seen("own.example.com")).toBe(own);
  expect(await seen("OWN.EXAMPLE.COM")).toBe(own);
  expect(await seen("other.example.com")).toBe(below);
  for (const name of ["example.com", "a.b.example.com", "localhost", undefined]) expect(await seen(name)).toBe(general);
});

test("a certificate that is renewed is for new connections, and the others stay open", async () => {
  const before = await hold("renewed.test");
  const early = await open("renewed.test");
  const after = await hold("renewed.test");
  expect(await seen("renewed.test")).toBe(after);
  expect(early.getPeerX509Certificate()?.fingerprint256).toBe(before);
  expect(early.destroyed).toBe(false);
  early.destroy();
});

test("a name that is released has the default certificate, also once that is renewed", async () => {
  await hold("released.test");
  certificates.release("released.test");
  expect(await seen("released.test")).toBe(general);
  const pair = await createTestCertificate();
  server.renew(pair.key, pair.cert);
  general = fingerprintOf(pair.cert);
  expect(await seen("released.test")).toBe(general);
});

test("a key of another certificate is refused, and the pair before stays", async () => {
  const held = await hold("kept.test");
  const [{ cert }, { key }] = [await createTestCertificate(), await createTestCertificate()];
  expect(() => certificates.hold("kept.test", { key, cert })).toThrow(/key values mismatch/);
  expect(await seen("kept.test")).toBe(held);
});
