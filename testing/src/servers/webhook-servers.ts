import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestImage } from "../engines/test-image.ts";
import { programDirectory } from "../platform/platform-software.ts";
import { freePorts } from "../platform/free-ports.ts";

/** A server of Debian's that runs for a test. */
export interface ReferenceServer {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  signal(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/**
 * Debian's `webhook` at the port: `/hooks/<id>` responds with 200 to a body that is signed with the secret of this id,
 * and with an error otherwise.
 */
export function startDebianWebhook(
  image: TestImage,
  port: number,
  secrets: Readonly<Record<string, string>>,
): Promise<ReferenceServer> {
  const parameter = { source: "header", name: "X-Platform-Signature" };
  const hooks = Object.entries(secrets).map(([id, secret]) => ({
    id,
    "execute-command": "/bin/true",
    "http-methods": ["POST"],
    "response-message": "taken",
    "trigger-rule": { match: { type: "payload-hmac-sha256", secret, parameter } },
  }));
  return start(
    image,
    port,
    "hooks.json",
    () => JSON.stringify(hooks),
    (file) => ({
      argv: ["/usr/bin/webhook", "-hooks", file, "-ip", "127.0.0.1", "-port", String(port), "-verbose"],
      ready: /serving hooks on/,
    }),
  );
}

/** Debian's nginx with these locations. */
export async function startNginx(image: TestImage, locations: string): Promise<ReferenceServer> {
  const configuration = (directory: string, port: number) => `
    daemon off;
    master_process off;
    pid ${directory}/nginx.pid;
    error_log stderr notice;
    events {}
    http {
      access_log off;
      client_body_temp_path ${directory}/body;
      proxy_temp_path ${directory}/proxy;
      fastcgi_temp_path ${directory}/fastcgi;
      uwsgi_temp_path ${directory}/uwsgi;
      scgi_temp_path ${directory}/scgi;
      proxy_buffering off;
      proxy_read_timeout 120s;
      server {
        listen 127.0.0.1:${port};
        ${locations}
      }
    }`;
  const [port = 0] = await freePorts(1);
  return start(image, port, "nginx.conf", configuration, (file) => ({
    argv: ["/usr/sbin/nginx", "-e", "stderr", "-c", file],
    ready: /nginx\/\d/,
  }));
}

async function start(
  image: TestImage,
  port: number,
  name: string,
  configuration: (directory: string, port: number) => string,
  command: (file: string) => { argv: string[]; ready: RegExp },
): Promise<ReferenceServer> {
  const directory = programDirectory("holdfast-judge");
  const file = join(directory, name);
  writeFileSync(file, configuration(directory, port), { mode: 0o644 });
  const { argv, ready } = command(file);
  const running = await image.start(argv, [directory], ready);
  return {
    url: `http://127.0.0.1:${port}`,
    signal: running.signal,
    async stop() {
      running.signal("SIGCONT");
      await running.end("SIGKILL");
      await rm(directory, { recursive: true, force: true });
    },
  };
}
