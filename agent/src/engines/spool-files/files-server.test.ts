import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportKey, newKeyPair } from "@holdfast/common/signing-key.ts";
import { createTestAuthority } from "@holdfast/testing/controller/test-authority.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runProgram } from "../../os/program.ts";
import { memberFiles } from "./files-client.ts";
import { startFilesServer } from "./files-server.ts";
import { localFiles } from "./spool-files.ts";

const address = "127.0.0.1";
const signal = AbortSignal.timeout(60_000);
let directory: string;
let root: string;
let server: Server;
let port: number;
let identities: Readonly<Record<"server" | "agent" | "outsider", string>>;
let authority: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-spool-"));
  root = join(directory, "files");
  const [members, others] = await Promise.all([createTestAuthority(), createTestAuthority()]);
  const identityOf = async (of: typeof members, commonName: string) => {
    const { publicKey, privateKey } = await newKeyPair();
    const leaf = await of.issue({ commonName, names: [commonName], publicKey, client: true });
    return (await exportKey(privateKey)) + new X509Certificate(leaf.der).toString();
  };
  identities = {
    server: await identityOf(members, "server"),
    agent: await identityOf(members, "agent"),
    outsider: await identityOf(others, "agent"),
  };
  authority = members.trustBundle;
  [port = 0] = await freePorts(1);
  const files = localFiles(runProgram, root);
  server = await startFilesServer({ address, port, identity: identities.server, authority, client: "agent", files });
});
afterAll(async () => {
  server?.close();
  server?.closeAllConnections();
  if (server !== undefined) await once(server, "close");
  rmSync(directory, { recursive: true });
});

const clientWith = (identity: string, name = "server") =>
  memberFiles({ address, port, identity, authority, server: name });

test("serves files while they grow, and removes what was read", async () => {
  const files = clientWith(identities.agent);
  expect(await files.list(signal)).toEqual([]);
  mkdirSync(join(root, "a"), { recursive: true });
  writeFileSync(join(root, "a/__1"), "x".repeat(3_000_000));
  const readFrom = async (from: number) => {
    const parts: Buffer[] = [];
    for await (const part of files.read("a/__1", from, signal)) parts.push(part);
    return Buffer.concat(parts).toString();
  };
  expect(await readFrom(0)).toBe("x".repeat(3_000_000));
  appendFileSync(join(root, "a/__1"), "y");
  expect(await readFrom(3_000_000)).toBe("y");
  await files.release("a/__1", 2_900_000, signal);
  expect(await files.list(signal)).toMatchObject([{ path: "a/__1", bytes: 3_000_001 }]);
  expect(statSync(join(root, "a/__1")).blocks * 512).toBeLessThan(1_000_000);
  expect(await files.limit(signal)).toBeGreaterThan(0);
  await files.remove(signal);
  expect(existsSync(root)).toBe(false);
});

test("serves no file outside of the directory, and none that is absent", async () => {
  writeFileSync(join(directory, "secret"), "secret");
  const files = clientWith(identities.agent);
  for (const path of ["../secret", "/etc/passwd", "a/../../secret", "", "absent"])
    await expect(files.read(path, 0, signal).next()).rejects.toThrow("refused");
});

test("has no path of a name that every object inherits", async () => {
  const statusOf = (method: string, path: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const credentials = { key: identities.agent, cert: identities.agent, ca: authority, servername: "server" };
      request({ host: address, port, method, path, agent: false, ...credentials }, (response) => {
        resolve(response.resume().statusCode);
      })
        .on("error", reject)
        .end();
    });
  for (const word of inheritedNames)
    for (const [method, path] of [
      ["GET", `/${word}`],
      ["POST", `/files/${word}`],
      ["GET", `/file?path=${word}&bytes=${word}`],
    ] as const)
      expect(await statusOf(method, path), path).toBe(404);
});

test("refuses clients that are no agent of a member, and is refused as another server", async () => {
  await expect(clientWith(identities.server).list(signal)).rejects.toThrow("refused");
  await expect(clientWith(identities.outsider).list(signal)).rejects.toThrow();
  await expect(clientWith(identities.agent, "other").list(signal)).rejects.toThrow("presents");
});
