import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from "@holdfast/proto/grpc/reflection/v1/reflection_pb.ts";
import type { GrpcChannel } from "./grpc-calls.ts";

/** Sends one request on a reflection stream; resolves with its response. */
export function reflect(
  { client }: GrpcChannel,
  question: MessageInitShape<typeof ServerReflectionRequestSchema>,
): Promise<ServerReflectionResponse["messageResponse"]> {
  const { path, requestSerialize, responseDeserialize } = grpcService(ServerReflection).serverReflectionInfo;
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata(), {
    deadline: Date.now() + 10_000,
  });
  return new Promise((resolve, reject) => {
    call.once("error", reject);
    call.once("data", (response: ServerReflectionResponse) => {
      call.end();
      resolve(response.messageResponse);
    });
    call.write(create(ServerReflectionRequestSchema, question));
  });
}

/** Full names of the services that the server lists. */
export async function listServices(channel: GrpcChannel): Promise<string[]> {
  const response = await reflect(channel, { messageRequest: { case: "listServices", value: "" } });
  return response.case === "listServicesResponse" ? response.value.service.map(({ name }) => name) : [];
}
