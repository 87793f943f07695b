import { readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";

const groupTrees = "/sys/fs/cgroup";

/**
 * Removes the control groups of a project's containers that nothing runs in: what watches over a container takes them away, and
 * leaves them when it is killed itself. `root` is where the host's trees are: one, or a directory for each.
 */
export function removeContainerGroups(project: string, root = groupTrees): void {
  const ours = new RegExp(`^lxc\\.(payload|monitor)\\.${project}_hf-`);
  for (const tree of [root, ...directoriesIn(root).map((name) => join(root, name))])
    for (const name of directoriesIn(tree)) if (ours.test(name)) removeGroup(join(tree, name));
}

/** With those below it, which are first to go. */
function removeGroup(directory: string): void {
  for (const name of directoriesIn(directory)) removeGroup(join(directory, name));
  try {
    rmdirSync(directory);
  } catch (error) {
    // Something runs in it, or it went by itself.
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
