import { randomUUID } from "node:crypto";
import { connect } from "node:http2";
import { Agent, request } from "node:https";
import { type DescService, getOption } from "@bufbuild/protobuf";
import type { ServedService } from "@holdfast/common/call.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { roleScopes } from "@holdfast/controller/systems.ts";
import { createGateway } from "@holdfast/gateway/gateway.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";

/** Callers: without a credential, with a read-only role, and with every scope. */
export type Caller = "nobody" | "viewer" | "owner";

/** One request of a hostile caller. */
interface HostileRequest {
  readonly verb: string;
  readonly path: string;
  readonly text?: string;
  /** Idempotency-Key. */
  readonly key?: string | undefined;
  readonly as: Caller;
}

/** One call of binary gRPC: its body is sent as it is, including frames. */
interface HostileCall {
  /** "holdfast.v1.CatalogService/GetCatalog". */
  readonly path: string;
  readonly body: Buffer;
  readonly as: Caller;
  readonly headers?: Readonly<Record<string, string>>;
}

interface CallResponse {
  /** grpc-status; -1 when the stream was reset without one. */
  readonly status: number;
  /** Bytes of headers, messages and trailers. */
  readonly bytes: number;
}

interface HostileResponse {
  readonly status: number;
  readonly bytes: number;
  readonly json: unknown;
}

/** A gateway with every method of the services; a rejected call must invoke none of them. */
export interface HostileGateway {
  /** Number of calls that invoked their methods. */
  readonly invoked: number;
  readonly stored: ReadonlyMap<string, unknown>;
  /** Unexpected errors that were logged. */
  readonly logged: readonly unknown[];
  authorizationOf(caller: Exclude<Caller, "nobody">): string;
  send(input: HostileRequest): Promise<HostileResponse>;
  /** Status of a request with any method and headers, over h2, which sends both unchanged. */
  statusOf(
    input: Omit<HostileRequest, "key"> & { readonly headers?: Readonly<Record<string, string>> },
  ): Promise<number>;
  /** Over one connection of h2 for each caller. */
  call(input: HostileCall): Promise<CallResponse>;
  /** Sends the head of a request and a part of its body, and resets the stream. */
  cancelMidway(verb: string, path: string): Promise<void>;
  /** Sends half a frame of a gRPC call, and resets the stream. */
  cancelCall(path: string): Promise<void>;
  /** Begins a request over h2 and sends a byte of its body now and then; resolves when the gateway has ended it. */
  drip(path: string, headers: Readonly<Record<string, string>>): Promise<void>;
  close(): Promise<void>;
}

const basic = (name: string) => `Basic ${Buffer.from(`${name}:secret`).toString("base64")}`;
const authorizationOf = (caller: Exclude<Caller, "nobody">) => basic(`hfk_${caller}`);
const authorizations: Record<Caller, Record<string, string>> = {
  nobody: {},
  viewer: { authorization: authorizationOf("viewer") },
  owner: { authorization: authorizationOf("owner") },
};

