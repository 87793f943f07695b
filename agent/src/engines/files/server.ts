import { filesRegion } from "@holdfast/common/engine-catalog/files.ts";
import type { EngineCommand, Instance } from "../engine-driver.ts";
import {
  adminSocket,
  healthPath,
  keysDirectory,
  rootDirectory,
  type Server,
  serverProgram,
  serverSocket,
} from "./layout.ts";

/**
 * The server needs one account that may do everything. Nobody has its secret: it is random in each process,
 * and no argument or file has it.
 */
const withUnknownRoot =
  'ROOT_ACCESS_KEY=holdfast ROOT_SECRET_KEY=$(od -An -N32 -tx1 /dev/urandom | tr -d " \\n") exec "$@"';

/**
 * Command of one of the two servers. Keys are read for each request, so a revoked key is refused as soon as the file
 * changes.
 */
export function serverCommand(instance: Instance, server: Server): EngineCommand {
  const { software } = instance.paths;
  // biome-ignore format: a line an option
  const argv = [
    serverProgram(software),
    "--port", serverSocket(instance, server),
    "--admin-port", adminSocket(instance, server),
    "--socket-perm", "0660",
    "--region", filesRegion,
    "--iam-dir", keysDirectory(instance, server),
    "--iam-cache-disable",
    "--health", healthPath,
    "--quiet",
    ...(server === "readers" ? ["--readonly"] : []),
    ...(instance.spec.bucketDomain === "" ? [] : ["--virtual-domain", instance.spec.bucketDomain]),
    // Only one of the servers writes, so that locks in its memory suffice.
    "posix", "--disable-object-lock-file", rootDirectory(instance),
  ];
  return {
    argv: ["/bin/sh", "-c", withUnknownRoot, "sh", ...argv],
    env: { LC_ALL: "C", TZ: "UTC" },
    cwd: rootDirectory(instance),
  };
}
