import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { ControllerFrameSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { createFrameReader } from "../support/frame-reader.ts";
import { answerQuestions } from "../support/questions.ts";

// The least that a bidi gRPC stream can be in Node: each frame is answered by bytes that were made before, nobody reads
// more of it than its length.
interface Settings {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
  readonly port?: number;
  /** What the welcome says of controllers; itself when there are none. */
  readonly controllers?: readonly string[];
  /** What its agents are told of how long they take to come back, as a controller tells them. */
  readonly fleetReturnMs?: number;
}

const { key, cert, ca, port = 0, controllers, fleetReturnMs = 0 } = JSON.parse(process.argv[2] ?? "") as Settings;
const server = createSecureServer({
  key,
  cert,
  ca,
  requestCert: true,
  rejectUnauthorized: true,
  minVersion: "TLSv1.3",
});
const acknowledgement = framed({ case: "heartbeatAck", value: { sequence: 1n, fleetReturnMs } });
let held = 0;

server.on("stream", (stream) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" });
  let welcomed = false;
  const read = createFrameReader(() => {
    stream.write(welcomed ? acknowledgement : welcome);
    if (!welcomed) held += 1;
    welcomed = true;
  });
  stream.on("data", read);
  stream.on("error", () => stream.close());
  stream.on("close", () => welcomed && (held -= 1));
});
answerQuestions({ held: async () => held });
let welcome: Buffer = Buffer.alloc(0);
server.listen(port, "127.0.0.1", () => {
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const value = { controllerId: "raw", heartbeatIntervalMs: 4_000, controllers: [...(controllers ?? [address])] };
  welcome = framed({ case: "welcome", value });
  process.send?.({ address });
});

function framed(
  frame: NonNullable<Parameters<typeof create<typeof ControllerFrameSchema>>[1]>["frame"] & object,
): Buffer {
  const bytes = toBinary(ControllerFrameSchema, create(ControllerFrameSchema, { frame }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}
