import { readdir, readFile, readlink } from "node:fs/promises";

const ignoredCodes = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM", "EINVAL"]);

/**
 * Mounts of all processes of this host, as `root` fields of proc_pid_mountinfo(5): paths within their file systems.
 * Reads each mount namespace once, except namespaces of other users, who have no mounts of images. Undefined without
 * /proc.
 */
export async function mountedDirectories(): Promise<Set<string> | undefined> {
  const roots = new Set<string>();
  const readNamespaces = new Set<string>();
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  if (pids.length === 0) return undefined;
  for (const pid of pids) {
    try {
      const namespace = await readlink(`/proc/${pid}/ns/mnt`);
      if (readNamespaces.has(namespace)) continue;
      const table = await readFile(`/proc/${pid}/mountinfo`, "utf8");
      readNamespaces.add(namespace);
      for (const line of table.split("\n")) roots.add(line.split(" ")[3] ?? "");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The process ended during the read, or belongs to another user.
      if (code === undefined || !ignoredCodes.has(code)) throw error;
    }
  }
  return roots;
}
