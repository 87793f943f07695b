import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type IncomingHttpHeaders, request, type RequestOptions } from "node:http";
import { request as requestTls } from "node:https";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { filesRegion } from "@holdfast/common/engine-catalog/files.ts";
import { signUrl } from "@holdfast/common/objects/signed-url.ts";
import { EngineUserSchema, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { waitUntil } from "../wait-until.ts";
import type { Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { bootstrap } from "@holdfast/agent/engines/files/bootstrap.ts";
import { keyFiles } from "@holdfast/agent/engines/files/driver.ts";
import { serverSocket } from "@holdfast/agent/engines/files/layout.ts";
import { requestHealth } from "@holdfast/agent/engines/files/observe.ts";
import { serverCommand } from "@holdfast/agent/engines/files/server.ts";

/** Key of the requests of tests. */
const key = { id: "HFRWTEST", secret: "secret", region: filesRegion };

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Sent {
  readonly body?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Length that the request announces; its client disconnects after a shorter body. */
  readonly announced?: number;
  /** Port of a front, with the authority of its certificate; the server's own socket by default. */
  readonly front?: { readonly port: number; readonly ca: string };
}

/** The server for writers, run by the command of the driver on this host. */
export interface ServerUnderTest {
  readonly instance: Instance;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** The response to a request with a signed URL. */
  send(method: string, path: string, sent?: Sent): Promise<Answer>;
}

/** Starts the program in the empty directory, with the bucket `media`. */
export async function startServer(program: string, directory: string): Promise<ServerUnderTest> {
  const path = (name: string) => join(directory, name);
  for (const name of ["data", "config", "run", "tls", "software/local/bin"]) mkdirSync(path(name), { recursive: true });
  symlinkSync(program, path("software/local/bin/versitygw"));
  const users = [create(EngineUserSchema, { username: key.id, role: "readwrite", verifier: key.secret })];
  const spec = create(InstanceSpecSchema, { bucket: "media", bucketDomain: "media.test", users });
  const paths = { data: path("data"), config: path("config"), tls: path("tls"), run: path("run"), log: "" };
  const instance: Instance = { spec, paths: { ...paths, software: path("software") } };
  for (const { name, content } of keyFiles(instance)) {
    mkdirSync(dirname(join(paths.config, name)), { recursive: true });
    writeFileSync(join(paths.config, name), content);
  }
  await bootstrap(instance);
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    const { argv, env, cwd } = serverCommand(instance, "writers");
    const [command = "", ...args] = argv;
    server = spawn(command, args, { cwd, env: { ...env, PATH: process.env["PATH"] }, stdio: "ignore" });
    const responds = () =>
      requestHealth(instance, "writers", AbortSignal.timeout(5_000)).then(
        () => true,
        () => false,
      );
    await waitUntil("the server responds", responds);
  }
  await start();

  return {
    instance,
    start,

    async kill() {
      if (server === undefined) return;
      const ended = once(server, "exit");
      server.kill("SIGKILL");
      await ended;
      server = undefined;
      rmSync(serverSocket(instance, "writers"), { force: true });
    },

    async send(method, path, { body = "", host = "localhost", headers = {}, announced, front } = {}) {
      const signed = new URL(await signUrl({ method, url: `http://${host}${path}`, headers }, key, 60, new Date()));
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      const options: RequestOptions = {
        method,
        // URL would remove segments such as `..` from the path.
        path: path.split("?")[0] + signed.search,
        headers: { host, "content-length": announced ?? Buffer.byteLength(body), ...headers },
        agent: false,
      };
      const call =
        front === undefined
          ? request({ ...options, socketPath: serverSocket(instance, "writers") })
          : requestTls({ ...options, host: "127.0.0.1", port: front.port, servername: "localhost", ca: front.ca });
      call.once("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.once("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
      });
      call.once("error", reject);
      if (announced === undefined) call.end(body);
      else call.write(body, () => call.socket?.end());
      return promise;
    },
  };
}
