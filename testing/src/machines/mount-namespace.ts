import { dyingWithParent } from "@holdfast/image/in-image.ts";
import { startTemporaryProcess, type TemporaryProcess } from "../platform/temporary-process.ts";

/**
 * A program of the host in this directory, in a mount namespace of its own: it has the current mounts, and no later
 * unmount of the host reaches it.
 */
export function startMountNamespace(directory = "/"): Promise<TemporaryProcess> {
  const script = 'cd "$1" && echo ready && exec sleep infinity';
  return startTemporaryProcess(dyingWithParent(["unshare", "--mount", "sh", "-c", script, "sh", directory]), /ready/);
}
