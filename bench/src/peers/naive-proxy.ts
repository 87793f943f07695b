import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";

// The minimum of a model proxy: forwards the body with another key, and the response back, without accounting.
interface Settings {
  readonly upstream: string;
  readonly ca: string;
}

const { upstream, ca } = JSON.parse(process.argv[2] ?? "") as Settings;
const pool = new Pool(upstream, { connect: { ca }, connections: 64, allowH2: false });
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.once("end", () => {
    pool
      .request({
        method: "POST",
        path: request.url ?? "/",
        headers: { authorization: "Bearer k", "content-type": "application/json" },
        body: Buffer.concat(chunks),
      })
      .then(
        ({ statusCode, headers, body }) => {
          const type = headers["content-type"];
          response.writeHead(statusCode, { "content-type": typeof type === "string" ? type : "text/plain" });
          body.pipe(response);
        },
        () => response.writeHead(502).end(),
      );
  });
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.once("disconnect", () => process.exit());
