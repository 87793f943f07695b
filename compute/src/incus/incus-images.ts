import { spawn } from "node:child_process";
import { createHash, type Hash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { readIfExists } from "../local/atomic-file.ts";
import type { DirectoryLock } from "../local/directory-lock.ts";
import type { IncusClient } from "./incus-client.ts";
import { IncusError, isOperationLost, ignoreExisting } from "./incus-transport.ts";
import { instanceUsers } from "./instance-config.ts";

/** Node images in Incus: imported once from the same tree that the process provider uses. */
export interface IncusImages {
  /** Fingerprint of the image of this tree; imports it first if it is missing (seconds). */
  ensure(imageRoot: string, signal: AbortSignal): Promise<string>;
  /** Removes imports of node images other than these, except imports of the last day, which a machine may be using. */
  keepOnly(ids: ReadonlySet<string>, now: number, signal: AbortSignal): Promise<void>;
}

export interface IncusImagesDeps {
  readonly incus: IncusClient;
  readonly lock: DirectoryLock;
  readonly pool: string;
  readonly log: Log;
}

const users =
  `holdfast:x:${instanceUsers.engine}:${instanceUsers.engine}::/data:/bin/sh\n` +
  `holdfast-agent:x:${instanceUsers.agent}:${instanceUsers.engine}::/var/lib/holdfast:/bin/sh\n`;
/** Alias of an import: node image id, and a digest of the users in its passwd. */
const aliasPattern = /^([a-z]+-[0-9a-f]{16})-[0-9a-f]{8}$/;
const minRetentionMs = 86_400_000;

interface IncusImage {
  readonly fingerprint: string;
  readonly aliases: readonly { readonly name: string }[] | null;
  readonly uploaded_at: string;
}

const metadata = (description: string) =>
  `architecture: x86_64\ncreation_date: 1\nproperties:\n  description: ${description}\n`;

export function createIncusImages({ incus, lock, pool, log }: IncusImagesDeps): IncusImages {
  async function find(alias: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const found = await incus.call<{ target: string }>("GET", `/1.0/images/aliases/${alias}`, signal);
      await incus.call("GET", `/1.0/images/${found.target}`, signal);
      return found.target;
    } catch (error) {
      if (error instanceof IncusError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Incus's error, such as a full pool, is a message for the user. */
  async function importImage(imageRoot: string, alias: string, signal: AbortSignal): Promise<string> {
    try {
      return await retryIfForgotten(() => importTree(imageRoot, alias, signal));
    } catch (error) {
      if (!(error instanceof IncusError)) throw error;
      throw new ComputeFailure(`Incus could not take the node image: ${error.message}`, { cause: error });
    }
  }

  async function importTree(imageRoot: string, alias: string, signal: AbortSignal): Promise<string> {
    log.info("importing node image", { image: alias });
    const directory = await mkdtemp(join(tmpdir(), "holdfast-image-"));
    try {
      await mkdir(join(directory, "rootfs", "etc"), { recursive: true });
      await writeFile(join(directory, "metadata.yaml"), metadata(alias));
      const passwd = await readFile(join(imageRoot, "etc", "passwd"), "utf8");
      await writeFile(join(directory, "rootfs", "etc", "passwd"), passwd + users, { mode: 0o644 });
      const resolvers = (await readIfExists("/etc/resolv.conf")) ?? "";
      await writeFile(join(directory, "rootfs", "etc", "resolv.conf"), resolvers, { mode: 0o644 });
      // Incus names an image by the same digest.
      const digest = createHash("sha256");
      // The result of an interrupted import counts.
      await ignoreExisting(incus.run("POST", "/1.0/images", signal, hashed(archiveOf(imageRoot, directory), digest)));
      const fingerprint = digest.digest("hex");
      await unpack(fingerprint, signal);
      await ignoreExisting(incus.call("POST", "/1.0/images/aliases", signal, { name: alias, target: fingerprint }));
      log.info("node image imported", { image: alias, fingerprint });
      return fingerprint;
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }

  /** The pool unpacks an image for its first instance; do it now rather than while a user waits. */
  async function unpack(fingerprint: string, signal: AbortSignal): Promise<void> {
    const name = `image-${fingerprint.slice(0, 16)}`;
    const devices = { root: { type: "disk", path: "/", pool } };
    const instance = { name, source: { type: "image", fingerprint }, devices };
    await ignoreExisting(incus.run("POST", "/1.0/instances", signal, instance));
    await incus.run("DELETE", `/1.0/instances/${name}`, signal);
  }

  return {
    async keepOnly(ids, now, signal) {
      const all = await incus.call<IncusImage[]>("GET", "/1.0/images?recursion=1", signal);
      for (const { fingerprint, aliases, uploaded_at } of all) {
        const names = (aliases ?? []).flatMap(({ name }) => aliasPattern.exec(name)?.[1] ?? []);
        if (names.length === 0 || names.some((id) => ids.has(id))) continue;
        if (now - Date.parse(uploaded_at) < minRetentionMs) continue;
        await incus.run("DELETE", `/1.0/images/${fingerprint}`, signal);
        log.info("node image import removed", { image: names[0], fingerprint });
      }
    },
    async ensure(imageRoot, signal) {
      const alias = `${basename(imageRoot)}-${createHash("sha256").update(users).digest("hex").slice(0, 8)}`;
      return (
        (await find(alias, signal)) ??
        lock.withLock(
          `image ${alias}`,
          signal,
          async () => (await find(alias, signal)) ?? importImage(imageRoot, alias, signal),
        )
      );
    },
  };
}

/** Repeats work whose result Incus lost; the work is idempotent. */
async function retryIfForgotten<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isOperationLost(error)) throw error;
    return work();
  }
}

async function* hashed(stream: AsyncIterable<Uint8Array>, hash: Hash): AsyncIterable<Uint8Array> {
  for await (const chunk of stream) {
    hash.update(chunk);
    yield chunk;
  }
}

/**
 * The image in the format of Incus: metadata.yaml, and the tree as `rootfs`. Of entries with the same name the last
 * counts, so that files of `overlay` replace files of the tree.
 */
async function* archiveOf(imageRoot: string, overlay: string): AsyncIterable<Uint8Array> {
  const tree = ["-C", imageRoot, "--one-file-system", "--exclude=./dev/*", "."];
  // For symbolic links, only their names are moved below `rootfs`, not their targets.
  const args = [
    "--create",
    "--numeric-owner",
    "--transform=s,^\\.,rootfs,S",
    ...tree,
    "-C",
    overlay,
    "metadata.yaml",
    "rootfs",
  ];
  const tar = spawn("tar", args, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((resolve, reject) => {
    tar.once("error", reject);
    tar.once("close", resolve);
  });
  let stderr = "";
  tar.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-1_000);
  });
  try {
    yield* tar.stdout as AsyncIterable<Uint8Array>;
    const status = await ended;
    // Status 1: a file changed while it was read. Contents never do; link counts change when the tree is copied.
    if (status !== 0 && status !== 1) throw new Error(`the node image could not be packed: ${stderr.trim()}`);
  } finally {
    tar.kill("SIGKILL");
  }
}
