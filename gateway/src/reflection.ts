import { type DescFile, type DescMessage, type DescService, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
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

/** Files of descriptors by the names that reflection requests contain. */
interface ReflectionIndex {
  readonly services: readonly string[];
  fileByName(name: string): DescFile | undefined;
  fileOfSymbol(symbol: string): DescFile | undefined;
  fileOfExtension(extendee: string, number: number): DescFile | undefined;
  /** Undefined if there is no such message. */
  extensionNumbers(extendee: string): number[] | undefined;
}

function createReflectionIndex(services: readonly DescService[]): ReflectionIndex {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();

  function addFile(file: DescFile): void {
    const name = nameOf(file);
    if (files.has(name)) return;
    files.set(name, file);
    for (const message of file.messages) addMessage(message, file);
    for (const description of file.enums) symbols.set(description.typeName, file);
    for (const service of file.services) {
      symbols.set(service.typeName, file);
      for (const method of service.methods) symbols.set(`${service.typeName}.${method.name}`, file);
    }
    for (const extension of file.extensions) addExtension(extension, file);
    file.dependencies.forEach(addFile);
  }

  function addMessage(message: DescMessage, file: DescFile): void {
    symbols.set(message.typeName, file);
    for (const field of message.fields) symbols.set(`${message.typeName}.${field.name}`, file);
    for (const description of message.nestedEnums) symbols.set(description.typeName, file);
    for (const extension of message.nestedExtensions) addExtension(extension, file);
    for (const nested of message.nestedMessages) addMessage(nested, file);
  }

  function addExtension(extension: DescFile["extensions"][number], file: DescFile): void {
    symbols.set(extension.typeName, file);
    const numbers = extensions.get(extension.extendee.typeName) ?? new Map<number, DescFile>();
    extensions.set(extension.extendee.typeName, numbers.set(extension.number, file));
  }

  for (const service of services) addFile(service.file);
  return {
    services: services.map((service) => service.typeName).sort(),
    fileByName: (name) => files.get(name),
    fileOfSymbol: (symbol) => symbols.get(symbol),
    fileOfExtension: (extendee, number) => extensions.get(extendee)?.get(number),
    extensionNumbers(extendee) {
      const numbers = extensions.get(extendee);
      return numbers === undefined && !symbols.has(extendee) ? undefined : [...(numbers?.keys() ?? [])];
    },
  };
}

/** The import path, such as `holdfast/v1/task.proto`; `DescFile.name` lacks the extension. */
function nameOf(file: DescFile): string {
  return file.proto.name;
}
