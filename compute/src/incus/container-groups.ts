import { readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";

const groupTrees = "/sys/fs/cgroup";

/**
 * Removes the empty control groups of a project's containers. The monitor of a container removes them itself, unless it
 * is killed. `root` has the host's trees: one, or a directory for each controller.
 */
export function removeContainerGroups(project: string, root = groupTrees): void {
  const pattern = new RegExp(`^lxc\\.(payload|monitor)\\.${project}_hf-`);
  for (const tree of [root, ...directoriesIn(root).map((name) => join(root, name))])
    for (const name of directoriesIn(tree)) if (pattern.test(name)) removeGroup(join(tree, name));
}

/** Removes a group after its children. */
function removeGroup(directory: string): void {
  for (const name of directoriesIn(directory)) removeGroup(join(directory, name));
  try {
    rmdirSync(directory);
  } catch (error) {
    // A process runs in the group, or another process removed it.
    if (!["EBUSY", "ENOENT", "ENOTEMPTY"].some((code) => hasCode(error, code))) throw error;
  }
}

function directoriesIn(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).flatMap((each) => (each.isDirectory() ? [each.name] : []));
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return [];
    throw error;
  }
}
