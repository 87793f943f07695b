import { dyingWithParent } from "@holdfast/image/in-image.ts";
import { startTemporaryProcess, type TemporaryProcess } from "../platform/temporary-process.ts";

/**
 * Starts a program of the host in this directory, in a separate mount namespace: it has the current mounts, and is not
 * affected by later unmounts of the host.
 */
export function startMountNamespace(directory = "/"): Promise<TemporaryProcess> {
  const script = 'cd "$1" && echo ready && exec sleep infinity';
  return startTemporaryProcess(dyingWithParent(["unshare", "--mount", "sh", "-c", script, "sh", directory]), /ready/);
}
