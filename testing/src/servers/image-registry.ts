import { chownSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createTestCertificate } from "../controller/test-certificate.ts";
import { testImage } from "../engines/test-image.ts";
import { freePorts } from "../platform/free-ports.ts";
import { asRoot, programDirectory, testUid } from "../platform/platform-software.ts";
import type { TemporaryProcess } from "../platform/temporary-process.ts";
import { createAppImages } from "./app-images.ts";

/** A real registry of images with one user, and images whose program is app-program.mjs. */
export interface ImageRegistry {
  readonly authorities: string;
  readonly username: string;
  readonly password: string;
  /**
   * Pushes an image to the repository with these variables, and resolves with its reference by digest. `options`: of
   * `umoci config`.
   */
  push(repository: string, env: Readonly<Record<string, string>>, options?: readonly string[]): Promise<string>;
  /** Stops the registry; its images remain. */
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

/** Starts the registry. Needs root. */
export async function startImageRegistry(): Promise<ImageRegistry> {
  const image = await testImage("apps");
  if (typeof image === "string") throw new Error(image);
  const directory = programDirectory("holdfast-registry");
  const [port = 0] = await freePorts(1);
  const { cert, key } = await createTestCertificate();
  const [username, password] = ["builder", "correct-horse-battery"];
  const host = `127.0.0.1:${port}`;
  const file = (name: string, text: string) => {
    const path = join(directory, name);
    writeFileSync(path, text);
    if (asRoot) chownSync(path, testUid, testUid);
    return path;
  };
  const users = await image.run(["htpasswd", "-nbB", username, password], []);
  const config = {
    version: 0.1,
    log: { level: "info" },
    storage: { filesystem: { rootdirectory: join(directory, "images") } },
    http: { addr: host, tls: { certificate: file("server.crt", cert), key: file("server.key", key) } },
    auth: { htpasswd: { realm: "test", path: file("users", users) } },
  };
  const configFile = file("config.yml", JSON.stringify(config));
  let running: TemporaryProcess | undefined;

  async function start(): Promise<void> {
    if (typeof image === "string") throw new Error(image);
    running = await image.start(["docker-registry", "serve", configFile], [directory], /listening on/);
  }

  async function stop(): Promise<void> {
    await running?.end("SIGKILL");
    running = undefined;
  }

  const images = await createAppImages(directory);
  await start();
  let pushed = 0;
  return {
    authorities: cert,
    username,
    password,
    async push(repository, env, options) {
      pushed += 1;
      const name = { repository, tag: `v${pushed}` };
      const digest = await images.push({ host, username, password, authorities: cert }, name, env, options);
      return `${host}/${repository}@${digest}`;
    },
    stop,
    start,
    async remove() {
      await stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
