import { type DescService, fromBinary, type Message, type MessageShape, toBinary } from "@bufbuild/protobuf";

/** A method in the form that @grpc/grpc-js needs, for client and server. */
export interface GrpcMethod<Request, Response> {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly requestSerialize: (value: Request) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Request;
  readonly responseSerialize: (value: Response) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/** Definition of a service for grpc-js, its methods by local name. */
export type GrpcService<S extends DescService> = {
  readonly [N in keyof S["method"]]: GrpcMethod<
    MessageShape<S["method"][N]["input"]>,
    MessageShape<S["method"][N]["output"]>
  >;
};

/** Converts a service of the protos for grpc-js, with the codec of protobuf-es. It opens no socket. */
export function grpcService<S extends DescService>(service: S): GrpcService<S>;
export function grpcService(service: DescService): GrpcService<DescService> {
  const methods = service.methods.map((method): [string, GrpcMethod<Message, Message>] => [
    method.localName,
    {
      path: `/${service.typeName}/${method.name}`,
      requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
      responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
      requestSerialize: (value) => viewOf(toBinary(method.input, value)),
      requestDeserialize: (bytes) => fromBinary(method.input, bytes),
      responseSerialize: (value) => viewOf(toBinary(method.output, value)),
      responseDeserialize: (bytes) => fromBinary(method.output, bytes),
    },
  ]);
  return Object.fromEntries(methods);
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The method of a grpc-js client that a unary call needs. */
interface UnaryClient {
  makeUnaryRequest<Q, A>(
    path: string,
    serialize: (value: Q) => Buffer,
    deserialize: (bytes: Buffer) => A,
    request: Q,
    options: { readonly deadline: number },
    onResponse: (error: Error | null, response?: A) => void,
  ): { cancel(): void };
}

/**
 * Runs a unary call. Rejects with the ServiceError of grpc-js, also after timeoutMs; if the signal aborts, cancels the
 * call at the server and rejects with the signal's reason.
 */
export function unaryCall<Q, A>(
  client: UnaryClient,
  { path, requestSerialize, responseDeserialize }: GrpcMethod<Q, A>,
  request: Q,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<A> {
  return new Promise((resolve, reject) => {
    const cancel = () => call.cancel();
    const onResponse = (error: Error | null, response?: A) => {
      signal?.removeEventListener("abort", cancel);
      if (error === null) resolve(response as A);
      else reject(signal?.aborted === true ? signal.reason : error);
    };
    const options = { deadline: Date.now() + timeoutMs };
    const call = client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, options, onResponse);
    if (signal?.aborted === true) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
  });
}
