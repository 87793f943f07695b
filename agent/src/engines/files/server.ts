import { filesRegion } from "@holdfast/common/engine-catalog/files.ts";
import type { EngineCommand, Instance } from "../engine-driver.ts";
import {
  adminSocket,
  bucketDirectory,
  healthPath,
  keysDirectory,
  rootDirectory,
  type Server,
  serverProgram,
  serverSocket,
  temporaryDirectory,
} from "./layout.ts";

/**
 * The server needs one account that may do everything. Nobody has its secret: it is random in each process,
 * and no argument or file has it.
 */
const withUnknownRoot =
  'ROOT_ACCESS_KEY=holdfast ROOT_SECRET_KEY=$(od -An -N32 -tx1 /dev/urandom | tr -d " \\n") exec "$@"';

/**
 * Repairs what a killed server left in the bucket, whose directory is the first argument. The completion of an upload
 * in parts renames the upload's directory to `<id>.<ETag>.inprogress`, where no request finds it later: the upload gets
 * its name back, so that it can be completed or aborted. Files beside the uploads are contents of unfinished requests.
 */
const withRecovery = `(
  cd "$1/${temporaryDirectory}" 2>/dev/null || exit 0
  for upload in multipart/*/*.inprogress; do [ ! -d "$upload" ] || mv -T -- "$upload" "\${upload%%.*}"; done
  for file in *; do [ ! -f "$file" ] || rm -f -- "$file"; done
)
shift
`;

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
    // The server takes what precedes it in the host for the bucket: it is in the public and in the private host name.
    ...(instance.spec.bucketDomain === "" ? [] : ["--virtual-domain", instance.spec.bucket]),
    // Only one of the servers writes, so that locks in its memory suffice.
    "posix", "--disable-object-lock-file",
    // Otherwise a new content is first linked under a longer name beside the object: names of 229 bytes and more could
    // not be replaced, and a killed server leaves that name as an object.
    "--disableotmp",
    rootDirectory(instance),
  ];
  // The keeper starts a server only when the former one has ended, and only the one for writers creates files.
  const script =
    server === "writers" ? [withRecovery + withUnknownRoot, "sh", bucketDirectory(instance)] : [withUnknownRoot, "sh"];
  return {
    argv: ["/bin/sh", "-c", ...script, ...argv],
    env: { LC_ALL: "C", TZ: "UTC" },
    cwd: rootDirectory(instance),
  };
}
