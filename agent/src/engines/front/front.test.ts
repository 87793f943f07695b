import { chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestCertificate, type TestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { startTemporaryProcess, type TemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { applyAllowLists, applyCertificate, applyNextFronts, endForbiddenSessions } from "./front-commands.ts";
import { frontFiles } from "./front-config.ts";
import { type Front, frontCompanion, missingFront } from "./front.ts";

/** The image with Valkey has HAProxy too. */
const hasFront = hasEngine("valkey", "8.1");
const everyone = ["127.0.0.0/8"];
const nobody = ["10.0.0.0/8"];

describe.skipIf(!hasFront)("a front of HAProxy that terminates TLS at one port and passes it on at another", () => {
  const directory = !hasFront ? "" : programDirectory("holdfast-front");
  const under = (name: string) => join(directory, name);
  const servers: Server[] = [];
  let [terminatePort, passPort, nextPort, otherPort] = [0, 0, 0, 0];
  let own: TestCertificate;
  let ofEngine: TestCertificate;
  let haproxy: TemporaryProcess | undefined;

  /** The front under test with these lists. */
  const frontWith = (
    terminate: readonly string[],
    pass: readonly string[],
    {
      forwarded = everyone,
      next = "own",
    }: { readonly forwarded?: readonly string[]; readonly next?: "own" | "other" } = {},
  ): Front<"plain" | "tls" | "next"> => ({
    nodeId: "node",
    program: "/usr/sbin/haproxy",
    configDirectory: under("config"),
    commandSocket: under("run/front.sock"),
    certificateFile: under("tls/server.crt"),
    keyFile: under("tls/server.key"),
    vcpu: 1,
    connectionLimit: 100,
    idleComment: "None.",
    listeners: [
      {
        name: "terminating",
        mode: "terminate",
        addresses: [{ address: "127.0.0.1", port: terminatePort }],
        allows: { by: "network", file: "terminating.lst", cidrs: terminate },
        backend: "plain",
      },
      {
        name: "passing",
        mode: "pass",
        addresses: [{ address: "127.0.0.1", port: passPort }],
        allows: { by: "network", file: "passing.lst", cidrs: pass },
        backend: "tls",
      },
      {
        name: "forwarding",
        mode: "pass",
        addresses: [{ address: "127.0.0.1", port: nextPort }],
        allows: { by: "network", file: "forwarding.lst", cidrs: everyone },
        backend: "next",
      },
      {
        name: "forwarded",
        mode: "pass",
        addresses: [],
        forwardedSocket: under("run/forwarded.sock"),
        allows: { by: "network", file: "forwarded.lst", cidrs: forwarded },
        backend: "plain",
      },
      {
        name: "others",
        mode: "pass",
        addresses: [{ address: "127.0.0.1", port: otherPort }],
        takesClientAddress: true,
        allows: { by: "network", file: "others.lst", cidrs: ["127.0.0.9"] },
        backend: "plain",
      },
    ],
    backends: {
      plain: { socket: under("run/plain.sock") },
      tls: { socket: under("run/tls.sock") },
      next: {
        fronts: [
          { name: "own", at: { socket: under("run/forwarded.sock") }, isInUse: next === "own" },
          {
            name: "other",
            at: { address: { address: "127.0.0.1", port: otherPort }, sourceAddress: "127.0.0.9" },
            isInUse: next !== "own",
          },
        ],
      },
    },
  });

  async function writeCertificate(): Promise<TestCertificate> {
    const certificate = await createTestCertificate();
    writeFileSync(under("tls/server.crt"), certificate.cert);
    writeFileSync(under("tls/server.key"), certificate.key);
    return certificate;
  }

  /** A session that got the backend's greeting from a server with this certificate. */
  async function open(port: number, { cert }: TestCertificate): Promise<{ socket: TLSSocket; greeting: string }> {
    const socket = connectTls({ host: "127.0.0.1", port, servername: "localhost", ca: cert });
    const greeting = await new Promise<string>((resolve, reject) => {
      socket.setEncoding("utf8").once("data", resolve);
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("closed")));
    });
    socket.on("error", () => undefined);
    return { socket, greeting };
  }

  beforeAll(async () => {
    [terminatePort = 0, passPort = 0, nextPort = 0, otherPort = 0] = await freePorts(4);
    for (const name of ["config", "run", "tls"]) mkdirSync(under(name));
    own = await writeCertificate();
    ofEngine = await createTestCertificate();
    servers.push(
      createServer((socket) => socket.on("error", () => undefined).write("plain\n")).listen(under("run/plain.sock")),
      createTlsServer(ofEngine, (socket) => socket.on("error", () => undefined).write("tls\n")).listen(
        under("run/tls.sock"),
      ),
    );
    const front = frontWith(everyone, everyone);
    for (const { name, content } of frontFiles(front)) writeFileSync(join(front.configDirectory, name), content);
    // HAProxy prints nothing as long as all is well.
    const argv = ["/bin/sh", "-c", 'echo starting; exec "$@"', "sh", ...frontCompanion(front).command.argv];
    for (const path of ["config", "run", "tls", "run/plain.sock", "run/tls.sock", "tls/server.crt", "tls/server.key"])
      if (asRoot) chownSync(under(path), testUid, testUid);
    const launch = testProgram("valkey", "8.1").launch({ argv, uid: testUid, binds: [directory], asRoot });
    haproxy = await startTemporaryProcess(launch, /starting/);
    await waitUntil("the front answers", () =>
      endForbiddenSessions(front, AbortSignal.timeout(5_000)).then(() => true),
    );
  });
  afterAll(async () => {
    await haproxy?.end("SIGKILL");
    for (const server of servers) server.close();
    rmSync(directory, { recursive: true, force: true });
  });

  test("the engine gets plain bytes of the one, and has its own handshake with clients of the other", async () => {
    const sessions = [await open(terminatePort, own), await open(passPort, ofEngine)];
    expect(sessions.map(({ greeting }) => greeting)).toEqual(["plain\n", "tls\n"]);
    for (const { socket } of sessions) socket.destroy();
  });

  test("a list of one listener ends its sessions, and sessions of the other listener continue", async () => {
    const [terminated, passed] = [await open(terminatePort, own), await open(passPort, ofEngine)];
    const ended = new Promise((resolve) => passed.socket.once("close", resolve));
    await applyAllowLists(frontWith(everyone, nobody), AbortSignal.timeout(30_000));
    await ended;
    await expect(open(passPort, ofEngine)).rejects.toThrow();
    expect(terminated.socket.closed).toBe(false);
    expect((await open(terminatePort, own)).greeting).toBe("plain\n");
    await applyAllowLists(frontWith(nobody, everyone), AbortSignal.timeout(30_000));
    await expect(open(terminatePort, own)).rejects.toThrow();
    expect((await open(passPort, ofEngine)).greeting).toBe("tls\n");
    await applyAllowLists(frontWith(everyone, everyone), AbortSignal.timeout(30_000));
  });

  /** A session without TLS, with the backend's greeting. */
  async function openPlain(port: number, localAddress = "127.0.0.1"): Promise<{ socket: Socket; greeting: string }> {
    const socket = connect({ host: "127.0.0.1", port, localAddress });
    const greeting = await new Promise<string>((resolve, reject) => {
      socket.setEncoding("utf8").once("data", resolve);
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("closed")));
    });
    socket.on("error", () => undefined);
    return { socket, greeting };
  }

  test("the next front admits a forwarded client by its own address", async () => {
    const signal = AbortSignal.timeout(30_000);
    await applyAllowLists(frontWith(everyone, everyone, { forwarded: ["127.0.0.2"] }), signal);
    await expect(openPlain(nextPort, "127.0.0.1")).rejects.toThrow();
    expect((await openPlain(nextPort, "127.0.0.2")).greeting).toBe("plain\n");
    await applyAllowLists(frontWith(everyone, everyone), signal);
    expect((await openPlain(nextPort, "127.0.0.1")).greeting).toBe("plain\n");
  });

  test("clients of a front that is no longer in use end, and later ones reach the one in use if it admits this front", async () => {
    const signal = AbortSignal.timeout(30_000);
    const { socket } = await openPlain(nextPort);
    await applyNextFronts(frontWith(everyone, everyone), signal);
    expect(socket.closed).toBe(false);
    const ended = new Promise((resolve) => socket.once("close", resolve));
    await applyNextFronts(frontWith(everyone, everyone, { next: "other" }), signal);
    await ended;
    expect((await openPlain(nextPort)).greeting).toBe("plain\n");
    await expect(openPlain(otherPort)).rejects.toThrow();
    await applyNextFronts(frontWith(everyone, everyone), signal);
    expect((await openPlain(nextPort)).greeting).toBe("plain\n");
  });

  test("later sessions use a renewed certificate, and open sessions continue", async () => {
    const before = await open(terminatePort, own);
    const renewed = await writeCertificate();
    await applyCertificate(frontWith(everyone, everyone), AbortSignal.timeout(30_000));
    expect((await open(terminatePort, renewed)).greeting).toBe("plain\n");
    await expect(open(terminatePort, own)).rejects.toThrow(/certificate/);
    expect(before.socket.closed).toBe(false);
  });
});

test("a machine without HAProxy has no front, and the reason names it", async () => {
  const absent = () => Promise.reject(new Error("no such file"));
  expect(await missingFront(absent, "/usr/sbin/haproxy", AbortSignal.timeout(1_000))).toBe(
    "the allow-list cannot be enforced here without HAProxy: no such file",
  );
});
