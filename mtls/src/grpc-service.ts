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
