import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { fastify } from "fastify";
import { hopMethod } from "../support/hop-method.ts";

// A REST front in a separate process, as in most platforms: fastify with a gRPC call for each request.
interface Settings {
  readonly key: string;
  readonly cert: string;
  readonly grpcPort: number;
}

const { key, cert, grpcPort } = JSON.parse(process.argv[2] ?? "") as Settings;
const client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
const { path, requestSerialize, responseDeserialize } = hopMethod;
const app = fastify({ https: { key, cert } });
app.get("/managed-services/:id", (request, reply) => {
  const { id } = request.params as { id: string };
  const metadata = new Metadata();
  metadata.set("authorization", request.headers.authorization ?? "");
  client.makeUnaryRequest(path, requestSerialize, responseDeserialize, Buffer.from(id), metadata, (error, body) => {
    if (error !== null || body === undefined) return void reply.code(502).send();
    void reply.header("content-type", "application/json").send(body);
  });
});
const address = await app.listen({ port: 0, host: "127.0.0.1" });
process.send?.({ port: Number(new URL(address).port) });
process.once("disconnect", () => process.exit());
