import type { DescService, Message, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";

/**
 * The unary methods of a service, by their local names. Errors are grpc-js's, with `code`, `details` and `metadata`.
 */
export type GrpcCalls<S extends DescService> = {
  readonly [N in keyof S["method"]]: (
    input: MessageInitShape<S["method"][N]["input"]>,
  ) => Promise<MessageShape<S["method"][N]["output"]>>;
};

/** A channel to the platform's gRPC port with one credential. */
export interface GrpcChannel {
  of<S extends DescService>(service: S): GrpcCalls<S>;
  /** Calls any method, by its descriptor. */
  call(service: DescService, localName: string, input: object): Promise<Message>;
  readonly client: Client;
  close(): void;
}

export interface GrpcTarget {
  /** `https://host:port`. */
  readonly url: string;
  readonly ca: string;
  readonly authorization: string | undefined;
}

const deadlineMs = 20_000;

export function openGrpc({ url, ca, authorization }: GrpcTarget): GrpcChannel {
  const client = new Client(new URL(url).host, credentials.createSsl(Buffer.from(ca)), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_reconnect_backoff_ms": 500,
  });

  function call(service: DescService, localName: string, input: object): Promise<Message> {
    const description = service.method[localName];
    if (description === undefined) throw new Error(`${service.typeName} has no ${localName}`);
    const method = grpcService(service)[localName];
    if (method === undefined) throw new Error(`${service.typeName} does not define ${localName}`);
    const metadata = new Metadata();
    if (authorization !== undefined) metadata.set("authorization", authorization);
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        create(description.input, { ...input }),
        metadata,
        { deadline: Date.now() + deadlineMs },
        (error: ServiceError | null, response?: Message) =>
          response === undefined ? reject(error ?? new Error("no answer")) : resolve(response),
      );
    });
  }

  function of<S extends DescService>(service: S): GrpcCalls<S>;
  function of(service: DescService): GrpcCalls<DescService> {
    const names = Object.keys(service.method);
    return Object.fromEntries(names.map((name) => [name, (input) => call(service, name, input)]));
  }

  return {
    of,
    call,
    client,
    close: () => client.close(),
  };
}

/** Status code that a call ends with; OK when it succeeds. */
export async function statusOf(call: Promise<unknown>): Promise<number> {
  try {
    await call;
    return 0;
  } catch (error) {
    if (error instanceof Error && "code" in error && typeof error.code === "number") return error.code;
    throw error;
  }
}

/** Runs calls of one service over a channel that is closed after them. */
export async function withGrpc<S extends DescService, T>(
  target: GrpcTarget,
  service: S,
  run: (rpcs: GrpcCalls<S>) => Promise<T>,
): Promise<T> {
  const channel = openGrpc(target);
  try {
    return await run(channel.of(service));
  } finally {
    channel.close();
  }
}