/** `bodyTimeoutMs` is the time limit for a body; 30 s when absent. */
export async function startHostileGateway(
  services: readonly DescService[],
  options: { readonly bodyTimeoutMs?: number } = {},
): Promise<HostileGateway> {
  const { cert: ca, key } = await createTestCertificate();
  const stored = new Map<string, unknown>();
  const logged: unknown[] = [];
  let invoked = 0;
  const log: Log = {
    debug() {},
    info() {},
    warn() {},
    error: (_, fields) => void logged.push(fields),
    child: () => log,
  };
  const scopes = new Set(services.flatMap(({ methods }) => methods.map((method) => getOption(method, rules).scope)));
  const served = services.map((service): ServedService => {
    const names = service.methods.map(({ localName }) => localName);
    const handle = (name: string) => async () => {
      if (name === "getCatalog") return {};
      invoked += 1;
      throw new HoldfastError("NOT_POSSIBLE", "Nothing is here.");
    };
    return { service, handlers: Object.fromEntries(names.map((name) => [name, handle(name)])), checks: {} };
  });
  const server = createApiServer({ key, cert: ca, log, handler: (incoming, response) => handler(incoming, response) });
  const port = await server.listen(0, "127.0.0.1");
  const handler = createGateway({
    services: served,
    authenticator: {
      async authenticate(presented) {
        for (const name of ["viewer", "owner"] as const) {
          if (presented.authorization !== authorizationOf(name)) continue;
          const grantedScopes = name === "owner" ? scopes : roleScopes.viewer;
          return { kind: "api_key", id: `hfk_${name}`, name, organizationId: "org", scopes: grantedScopes };
        }
        throw new HoldfastError("UNAUTHENTICATED", "Who?");
      },
    },
    storedResponses: {
      find: async () => undefined,
      reserve: () => () => undefined,
      store: async (idempotency, response) => void stored.set(idempotency.key, response),
    },
    reached: async () => undefined,
    ready: () => true,
    baseUrl: `https://localhost:${port}`,
    log,
    clock: systemClock,
    newId: randomUUID,
    ...options,
  });
  const sessions = { nobody: open(), viewer: open(), owner: open() };
  const agent = new Agent({ ca, servername: "localhost", keepAlive: true, maxSockets: 4 });

  function open() {
    const session = connect(`https://localhost:${port}`, {
      ca,
      lookup: (_, __, done) => done(null, [{ address: "127.0.0.1", family: 4 }]),
    });
    session.on("error", () => undefined);
    return session;
  }

  /** The caller's session; a new one when the gateway has closed the last. */
  function sessionOf(caller: Caller) {
    if (sessions[caller].closed || sessions[caller].destroyed) sessions[caller] = open();
    return sessions[caller];
  }

  function headersOf({ text, key: idempotencyKey, as }: HostileRequest): Record<string, string> {
    return {
      ...authorizations[as],
      ...(text !== undefined && {
        "content-type": "application/json",
        "content-length": String(Buffer.byteLength(text)),
      }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
    };
  }

  return {
    stored,
    logged,
    authorizationOf,
    get invoked() {
      return invoked;
    },
    statusOf: ({ verb, path, text, as, headers }) =>
      new Promise((resolve) => {
        const json = text === undefined ? {} : { "content-type": "application/json" };
        const stream = sessionOf(as).request({
          ...authorizations[as],
          ...json,
          ...headers,
          ":method": verb,
          ":path": path,
        });
        let status = 0;
        stream.on("response", (fields) => (status = Number(fields[":status"])));
        stream.on("error", () => undefined);
        stream.once("close", () => resolve(status));
        stream.resume();
        stream.end(text);
      }),
    send: (input) =>
      new Promise((resolve, reject) => {
        const { verb: method, path, text } = input;
        // A rejection before the body is read may close the connection, so large bodies have connections of their own.
        const ownConnection = text !== undefined && text.length > 60_000;
        const options = {
          host: "127.0.0.1",
          port,
          ca,
          servername: "localhost",
          method,
          path,
          headers: headersOf(input),
        };
        const outgoing = request({ ...options, agent: ownConnection ? false : agent }, (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () => {
            const body = Buffer.concat(chunks);
            const isJson = String(response.headers["content-type"]).includes("json");
            resolve({
              status: response.statusCode ?? 0,
              bytes: body.length,
              json: isJson && body.length > 0 ? JSON.parse(body.toString("utf8")) : {},
            });
            outgoing.destroy();
          });
        });
        let hasResponse = false;
        outgoing.once("response", () => (hasResponse = true));
        outgoing.on("error", (error) => !hasResponse && reject(error));
        outgoing.end(text);
      }),
    call: ({ path, body, as, headers }) =>
      new Promise((resolve) => {
        const stream = sessionOf(as).request({
          ":method": "POST",
          ":path": `/${path}`,
          te: "trailers",
          "content-type": "application/grpc+proto",
          ...authorizations[as],
          ...headers,
        });
        let status = -1;
        let bytes = 0;
        const note = (fields: Record<string, unknown>) => {
          bytes += JSON.stringify(fields).length;
          if (fields["grpc-status"] !== undefined) status = Number(fields["grpc-status"]);
        };
        stream.on("response", note).on("trailers", note);
        stream.on("data", (chunk: Buffer) => (bytes += chunk.length));
        stream.on("error", () => undefined);
        stream.once("close", () => resolve({ status, bytes }));
        stream.end(body);
      }),
    drip: (path, headers) =>
      new Promise((resolve) => {
        const stream = sessionOf("owner").request({ ":method": "POST", ":path": path, ...headers });
        const dripping = setInterval(() => stream.writable && stream.write("\0"), 50);
        stream.on("error", () => undefined);
        stream.resume();
        stream.once("close", () => {
          clearInterval(dripping);
          resolve();
        });
      }),
    cancelMidway: (method, path) =>
      new Promise((resolve) => {
        const headers = { ...authorizations.owner, "content-type": "application/json", "content-length": "1000" };
        const options = { host: "127.0.0.1", port, ca, servername: "localhost", method, path, agent: false, headers };
        const outgoing = request(options);
        outgoing.on("error", () => undefined);
        outgoing.once("close", () => resolve());
        outgoing.write('{"a":', () => outgoing.destroy());
      }),
    cancelCall: (path) =>
      new Promise((resolve) => {
        const stream = sessionOf("owner").request({
          ":method": "POST",
          ":path": `/${path}`,
          te: "trailers",
          "content-type": "application/grpc+proto",
          ...authorizations.owner,
        });
        stream.on("error", () => undefined);
        stream.once("close", () => resolve());
        stream.resume();
        stream.write(Buffer.alloc(4), () => stream.close(8 /* CANCEL */));
      }),
    async close() {
      agent.destroy();
      for (const session of Object.values(sessions)) session.destroy();
      await server.close(1_000);
    },
  };
}
