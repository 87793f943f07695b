import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { inImage } from "@holdfast/image/in-image.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
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
 * Images whose program is app-program.mjs. All of them have one layer in common, with Node, a shell, the script and a
 * client of PostgreSQL.
 */
export interface AppImages {
  /** Pushes an image with these variables as `repository:tag`, and resolves with its digest. */
  push(
    target: PushTarget,
    name: { readonly repository: string; readonly tag: string },
    env: Readonly<Record<string, string>>,
  ): Promise<string>;
}

const script = join(import.meta.dirname, "app-program.mjs");
const programs = ["/bin/sh", "/bin/sleep", process.execPath];

/** Makes the common layer in the directory, which belongs to the tests' user. Needs root and the node image of apps. */
export async function createAppImages(directory: string): Promise<AppImages> {
  const node = findImage(imagesDirectory(process.env), "apps");
  if (node === undefined) throw new Error("the tools are in the node image: run holdfast images make apps");
  const run = (argv: readonly string[]) =>
    runLaunch(inImage(node.root, { argv, uid: testUid, binds: [directory], asRoot }));
  const layout = join(directory, "layout");
  const tree = join(directory, "tree");
  for (const name of ["bin", "app"]) mkdirSync(join(tree, name), { recursive: true });
  for (const program of programs) await runLaunch({ command: "cp", args: [program, join(tree, "bin")] });
  const libraries = await runLaunch({ command: "ldd", args: programs });
  for (const library of new Set(libraries.match(/\/lib\S*/g)))
    await runLaunch({ command: "cp", args: ["--dereference", "--parents", library, tree] });
  writeFileSync(join(tree, "app/server.mjs"), readFileSync(script));
  copyPackage("pg", join(import.meta.dirname, "../../node_modules"), join(tree, "app/node_modules"));
  await runLaunch({ command: "chown", args: ["-R", `${testUid}:${testUid}`, directory] });
  await run(["umoci", "init", "--layout", layout]);
  await run(["umoci", "new", "--image", `${layout}:base`]);
  await run(["umoci", "insert", "--rootless", "--image", `${layout}:base`, tree, "/"]);
  const words = ["node", "/app/server.mjs"].map((word) => `--config.cmd=${word}`);
  const options = [...words, "--config.env=PATH=/bin", "--config.user=1000:1000"];
  await run(["umoci", "config", "--image", `${layout}:base`, ...options]);

  let pushed = 0;
  return {
    async push({ host, username, password, authorities }, { repository, tag }, env) {
      pushed += 1;
      const local = `v${pushed}`;
      const variables = Object.entries(env).map(([name, value]) => `--config.env=${name}=${value}`);
      await run(["umoci", "config", "--image", `${layout}:base`, "--tag", local, ...variables]);
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

/** Copies a package and its dependencies into a flat directory of packages. */
function copyPackage(name: string, modules: string, target: string): void {
  const source = realpathSync(join(modules, name));
  if (existsSync(join(target, name))) return;
  cpSync(source, join(target, name), { recursive: true, dereference: true });
  const { dependencies = {} } = JSON.parse(readFileSync(join(source, "package.json"), "utf8")) as {
    readonly dependencies?: Readonly<Record<string, string>>;
  };
  for (const each of Object.keys(dependencies)) copyPackage(each, dirname(source), target);
}
