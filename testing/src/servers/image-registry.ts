import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inImage } from "@holdfast/image/in-image.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { createTestCertificate } from "../controller/test-certificate.ts";
import { testImage } from "../engines/test-image.ts";
import { freePorts } from "../platform/free-ports.ts";
import { asRoot, programDirectory, testUid } from "../platform/platform-software.ts";
import type { TemporaryProcess } from "../platform/temporary-process.ts";
import { runLaunch } from "./run-launch.ts";

/** A real registry of images with one user, and images whose program is app-program.mjs. */
export interface ImageRegistry {
  readonly authorities: string;
  readonly username: string;
  readonly password: string;
  /**
   * Pushes an image to the repository with these variables, and resolves with its reference by digest. All images have
   * one layer in common, with Node, a shell and the script.
   */
  push(repository: string, env: Readonly<Record<string, string>>): Promise<string>;
  /** Stops the registry; its images remain. */
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

const script = join(import.meta.dirname, "app-program.mjs");
const programs = ["/bin/sh", "/bin/sleep", process.execPath];

/** Starts the registry. Needs root. */
export async function startImageRegistry(): Promise<ImageRegistry> {
  const [image, node] = [await testImage("apps"), findImage(imagesDirectory(process.env), "apps")];
  if (typeof image === "string") throw new Error(image);
  if (node === undefined) throw new Error("the tools are in the node image: run holdfast images make apps");
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
  const run = (argv: readonly string[]) =>
    runLaunch(inImage(node.root, { argv, uid: testUid, binds: [directory], asRoot }));
  const layout = join(directory, "layout");
  let running: TemporaryProcess | undefined;

  async function start(): Promise<void> {
    if (typeof image === "string") throw new Error(image);
    running = await image.start(["docker-registry", "serve", configFile], [directory], /listening on/);
  }

  async function stop(): Promise<void> {
    await running?.end("SIGKILL");
    running = undefined;
  }

  /** Makes the common layer: the programs with their libraries, and the script. */
  async function makeBase(): Promise<void> {
    const tree = join(directory, "tree");
    for (const name of ["bin", "app"]) mkdirSync(join(tree, name), { recursive: true });
    for (const program of programs) await runLaunch({ command: "cp", args: [program, join(tree, "bin")] });
    const libraries = await runLaunch({ command: "ldd", args: programs });
    for (const library of new Set(libraries.match(/\/lib\S*/g)))
      await runLaunch({ command: "cp", args: ["--dereference", "--parents", library, tree] });
    writeFileSync(join(tree, "app/server.mjs"), readFileSync(script));
    await runLaunch({ command: "chown", args: ["-R", `${testUid}:${testUid}`, directory] });
    await run(["umoci", "init", "--layout", layout]);
    await run(["umoci", "new", "--image", `${layout}:base`]);
    await run(["umoci", "insert", "--rootless", "--image", `${layout}:base`, tree, "/"]);
    const words = ["node", "/app/server.mjs"].map((word) => `--config.cmd=${word}`);
    const options = [...words, "--config.env=PATH=/bin", "--config.user=1000:1000"];
    await run(["umoci", "config", "--image", `${layout}:base`, ...options]);
  }

  await makeBase();
  await start();
  let pushed = 0;
  return {
    authorities: cert,
    username,
    password,
    async push(repository, env) {
      pushed += 1;
      const tag = `v${pushed}`;
      const variables = Object.entries(env).map(([name, value]) => `--config.env=${name}=${value}`);
      await run(["umoci", "config", "--image", `${layout}:base`, "--tag", tag, ...variables]);
      const digestFile = join(directory, `${tag}.digest`);
      const certificates = join(directory, "authorities");
      mkdirSync(certificates, { recursive: true });
      writeFileSync(join(certificates, "ca.crt"), cert);
      await run([
        "skopeo",
        "--insecure-policy",
        "copy",
        "--quiet",
        `--digestfile=${digestFile}`,
        `--dest-cert-dir=${certificates}`,
        `--dest-creds=${username}:${password}`,
        `oci:${layout}:${tag}`,
        `docker://${host}/${repository}:${tag}`,
      ]);
      return `${host}/${repository}@${readFileSync(digestFile, "utf8")}`;
    },
    stop,
    start,
    async remove() {
      await stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
