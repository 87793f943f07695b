import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

// Only Node: one constant response for every request.
interface Settings {
  readonly key: string;
  readonly cert: string;
  readonly body: string;
}

const { key, cert, body } = JSON.parse(process.argv[2] ?? "") as Settings;
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
const server = createServer({ key, cert }, (_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.once("disconnect", () => process.exit());
