import { type DescFile, type DescService, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { Health } from "@holdfast/proto/grpc/health/v1/health_pb.ts";
import {
  ServerReflection as ReflectionV1,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "@holdfast/proto/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ReflectionV1Alpha } from "@holdfast/proto/grpc/reflection/v1alpha/reflection_pb.ts";
import type { StreamRateLimit } from "./public-rate-limit.ts";
import { type ReflectionIndex, createReflectionIndex } from "./reflection-index.ts";

type Response = Exclude<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"], undefined>;

/** Adds grpc.reflection v1 and v1alpha for the descriptors of the services, so that clients need no protos. */
export function addReflection(
  router: ConnectRouter,
  services: readonly DescService[],
  rateLimit: StreamRateLimit,
): void {
  const index = createReflectionIndex([...services, Health, ReflectionV1, ReflectionV1Alpha]);
  const encoded = new Map<DescFile, Uint8Array>();
  const bytesOf = (file: DescFile): Uint8Array => {
    const bytes = encoded.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
    encoded.set(file, bytes);
    return bytes;
  };
  async function* respond(requests: AsyncIterable<ServerReflectionRequest>, context: HandlerContext) {
    const release = rateLimit.stream(context);
    try {
      for await (const request of requests) {
        rateLimit.take(context);
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: responseTo(request, index, bytesOf),
        };
      }
    } finally {
      release();
    }
  }
  router.service(ReflectionV1, { serverReflectionInfo: respond });
  // v1alpha has the same messages under another package name.
  router.service(ReflectionV1Alpha, { serverReflectionInfo: respond as never });
}

function responseTo(
  { messageRequest }: ServerReflectionRequest,
  index: ReflectionIndex,
  bytesOf: (file: DescFile) => Uint8Array,
): Response {
  switch (messageRequest.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.services.map((name) => ({ name })) } };
    case "fileByFilename":
      return files(index.fileByName(messageRequest.value), bytesOf);
    case "fileContainingSymbol":
      return files(index.fileOfSymbol(messageRequest.value), bytesOf);
    case "fileContainingExtension":
      return files(
        index.fileOfExtension(messageRequest.value.containingType, messageRequest.value.extensionNumber),
        bytesOf,
      );
    case "allExtensionNumbersOfType": {
      const baseTypeName = messageRequest.value;
      const extensionNumber = index.extensionNumbers(baseTypeName);
      if (extensionNumber === undefined) return notFound;
      return { case: "allExtensionNumbersResponse", value: { baseTypeName, extensionNumber } };
    }
    case undefined:
      return { case: "errorResponse", value: { errorCode: Code.InvalidArgument, errorMessage: "an empty request" } };
  }
}

const notFound: Response = { case: "errorResponse", value: { errorCode: Code.NotFound, errorMessage: "not found" } };

/** The file with all its imports, so that a client needs one response. */
function files(file: DescFile | undefined, bytesOf: (file: DescFile) => Uint8Array): Response {
  if (file === undefined) return notFound;
  const all = new Set<DescFile>();
  const add = (next: DescFile) => {
    if (all.has(next)) return;
    all.add(next);
    next.dependencies.forEach(add);
  };
  add(file);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto: [...all].map(bytesOf) } };
}
