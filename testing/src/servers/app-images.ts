import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inImage } from "@holdfast/image/in-image.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { rolldown } from "rolldown";
import { asRoot, testUid } from "../platform/platform-software.ts";
import { runLaunch } from "./run-launch.ts";

/** A registry to which images are pushed. */
export interface PushTarget {
  /** host:port. */
  readonly host: string;
  readonly username: string;
  readonly password: string;
  /** Certificates of its authorities, PEM. */
  readonly authorities: string;
}

/**
 * Images whose program is app-program.mjs. All of them have one layer in common, with Node, a shell, the program and,
 * if they are requested, clients of engines (app-clients.mjs).
 */
export interface AppImages {
  /**
   * Pushes an image with these variables as `repository:tag`, and resolves with its digest. `options`: of
   * `umoci config`.
   */
  push(
    target: PushTarget,
    name: { readonly repository: string; readonly tag: string },
    env: Readonly<Record<string, string>>,
    options?: readonly string[],
  ): Promise<string>;
}

const programs = ["/bin/sh", "/bin/sleep", process.execPath];

/** Makes the common layer in the directory, which belongs to the tests' user. Needs root and the node image of apps. */
export async function createAppImages(
  directory: string,
  { hasClients = false }: { readonly hasClients?: boolean } = {},
): Promise<AppImages> {
  const node = findImage(imagesDirectory(process.env), "apps");
  if (node === undefined) throw new Error("the tools are in the node image: run holdfast images make apps");
  const run = (argv: readonly string[]) =>
    runLaunch(inImage(node.root, { argv, uid: testUid, binds: [directory], asRoot }));
  const layout = join(directory, "layout");
  const tree = join(directory, "tree");
  mkdirSync(join(tree, "bin"), { recursive: true });
  for (const program of programs) await runLaunch({ command: "cp", args: [program, join(tree, "bin")] });
  const libraries = await runLaunch({ command: "ldd", args: programs });
  for (const library of new Set(libraries.match(/\/lib\S*/g)))
    await runLaunch({ command: "cp", args: ["--dereference", "--parents", library, tree] });
  await bundlePrograms(join(tree, "app"), hasClients);
  await runLaunch({ command: "chown", args: ["-R", `${testUid}:${testUid}`, directory] });
  await run(["umoci", "init", "--layout", layout]);
  await run(["umoci", "new", "--image", `${layout}:base`]);
  await run(["umoci", "insert", "--rootless", "--image", `${layout}:base`, tree, "/"]);
  const words = ["node", "/app/server.mjs"].map((word) => `--config.cmd=${word}`);
  const options = [...words, "--config.env=PATH=/bin", "--config.user=1000:1000"];
  await run(["umoci", "config", "--image", `${layout}:base`, ...options]);

  let pushed = 0;
  return {
    async push({ host, username, password, authorities }, { repository, tag }, env, options = []) {
      pushed += 1;
      const local = `v${pushed}`;
      const variables = Object.entries(env).map(([name, value]) => `--config.env=${name}=${value}`);
      await run(["umoci", "config", "--image", `${layout}:base`, "--tag", local, ...variables, ...options]);
      const digestFile = join(directory, `${local}.digest`);
      const certificates = join(directory, "authorities");
      mkdirSync(certificates, { recursive: true });
      writeFileSync(join(certificates, "ca.crt"), authorities);
      chownSync(certificates, testUid, testUid);
      await run([
        "skopeo",
        "--insecure-policy",
        "copy",
        "--quiet",
        `--digestfile=${digestFile}`,
        `--dest-cert-dir=${certificates}`,
        `--dest-creds=${username}:${password}`,
        `oci:${layout}:${local}`,
        `docker://${host}/${repository}:${tag}`,
      ]);
      return readFileSync(digestFile, "utf8");
    },
  };
}

/** Writes the programs with their packages into a directory. */
async function bundlePrograms(directory: string, hasClients: boolean): Promise<void> {
  const file = (name: string) => join(import.meta.dirname, name);
  const bundle = await rolldown({
    input: { server: file("app-program.mjs"), ...(hasClients && { clients: file("app-clients.mjs") }) },
    platform: "node",
    // Optional of their packages, and not installed.
    external: ["pg-native", "mongodb-client-encryption", "kerberos", "snappy", "socks", "gcp-metadata", "aws4"],
    logLevel: "warn",
  });
  await bundle.write({
    dir: directory,
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
  });
  await bundle.close();
}
