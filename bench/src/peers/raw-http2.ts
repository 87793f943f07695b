import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { answerQuestions } from "../support/questions.ts";

// The least that a bidi gRPC stream can be in Node: frames go back as they came, nobody reads them.
const { key, cert } = JSON.parse(process.argv[2] ?? "") as { key: string; cert: string };
const server = createSecureServer({ key, cert, ca: cert, requestCert: true, rejectUnauthorized: false });
server.on("stream", (stream) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" });
  stream.on("data", (bytes: Buffer) => stream.write(bytes));
  stream.on("error", () => stream.close());
});
answerQuestions({});
server.listen(0, "127.0.0.1", () => process.send?.({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` }));
