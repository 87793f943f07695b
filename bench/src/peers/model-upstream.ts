import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

// A model provider that responds immediately, complete or as a stream of many chunks, with constant usage.
interface Settings {
  readonly key: string;
  readonly cert: string;
  readonly answer: string;
  readonly stream: string;
}

const { key, cert, answer, stream } = JSON.parse(process.argv[2] ?? "") as Settings;
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(answer) };
const server = createServer({ key, cert }, (request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (part: string) => (body += part));
  request.once("end", () => {
    if (body.includes('"stream":true')) response.writeHead(200, { "content-type": "text/event-stream" }).end(stream);
    else response.writeHead(200, headers).end(answer);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.once("disconnect", () => process.exit());
