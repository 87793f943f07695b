import { dyingWithParent } from "@holdfast/image/in-image.ts";
import { startTemporaryProcess, type TemporaryProcess } from "../platform/temporary-process.ts";

/**
 * A program of the host, at work in this directory, with a view of its own on the host's mounts: those of now, and no unmount of
 * the host reaches it.
 */
export function startHostView(directory = "/"): Promise<TemporaryProcess> {
  const script = 'cd "$1" && echo ready && exec sleep infinity';
  return startTemporaryProcess(dyingWithParent(["unshare", "--mount", "sh", "-c", script, "sh", directory]), /ready/);
}
