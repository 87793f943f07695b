import { generateKeyPairSync, randomBytes } from "node:crypto";
import { type ClientHttp2Session, connect } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type IssuerServer, startIssuerServer } from "../../issuer/src/issuer-server.ts";
import { createMetrics } from "../../issuer/src/metrics.ts";
import { AppSignInSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { inheritedNames, unknownMethods } from "@holdfast/testing/hostile/inherited-names.ts";

/** An issuer of one app whose database is unreachable: no such name of a client may get so far. */
let server: IssuerServer;
let authority: string;
let session: ClientHttp2Session;
const failures: unknown[] = [];
const rejections: unknown[] = [];
const note = (error: unknown) => void rejections.push(error);

beforeAll(async () => {
  process.on("unhandledRejection", note);
  const { cert, key } = await createTestCertificate();
  const [port = 0] = await freePorts(1);
  authority = `localhost:${port}`;
  const log: Log = {
    debug() {},
    info() {},
    warn() {},
    error: (_, fields) => void failures.push(fields),
    child: () => log,
  };
  server = await startIssuerServer({
    listen: [`127.0.0.1:${port}`],
    key,
    certificate: cert,
    hostKey: key,
    trust: cert,
    clients: createClientAddresses({ trustedProxies: [], balancers: [] }),
    rateSource: 10_000,
    reportMail() {},
    metrics: createMetrics({ apps: () => 1, isConnected: () => true }),
    clock: systemClock,
    log,
  });
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  server.setApp(
    create(AppSignInSchema, {
      appId: "app-1",
      issuerUrl: `https://${authority}`,
      host: "localhost",
      certificate: cert,
      secret: randomBytes(32).toString("base64url"),
      database: { name: "app", role: "app", password: "none", address: "127.0.0.1", port: 1, hostname: "localhost" },
      keys: [
        {
          kid: "k1",
          status: "active",
          privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
          publicJwk: JSON.stringify({ ...publicKey.export({ format: "jwk" }), kid: "k1" }),
        },
      ],
      clients: [{ clientId: "web", redirectUris: ["https://app.example/back"] }],
    }),
  );
  session = connect(`https://${authority}`, { ca: cert });
});

afterAll(async () => {
  session.destroy();
  process.off("unhandledRejection", note);
  await server.close();
});

interface Answer {
  readonly status: number;
  readonly allow: string | undefined;
}

function send(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<Answer> {
  return new Promise<Answer>((resolve, reject) => {
    const stream = session.request({ ":method": method, ":path": path, ...headers });
    let response: Answer = { status: 0, allow: undefined };
    stream.on(
      "response",
      (fields) => (response = { status: Number(fields[":status"]), allow: fields["allow"] as string }),
    );
    stream.on("error", reject);
    stream.once("close", () => resolve(response));
    stream.resume();
    stream.end(body);
  });
}

const step = "/sign-in/AAAAAAAAAAAAAAAA";
const form = { "content-type": "application/x-www-form-urlencoded" };

describe("names that every object inherits, from a client", () => {
  test("are no methods of a page: 405 with those that are", async () => {
    for (const method of [...inheritedNames, ...unknownMethods])
      for (const path of [step, `${step}/code`, "/authorize", "/token", "/style.css", "/callback/oidc"])
        expect(await send(method, path), `${method} ${path}`).toMatchObject({
          status: 405,
          allow: expect.stringMatching(/GET|POST/),
        });
  });

  test("are no pages", async () => {
    for (const word of inheritedNames)
      for (const path of [
        `/${word}`,
        `${step}/${word}`,
        `/.well-known/${word}`,
        `/account/${word}`,
        `/callback/${word}`,
      ])
        expect((await send("GET", path)).status, path).toBeOneOf([400, 404]);
  });

  test("are no parameters, headers or fields", async () => {
    for (const word of inheritedNames) {
      expect((await send("GET", `/authorize?${word}=1&client_id=${word}`)).status, word).toBe(400);
      expect(
        (await send("GET", `/callback/oidc?state=${word}&${word}=x`, { cookie: `${word}=${word}` })).status,
        word,
      ).toBe(400);
      expect(
        (await send("GET", "/jwks.json", { [word.toLowerCase()]: word, "accept-encoding": word })).status,
        word,
      ).toBe(200);
    }
    const fields = (word: string) => `${word}=${word}&grant_type=${word}&client_id=${word}`;
    const responses = await Promise.all(inheritedNames.map((word) => send("POST", "/token", form, fields(word))));
    expect(responses.map(({ status }) => status)).toEqual(inheritedNames.map(() => 401));
  });

  test("and interrupted bodies, invalid paths and unknown host names fail nothing", async () => {
    for (const path of ["/token", step]) {
      const stream = session.request({ ":method": "POST", ":path": path, ...form });
      const over = new Promise((resolve) => stream.once("close", resolve));
      stream.on("error", () => undefined);
      stream.write("grant_type=", () => stream.close(8 /* CANCEL */));
      await over;
    }
    expect((await send("GET", "/%zz")).status).toBe(404);
    expect((await send("GET", "//elsewhere.example/")).status).toBe(400);
    expect((await send("GET", "/", { ":authority": "constructor" })).status).toBe(421);
    expect((await send("POST", "/token", { "content-type": "constructor" }, "{}")).status).toBe(415);
  });

  test("fail no request, and leave no promise without a handler", () => {
    expect(failures).toEqual([]);
    expect(rejections).toEqual([]);
  });
});
