import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createRegistry, type DescFile, type Registry } from "@bufbuild/protobuf";

/** The registry of all descriptors of the public API. */
export async function publicRegistry(): Promise<Registry> {
  return createRegistry(...(await publicProtos()));
}

/** File descriptors of the generated code of the public API. */
async function publicProtos(): Promise<DescFile[]> {
  const folder = join(import.meta.dirname, "../../../proto/gen/holdfast/v1");
  const modules = await Promise.all(
    (await readdir(folder)).sort().map((name) => import(join(folder, name)) as Promise<Record<string, unknown>>),
  );
  return modules.flatMap((module) =>
    Object.entries(module).flatMap(([name, value]) => (name.startsWith("file_") ? [value as DescFile] : [])),
  );
}
