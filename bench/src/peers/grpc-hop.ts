import { type sendUnaryData, Server, ServerCredentials, type ServerUnaryCall } from "@grpc/grpc-js";
import { hopMethod } from "../support/hop-method.ts";

// The far end of the hop: a constant response without a codec, so that only the hop is measured.
const { body } = JSON.parse(process.argv[2] ?? "") as { body: string };
const bytes = Buffer.from(body);
const server = new Server();
server.addService(
  { get: hopMethod },
  { get: (_call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) => done(null, bytes) },
);
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.send?.({ port });
});
process.once("disconnect", () => process.exit());
