import { existsSync } from "node:fs";
import { join } from "node:path";
import type { GoProgram } from "@holdfast/image/artifact.ts";
import { ensureGoProgram, goProgramDirectory } from "@holdfast/image/go-program.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { versitygw } from "@holdfast/image/recipes/files.ts";
import { claimWork } from "../controller/claim.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";
import { waitUntil } from "../wait-until.ts";

/** Third-party S3 servers, as Go modules. */
const modules = {
  versitygw,
  // The last release of its community edition, which is published only as a module.
  minio: {
    module: "github.com/minio/minio",
    version: "v0.0.0-20260212201848-7aac2a2c5b7c",
    sum: "h1:/qdoYujxF5MBLDMVLeiYJ/7fBa1HikX39Dvzb9Ji8pA=",
    package: "github.com/minio/minio",
  },
} satisfies Record<string, GoProgram>;
const buildMs = 1_800_000;

/** An S3 server's program, or the reason why this host cannot have it. */
export interface S3Program {
  readonly name: keyof typeof modules;
  /** Title, with the reason why its tests are skipped. */
  readonly title: string;
  /** Path of the program; undefined where it cannot be built. */
  readonly path: string | undefined;
}

/** The available S3 servers: the one of `npm test`, and all with `npm run faults -- --backups`. */
export function s3Programs(): Promise<S3Program[]> {
  const names =
    process.env["HOLDFAST_TEST_BACKUPS"] === "all" ? (["versitygw", "minio"] as const) : ["versitygw" as const];
  return Promise.all(names.map(s3Program));
}

/** Built at the first call. */
async function s3Program(name: S3Program["name"]): Promise<S3Program> {
  const imagesDir = imagesDirectory(process.env);
  const module = modules[name];
  // One of all tests builds it; concurrent tests wait for that.
  const isThere = async () => existsSync(goProgramDirectory(module, imagesDir)) || claimWork(name);
  await waitUntil(`the program of ${name} is built`, isThere, { withinMs: buildMs, everyMs: 500 });
  try {
    const progress = (line: string) => console.error(line);
    const directory = await ensureGoProgram(module, { imagesDir, uid: testUid, asRoot, progress });
    return { name, title: name, path: join(directory, name) };
  } catch (error) {
    if (error instanceof ImageImpossible)
      return { name, title: `${name} (skipped: ${error.message})`, path: undefined };
    throw error;
  }
}
