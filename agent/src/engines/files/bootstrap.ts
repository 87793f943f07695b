import { chmod, mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { Instance } from "../engine-driver.ts";
import { bucketDirectory, rootDirectory } from "./layout.ts";

/**
 * Creates the bucket. The engine, of the same group, works in the bucket, but cannot change the directory above it.
 * Data that were restored under another name of the bucket get this one.
 */
export async function bootstrap(instance: Instance): Promise<void> {
  const root = rootDirectory(instance);
  const bucket = bucketDirectory(instance);
  await mkdir(root, { recursive: true });
  await chmod(root, 0o750);
  const [present] = (await readdir(root)).filter((name) => !name.startsWith("."));
  if (present === undefined) await mkdir(bucket);
  else if (present !== instance.spec.bucket) await rename(join(root, present), bucket);
  await chmod(bucket, 0o770);
  await syncPath(root);
}
