import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { ControllerFrameSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { answerQueries } from "../support/peer-queries.ts";

// The minimum of a bidirectional gRPC stream in Node: prepared bytes answer each frame, of which only the length is
// read.
interface Settings {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
  readonly port?: number;
  /** Controllers in the welcome; this server if absent. */
  readonly controllers?: readonly string[];
  /** Announced time in which agents return, as a controller announces it. */
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
const acknowledgment = framed({ case: "heartbeatAck", value: { sequence: 1n, fleetReturnMs } });
let streams = 0;

server.on("stream", (stream) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" });
  let welcomed = false;
  const read = createFrameReader(() => {
    stream.write(welcomed ? acknowledgment : welcome);
    if (!welcomed) streams += 1;
    welcomed = true;
  });
  stream.on("data", read);
  stream.on("error", () => stream.close());
  stream.on("close", () => welcomed && (streams -= 1));
});
answerQueries({ streams: async () => streams });
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

/** Calls back for each gRPC message in a stream of bytes, by its length alone. */
function createFrameReader(onMessage: () => void): (bytes: Buffer) => void {
  let buffered: Buffer = Buffer.alloc(0);
  return (bytes) => {
    buffered = buffered.length === 0 ? bytes : Buffer.concat([buffered, bytes]);
    let at = 0;
    while (buffered.length - at >= 5) {
      const end = at + 5 + buffered.readUInt32BE(at + 1);
      if (buffered.length < end) break;
      at = end;
      onMessage();
    }
    buffered = buffered.subarray(at);
  };
}
