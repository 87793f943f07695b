import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import { createTestCertificate } from "../controller/test-certificate.ts";
import { testImage } from "../engines/test-image.ts";
import { freePorts } from "../platform/free-ports.ts";
import { waitUntil } from "../wait-until.ts";
import { tinyGguf } from "./tiny-gguf.ts";

/** Debian's `llama-server` behind TLS, with a small model of seeded random weights. */
export interface LlamaServer {
  /** Base URL for organizations' configuration, and its authority. */
  readonly url: string;
  readonly authority: string;
  readonly apiKey: string;
  close(): Promise<void>;
}

const apiKey = "sk-of-the-model";

/** Or the reason why this host cannot have it. */
export async function startLlamaServer(): Promise<LlamaServer | string> {
  const image = await testImage("models");
  if (typeof image === "string") return image;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-llama-"));
  // The server runs as another user inside of the image.
  chmodSync(directory, 0o755);
  const model = join(directory, "smoke.gguf");
  writeFileSync(model, tinyGguf(7), { mode: 0o644 });
  const [port = 0] = await freePorts(1);
  const listen = ["--host", "127.0.0.1", "--port", String(port), "--api-key", apiKey];
  const server = await image.start(
    ["/usr/bin/llama-server", "--model", model, ...listen, "--embeddings", "--pooling", "mean", "--no-ui"],
    [directory],
    /load_model/,
  );
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitUntil("llama-server serves", isUp, { withinMs: 60_000 });
  const { cert, key } = await createTestCertificate();
  const front = createServer({ cert, key }, (socket) => {
    const behind = connect(port, "127.0.0.1");
    socket.on("error", () => behind.destroy());
    behind.on("error", () => socket.destroy());
    socket.pipe(behind).pipe(socket);
  });
  front.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${(front.address() as AddressInfo).port}/v1`,
    authority: cert,
    apiKey,
    async close() {
      front.close();
      await server.end("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
