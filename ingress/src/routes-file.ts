import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { create, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type RouteBatch, RouteBatchSchema } from "@holdfast/proto/holdfast/ingress/v1/ingress_pb.ts";

/**
 * The routes that were served last, on disk, for a start without controllers. Only this process reads them: they have
 * the keys of login forms.
 */
export interface RoutesFile {
  /** The stored routes; undefined if the file is absent or damaged. */
  read(): Promise<RouteBatch | undefined>;
  /** Resolves when the routes are on disk; a crash leaves the previous ones. */
  write(state: Pick<RouteBatch, "routes" | "controllers">): Promise<void>;
}

export async function openRoutesFile(directory: string, log: Log): Promise<RoutesFile> {
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const file = join(directory, "routes.json");
  return {
    async read() {
      const text = await readIfExists(file);
      if (text === undefined) return undefined;
      try {
        return fromJsonString(RouteBatchSchema, text.toString("utf8"));
      } catch (error) {
        log.error("damaged file of routes ignored", { file, error });
        return undefined;
      }
    },
    write: ({ routes, controllers }) =>
      writeDurably(
        file,
        toJsonString(RouteBatchSchema, create(RouteBatchSchema, { reset: true, synced: true, routes, controllers })),
      ),
  };
}
