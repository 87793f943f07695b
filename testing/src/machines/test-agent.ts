import { webcrypto } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { type GrpcMethod, grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type AgentFrame,
  AgentFrameSchema,
  AgentService,
  type CertificateResponse,
  type ControllerFrame,
  EnrollmentService,
  EnrollRequestSchema,
  type PayloadChunk,
  PayloadChunkSchema,
  ReadPayloadRequestSchema,
  RenewCertificateRequestSchema,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { PayloadRef } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { newCertificateRequest } from "../controller/certificate-request.ts";

const agentRpcs = grpcService(AgentService);
const enrollmentRpcs = grpcService(EnrollmentService);

/** Credentials of an enrolled machine. */
export interface AgentIdentity {
  readonly key: string;
  readonly chain: string;
  readonly trustBundle: string;
}

export interface DialOptions {
  readonly address: string;
  readonly trustBundle: string;
  readonly identity?: AgentIdentity;
}

/** A grpc-js client with real certificates; the other end of the controller's agent listener. */
export function dial({ address, trustBundle, identity }: DialOptions): Client {
  const keyAndChain = identity === undefined ? [] : [Buffer.from(identity.key), Buffer.from(identity.chain)];
  const tls = credentials.createSsl(Buffer.from(trustBundle), keyAndChain[0] ?? null, keyAndChain[1] ?? null);
  // A new channel for each client, as each agent has its own.
  return new Client(address, tls, {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.ssl_target_name_override": "localhost",
    "grpc.max_receive_message_length": 8 << 20,
  });
}

function callUnary<Request, Response>(
  client: Client,
  method: GrpcMethod<Request, Response>,
  request: Request,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      new Metadata(),
      { deadline: Date.now() + 60_000 },
      (error: ServiceError | null, response?: Response) =>
        response === undefined ? reject(error ?? new Error("no answer")) : resolve(response),
    );
  });
}

/** Exchanges a token for a certificate, over a connection without one. */
export async function enroll(
  options: { address: string; trustBundle: string; installationId: string; machineId: string; token: string },
  keys?: webcrypto.CryptoKeyPair,
): Promise<AgentIdentity> {
  const { machineId, installationId, token } = options;
  const keyPair = keys ?? (await newKeys());
  const request = create(EnrollRequestSchema, {
    machineId,
    installationId,
    token,
    certificateRequest: await newCertificateRequest(keyPair, "ignored"),
  });
  const client = dial(options);
  try {
    return await identityOf(keyPair, await callUnary(client, enrollmentRpcs.enroll, request));
  } finally {
    client.close();
  }
}

export async function renew(address: string, identity: AgentIdentity): Promise<AgentIdentity> {
  const keys = await newKeys();
  const request = create(RenewCertificateRequestSchema, { certificateRequest: await newCertificateRequest(keys, "x") });
  const client = dial({ address, trustBundle: identity.trustBundle, identity });
  try {
    return await identityOf(keys, await callUnary(client, agentRpcs.renewCertificate, request));
  } finally {
    client.close();
  }
}

export function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  return webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]) as Promise<webcrypto.CryptoKeyPair>;
}

async function identityOf(keys: webcrypto.CryptoKeyPair, response: CertificateResponse): Promise<AgentIdentity> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  return {
    key: pem("PRIVATE KEY", der),
    chain: response.chain.map((each) => pem("CERTIFICATE", each)).join(""),
    trustBundle: response.trustBundle,
  };
}

function pem(label: string, der: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${Buffer.from(der).toString("base64")}\n-----END ${label}-----\n`;
}

type Kind = NonNullable<ControllerFrame["frame"]["case"]>;
type ValueOf<K extends Kind> = Extract<ControllerFrame["frame"], { case: K }>["value"];

/** An agent's end of a session; it sends the frames that the test passes. */
export interface TestSession {
  readonly call: ClientDuplexStream<AgentFrame, ControllerFrame>;
  readonly received: ControllerFrame[];
  send(frame: MessageInitShape<typeof AgentFrameSchema>["frame"]): void;
  /** Sends a heartbeat every 300 ms until the stream ends. */
  sendHeartbeats(): void;
  /** Resolves with the first frame of a kind, already received or future. */
  expect<K extends Kind>(kind: K, matches?: (value: ValueOf<K>) => boolean): Promise<ValueOf<K>>;
  /** The status that the stream ended with. */
  readonly ended: Promise<{ code: number; details: string }>;
  close(): void;
}

export function openSession(client: Client, hello?: MessageInitShape<typeof AgentFrameSchema>["frame"]): TestSession {
  const { path, requestSerialize, responseDeserialize } = agentRpcs.session;
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  const received: ControllerFrame[] = [];
  const news = new EventEmitter().setMaxListeners(0);
  let sequence = 0n;
  const ended = new Promise<{ code: number; details: string }>((resolve) => {
    call.on("status", ({ code, details }) => resolve({ code, details }));
  });
  call.on("error", () => undefined);
  call.on("data", (frame: ControllerFrame) => {
    received.push(frame);
    news.emit("frame", frame);
  });
  const session: TestSession = {
    call,
    received,
    ended,
    send(frame) {
      sequence += 1n;
      call.write(create(AgentFrameSchema, { sequence, frame: frame ?? { case: undefined } }));
    },
    sendHeartbeats() {
      const timer = setInterval(() => session.send({ case: "heartbeat", value: {} }), 300);
      void ended.then(() => clearInterval(timer));
    },
    expect<K extends Kind>(kind: K, matches: (value: ValueOf<K>) => boolean = () => true) {
      return new Promise<ValueOf<K>>((resolve, reject) => {
        const check = ({ frame }: ControllerFrame) => {
          const value = frame.value as ValueOf<K>;
          if (frame.case !== kind || !matches(value)) return false;
          news.off("frame", check);
          (resolve as (found: ValueOf<K>) => void)(value);
          return true;
        };
        if (received.some(check)) return;
        news.on("frame", check);
        void ended.then(({ code, details }) => reject(new Error(`the stream ended: ${code} ${details}, no ${kind}`)));
      });
    },
    close: () => call.cancel(),
  };
  if (hello !== undefined) session.send(hello);
  return session;
}

export function helloOf(machineId: string, openTasks: string[] = []) {
  return { case: "hello" as const, value: { machineId, agentVersion: "test", bootId: "boot-1", openTasks } };
}

export function readPayload(client: Client, id: string): ClientReadableStream<PayloadChunk> {
  const { path, requestSerialize, responseDeserialize } = agentRpcs.readPayload;
  return client.makeServerStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
    create(ReadPayloadRequestSchema, { id }),
  );
}

/** Sends the blocks; when they fail the call is canceled. */
export async function writePayload(client: Client, blocks: AsyncIterable<Uint8Array>): Promise<PayloadRef> {
  const { path, requestSerialize, responseDeserialize } = agentRpcs.writePayload;
  const response = Promise.withResolvers<PayloadRef>();
  const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, (error, ref?: PayloadRef) =>
    ref === undefined ? response.reject(error ?? new Error("no answer")) : response.resolve(ref),
  );
  try {
    for await (const data of blocks) {
      // A rejected call drains no more.
      if (!call.write(create(PayloadChunkSchema, { data })))
        await Promise.race([once(call, "drain"), response.promise]);
    }
  } catch (error) {
    call.cancel();
    await response.promise.catch(() => undefined);
    throw error;
  }
  call.end();
  return response.promise;
}
