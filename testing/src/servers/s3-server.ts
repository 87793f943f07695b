import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { inImage } from "@holdfast/image/in-image.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { createTestCertificate } from "../controller/test-certificate.ts";
import { freePorts } from "../platform/free-ports.ts";
import { asRoot, programDirectory, testUid } from "../platform/platform-software.ts";
import { startTemporaryProcess, type TemporaryProcess } from "../platform/temporary-process.ts";
import { waitUntil } from "../wait-until.ts";
import type { S3Program } from "./s3-program.ts";

/** A real S3 server with one bucket, served as localhost with a certificate of a separate authority. */
export interface S3Server {
  /** Value of HOLDFAST_OBJECTS, with this prefix of all keys. */
  url(prefix: string): string;
  /** File with the server's credential, the value of HOLDFAST_OBJECTS_KEY_FILE. */
  readonly keyFile: string;
  /** File with the server's authority, the value of HOLDFAST_OBJECTS_CA. */
  readonly caFile: string;
  /** Kills the server; its data remain. */
  kill(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

const bucket = "backups";

/** Resolves when the server serves. */
export async function startS3Server({ name, title, path: program }: S3Program): Promise<S3Server> {
  if (program === undefined) throw new Error(title);
  const image = findImage(imagesDirectory(process.env), "trixie");
  if (image === undefined) throw new Error("the S3 server runs in the node image: run holdfast images make");
  const directory = programDirectory("holdfast-s3");
  const [port = 0] = await freePorts(1);
  const [id, secret] = [randomBytes(8).toString("hex"), randomBytes(16).toString("hex")];
  const { cert, key } = await createTestCertificate(Date.now() + 24 * 3_600_000);
  const file = (name: string, text: string) => {
    const path = join(directory, name);
    writeFileSync(path, text);
    if (asRoot) chownSync(path, testUid, testUid);
    return path;
  };
  // MinIO expects these names.
  const [caFile, tlsKey] = [file("public.crt", cert), file("private.key", key)];
  const keyFile = file("key.json", JSON.stringify({ id, secret }));
  const data = join(directory, "data");
  mkdirSync(join(data, bucket), { recursive: true });
  for (const path of [data, join(data, bucket)]) {
    if (asRoot) chownSync(path, testUid, testUid);
    chmodSync(path, 0o700);
  }
  const command = {
    versitygw: {
      env: [`ROOT_ACCESS_KEY=${id}`, `ROOT_SECRET_KEY=${secret}`],
      words: ["--port", `:${port}`, "--cert", caFile, "--key", tlsKey, "--quiet", "posix", data],
    },
    minio: {
      env: [`MINIO_ROOT_USER=${id}`, `MINIO_ROOT_PASSWORD=${secret}`, "MINIO_BROWSER=off", "MINIO_UPDATE=off"],
      words: ["server", "--address", `:${port}`, "--certs-dir", directory, data],
    },
  }[name];
  const argv = ["/usr/bin/env", ...command.env, program, ...command.words];
  const binds = [directory, dirname(program)];
  let running: TemporaryProcess | undefined;

  async function start(): Promise<void> {
    const launch = inImage(image?.root ?? "", { argv, uid: testUid, binds, asRoot });
    running = await startTemporaryProcess(launch, /./);
    await waitUntil("the S3 server listens", () => isListening(port));
  }

  async function kill(): Promise<void> {
    await running?.end("SIGKILL");
    running = undefined;
  }

  await start();
  return {
    url: (prefix) => `s3://${bucket}/${prefix}?endpoint=https://localhost:${port}&region=us-east-1`,
    keyFile,
    caFile,
    kill,
    start,
    async remove() {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
