import type { GoProgram } from "@holdfast/image/artifact.ts";
import { versitygw } from "@holdfast/image/recipes/files.ts";
import { type TestGoProgram, testGoProgram } from "./go-program.ts";

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

/** An S3 server's program. */
export interface S3Program extends TestGoProgram {
  readonly name: keyof typeof modules;
}

/** The available S3 servers: the one of `npm test`, and all with `npm run faults -- --backups`. */
export function s3Programs(): Promise<S3Program[]> {
  const names =
    process.env["HOLDFAST_TEST_BACKUPS"] === "all" ? (["versitygw", "minio"] as const) : ["versitygw" as const];
  return Promise.all(names.map(async (name) => ({ name, ...(await testGoProgram(modules[name])) })));
}
