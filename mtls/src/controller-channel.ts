import type { PeerCertificate } from "node:tls";
import { Client, type ClientDuplexStream, credentials } from "@grpc/grpc-js";
import { createIdleClose } from "./idle-close.ts";
import { type GrpcMethod, grpcService, unaryCall } from "./grpc-service.ts";
import {
  type AgentFrame,
  AgentService,
  type ControllerFrame,
  EnrollmentService,
  type PayloadChunk,
  type ReadPayloadRequest,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { PayloadRef } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

export const agentMethods = grpcService(AgentService);
export const enrollmentMethods = grpcService(EnrollmentService);

/** A gRPC channel to one controller, opened on first use. */
export interface ControllerChannel {
  readonly address: string;
  unary<Q, A>(method: GrpcMethod<Q, A>, request: Q, timeoutMs: number): Promise<A>;
  session(): ClientDuplexStream<AgentFrame, ControllerFrame>;
  /** Downloads a payload at the pace of the reader. */
  readPayload(request: ReadPayloadRequest, signal: AbortSignal): AsyncIterable<PayloadChunk>;
  /** Uploads a payload. It waits for the controller between chunks, so that few chunks are buffered. */
  writePayload(chunks: AsyncIterable<PayloadChunk>, signal: AbortSignal): Promise<PayloadRef>;
  close(): void;
}

export interface ChannelTrust {
  /** PEM. */
  readonly trustBundle: string;
  readonly installationId: string;
  /** The client certificate; absent during enrollment. */
  readonly client?: { readonly privateKey: string; readonly certificate: string };
}

const maxMessageBytes = 16 << 20;

export function createControllerChannel(address: string, trust: ChannelTrust): ControllerChannel {
  const { client: clientCertificate } = trust;
  const tls = credentials.createSsl(
    Buffer.from(trust.trustBundle),
    clientCertificate === undefined ? null : Buffer.from(clientCertificate.privateKey),
    clientCertificate === undefined ? null : Buffer.from(clientCertificate.certificate),
    // A controller is identified by its certificate's URI, at any address.
    { checkServerIdentity: (_host, certificate) => identityFault(certificate, trust.installationId) },
  );
  const client = new Client(address, tls, {
    "grpc.max_receive_message_length": maxMessageBytes,
    // TLS does not allow IP addresses as server names.
    "grpc.ssl_target_name_override": "controller.holdfast.internal",
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 5_000,
    "grpc.enable_channelz": 0,
    // The dialer retries, at another controller.
    "grpc.enable_retries": 0,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
    // A separate connection for each channel, so that a renewed certificate takes effect.
    "grpc.use_local_subchannel_pool": 1,
  });

  const calls = createIdleClose(() => client.close());

  return {
    address,
    unary: (method, request, timeoutMs) => unaryCall(client, method, request, timeoutMs).finally(calls.begin()),
    session() {
      const { path, requestSerialize, responseDeserialize } = agentMethods.session;
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
    },
    async *readPayload(request, signal) {
      const { path, requestSerialize, responseDeserialize } = agentMethods.readPayload;
      const end = calls.begin();
      const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request);
      const cancel = () => call.cancel();
      signal.addEventListener("abort", cancel);
      try {
        for await (const chunk of call) yield chunk as PayloadChunk;
      } finally {
        signal.removeEventListener("abort", cancel);
        call.cancel();
        end();
      }
    },
    writePayload(chunks, signal) {
      const { path, requestSerialize, responseDeserialize } = agentMethods.writePayload;
      const end = calls.begin();
      return new Promise((resolve, reject) => {
        const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, (error, ref) => {
          end();
          if (error === null && ref !== undefined) resolve(ref);
          else reject(error ?? new Error("no response"));
        });
        const send = async () => {
          for await (const chunk of chunks) {
            signal.throwIfAborted();
            await new Promise<void>((written) => {
              call.write(chunk, () => written());
            });
          }
          call.end();
        };
        send().catch((error: unknown) => {
          call.cancel();
          reject(error);
        });
      });
    },
    close: () => calls.close(),
  };
}

function identityFault(certificate: PeerCertificate, installationId: string): Error | undefined {
  const names = (certificate.subjectaltname ?? "").split(", ");
  const required = `URI:holdfast://${installationId}/controller/`;
  return names.some((name) => name.startsWith(required))
    ? undefined
    : new Error("the server is not a controller of this installation");
}
