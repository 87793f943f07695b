import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { AgentService, ControllerFrameSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { answerQueries } from "../support/peer-queries.ts";

// The same service on connect-node: reads each frame and acknowledges it.
const { key, cert, ca } = JSON.parse(process.argv[2] ?? "") as { key: string; cert: string; ca: string };
const handler = connectNodeAdapter({
  routes: (router) =>
    router.service(AgentService, {
      async *session(frames) {
        for await (const { sequence, frame } of frames) {
          if (frame.case === "hello") yield create(ControllerFrameSchema, { frame: { case: "welcome", value: {} } });
          else yield create(ControllerFrameSchema, { frame: { case: "heartbeatAck", value: { sequence } } });
        }
      },
    }),
});
const server = createSecureServer(
  { key, cert, ca, requestCert: true, rejectUnauthorized: true, minVersion: "TLSv1.3" },
  handler,
);
answerQueries({});
server.listen(0, "127.0.0.1", () => process.send?.({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` }));
