import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectH2 } from "node:http2";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { enroll, helloOf, openSession } from "@holdfast/testing/machines/test-agent.ts";
import {
  installationId,
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { inheritedNames, unknownMethods } from "@holdfast/testing/hostile/inherited-names.ts";

/** Another source than the valid agents', which dial from 127.0.0.1. */
const outsider = "127.0.0.66";
const maxHandshakes = 300;

/** The agents' port of a real controller, with a client that has no certificate. */
describe("the agents' port", () => {
  let installation: TestInstallation;
  let controller: TestController;
  const sockets: Socket[] = [];

  beforeAll(async () => {
    installation = await newInstallation();
    controller = await startController(installation, "c-1", {
      limits: {
        connections: maxHandshakes,
        unauthenticatedMs: 3_000,
        failedEnrollments: { burst: 5, perSecond: 0.01 },
      },
    });
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await waitUntil("they are closed", () => sockets.every(({ closed }) => closed));
    sockets.length = 0;
  });
  afterAll(() => installation?.close());

  async function open(localAddress = outsider): Promise<Socket> {
    const socket = connect({ host: "127.0.0.1", port: controller.fleet.port, localAddress });
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.resume();
    await once(socket, "connect");
    return socket;
  }

  async function openTls(): Promise<TLSSocket> {
    const socket = await open();
    const secured = connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    secured.on("error", () => undefined);
    await once(secured, "secureConnect");
    secured.resume();
    return secured;
  }

  /** Resolves however the close happens: a port that closes a connection may reset it. */
  function closeOf(socket: Socket): Promise<void> {
    return new Promise((resolve) => socket.once("close", () => resolve()));
  }

  async function honest(machineId: string): Promise<void> {
    const session = openSession(controller.dial(await controller.newAgent(machineId)), helloOf(machineId));
    await session.expect("welcome");
    session.close();
  }

  test("rejects inherited names as unknown methods, and serves agents", async () => {
    const session = connectH2(`https://127.0.0.1:${controller.fleet.port}`, { rejectUnauthorized: false });
    session.on("error", () => undefined);
    const statusOf = (path: string, method: string) =>
      new Promise<unknown>((resolve) => {
        const fields = { ":method": method, ":path": path, "content-type": "application/grpc", te: "trailers" };
        const stream = session.request(fields);
        stream.on("response", (headers) => resolve(headers["grpc-status"] ?? headers[":status"]));
        stream.on("error", resolve);
        stream.end();
      });
    const statuses: unknown[] = [];
    for (const word of inheritedNames)
      for (const path of [`/${word}`, `/${word}/${word}`, `/holdfast.agent.v1.AgentService/${word}`])
        statuses.push(await statusOf(path, "POST"));
    expect(new Set(statuses.map(Number))).toEqual(new Set([12]));
    for (const method of [...inheritedNames, ...unknownMethods])
      await statusOf("/holdfast.agent.v1.AgentService/Session", method);
    session.destroy();
    await honest("words");
  });

  test("serves agents while a client repeatedly stalls more handshakes than run concurrently", async () => {
    // The beginning of a TLS ClientHello without its end.
    const half = Buffer.from("1603010200010001fc0303", "hex");
    let isFinished = false;
    let stalled = 0;
    const storm = (async () => {
      while (!isFinished) {
        for (const socket of await Promise.all(Array.from({ length: 20 }, () => open()))) socket.write(half);
        stalled += 20;
        // Time: the rate of the attacker.
        await delay(50);
      }
    })();
    await waitUntil("ten rounds of handshakes are stalled", () => stalled >= 200);
    for (let n = 0; n < 3; n += 1) await honest(`through-${n}`);
    isFinished = true;
    await storm;
  });

  test("is never full of silent connections, nor of idle ones after their handshake", async () => {
    for (let n = 0; n < maxHandshakes + 100; n += 1) await open();
    await honest("while-silent");
    for (let n = 0; n < 20; n += 1) await openTls();
    await honest("while-idle");
    const last = await openTls();
    await closeOf(last);
  });

  test("reads little from a client without a certificate", async () => {
    const socket = await openTls();
    const closed = closeOf(socket);
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(Buffer.from("000000040000000000", "hex"));
    // HTTP/2 ignores frames of unknown types, however many (RFC 9113, section 5.5).
    const frame = Buffer.concat([Buffer.from("003fff770000000000", "hex"), Buffer.alloc(0x3fff)]);
    let sent = 0;
    const timer = setInterval(() => {
      socket.write(frame);
      sent += frame.byteLength;
    }, 5);
    await closed;
    clearInterval(timer);
    expect(sent).toBeLessThan(4 << 20);
  });

  test("limits failed enrollments by source, while streams continue", async () => {
    const { address, authority } = controller;
    const enrollment = {
      address,
      trustBundle: authority.trustBundle,
      installationId,
      machineId: "nobody",
      token: "guessed",
    };
    const refusals: string[] = [];
    for (let n = 0; n < 8; n += 1) await enroll(enrollment).catch((error: Error) => refusals.push(error.message));
    expect(refusals.filter((each) => each.includes("the enrollment is not valid"))).toHaveLength(5);
    expect(refusals.at(-1)).toContain("too many failed enrollments");
  });
});
