import { createHash, randomUUID } from "node:crypto";
import { request } from "node:https";
import type { Authenticator, Idempotency, StoredResponse, RefusedCall, ServedService } from "@holdfast/common/call.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Log, silentLog } from "@holdfast/common/log.ts";
import { createGateway } from "@holdfast/gateway/gateway.ts";
import type { GatewayDeps } from "@holdfast/gateway/gateway-deps.ts";
import type { StoredResponses } from "@holdfast/gateway/idempotency.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import { createInMemoryServices, type InMemoryState } from "../controller/in-memory-services.ts";
import { createTestCertificate } from "../controller/test-certificate.ts";

export interface TestGateway {
  readonly baseUrl: string;
  readonly port: number;
  readonly ca: string;
  readonly state: InMemoryState;
  /** Logged errors. */
  readonly logged: unknown[];
  /** Stored responses of Idempotency-Keys. */
  readonly storedResponses: ReadonlyMap<string, unknown>;
  /** Changes that were rejected before their methods ran. */
  readonly refused: RefusedCall[];
  /** Number of requests whose credentials were checked. */
  readonly authentications: number;
  isReady: boolean;
  /** Reads wait for this promise, and then return revision 999. */
  arrival: Promise<void>;
  /** Authorizations that are not valid any more. */
  readonly revoked: Set<string>;
  call(verb: string, path: string, options?: CallOptions): Promise<TestAnswer>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Body that is sent unchanged. */
  readonly text?: string | Buffer;
  readonly headers?: Record<string, string>;
  /** Value of the header Authorization; null: the request has no credential. */
  readonly authorization?: string | null;
}

export interface TestAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Tests read responses of every shape. */
  readonly json: ReturnType<typeof JSON.parse>;
}

export const owner = `Basic ${Buffer.from("hfk_owner:secret").toString("base64")}`;
export const reader = `Basic ${Buffer.from("hfk_reader:secret").toString("base64")}`;

/** Starts a gateway on a new TLS port, over services in memory. */
export async function startTestGateway(
  more: readonly ServedService[] = [],
  options: Pick<GatewayDeps, "rateLimit" | "schemaRules" | "console"> = {},
): Promise<TestGateway> {
  const { cert, key } = await createTestCertificate();
  const { state, services } = createInMemoryServices();
  const logged: unknown[] = [];
  const refused: RefusedCall[] = [];
  const log: Log = {
    debug() {},
    info() {},
    warn: (_message, fields) => void logged.push(fields),
    error: (_message, fields) => void logged.push(fields),
    child: () => log,
  };
  const server = createApiServer({
    key,
    cert,
    log: silentLog,
    handler: (incoming, response) => handler(incoming, response),
  });
  const port = await server.listen(0, "127.0.0.1");
  const baseUrl = `https://localhost:${port}`;
  const revoked = new Set<string>();
  let authentications = 0;
  const storedResponses: StoredRecords = new Map();
  const responses = createStoredResponsesInMemory(storedResponses);
  state.keep = async ({ idempotency }, response) => {
    if (idempotency !== undefined) await responses.store(idempotency, idempotency.encode(response));
  };
  const handler = createGateway({
    ...options,
    services: [...services, ...more],
    authenticator: {
      async authenticate(credentials) {
        authentications += 1;
        if (!revoked.has(credentials.authorization ?? "")) return authenticator.authenticate(credentials);
        throw new HoldfastError("UNAUTHENTICATED", "The credential was revoked.");
      },
    },
    storedResponses: responses,
    concurrencyLimits: {
      followers: { credential: 3, organization: 5, all: 100 },
      waits: { credential: 2, organization: 5, all: 100 },
    },
    refused: (call) => void refused.push(call),
    reached: async (revision) => {
      if (revision === 999n) await gateway.arrival;
      if (revision > 1_000n) throw new HoldfastError("STORE_UNAVAILABLE", "The revision is not here yet.");
    },
    ready: () => gateway.isReady,
    baseUrl,
    log,
    clock: systemClock,
    newId: randomUUID,
  });
  const gateway: TestGateway = {
    baseUrl,
    port,
    ca: cert,
    state,
    logged,
    storedResponses,
    refused,
    revoked,
    get authentications() {
      return authentications;
    },
    isReady: true,
    arrival: Promise.resolve(),
    call: (verb, path, options = {}) => callOver(port, cert, verb, path, options),
    close: () => server.close(1_000),
  };
  return gateway;
}

const authenticator: Authenticator = {
  async authenticate({ authorization }) {
    const base = { kind: "api_key", organizationId: "org-1" } as const;
    if (authorization === owner)
      return { ...base, id: "hfk_owner", name: "owner", scopes: new Set(["services:*", "platform:*"]) };
    if (authorization === reader)
      return { ...base, id: "hfk_reader", name: "reader", scopes: new Set(["services:read"]) };
    throw new HoldfastError("UNAUTHENTICATED", "The credential is missing or unknown.");
  },
};

type StoredRecords = Map<string, { bodyHash: string; answer: StoredResponse }>;

function createStoredResponsesInMemory(records: StoredRecords): StoredResponses {
  const nameOf = ({ scope, key }: Idempotency) => createHash("sha256").update(`${scope} ${key}`).digest("hex");
  return {
    async find(idempotency) {
      const record = records.get(nameOf(idempotency));
      if (record !== undefined && record.bodyHash !== idempotency.bodyHash) {
        throw new HoldfastError("IDEMPOTENCY_KEY_REUSED", "The key came with another body before.");
      }
      return record?.answer;
    },
    reserve: () => () => undefined,
    async store(idempotency, response) {
      const name = nameOf(idempotency);
      if (!records.has(name)) records.set(name, { bodyHash: idempotency.bodyHash, answer: response });
    },
  };
}

function callOver(port: number, ca: string, verb: string, path: string, options: CallOptions): Promise<TestAnswer> {
  const text = options.text ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const authorization = options.authorization === undefined ? owner : options.authorization;
  return new Promise((resolve, reject) => {
    const headers = {
      ...(authorization === null ? {} : { authorization }),
      ...(text === undefined
        ? {}
        : { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) }),
      ...options.headers,
    };
    const outgoing = request(
      { host: "127.0.0.1", port, ca, servername: "localhost", method: verb, path, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const body = Buffer.concat(chunks).toString("utf8");
          const isJson = String(response.headers["content-type"]).includes("json");
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: body,
            json: isJson && body !== "" ? JSON.parse(body) : undefined,
          });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(text);
  });
}
