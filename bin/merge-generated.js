// Merges of generated files: the lines that merge are merged, in a conflict those of the current branch win, and
// `npm run generate` prints the file again from the merged protos and tables. Until then `npm run check` is red.
import { spawnSync } from "node:child_process";

export const driver = "holdfast-generated";

/** git runs it with a shell, and takes its first file as the result. */
const command =
  'git merge-file -q --ours %A %O %B; echo "holdfast: %P is generated: npm run generate after the merge" >&2';

/** Configures the merge in the repository of a checkout. A checkout without git has no merges. */
export function configureMerge(root) {
  const git = (...args) => spawnSync("git", ["config", "--local", ...args], { cwd: root, encoding: "utf8" });
  const name = `merge.${driver}.driver`;
  const { status, stdout } = git("--get", name);
  // 0: present, 1: absent; all others: no repository, or no git.
  if (status !== 1 && (status !== 0 || stdout.trim() === command)) return;
  git(name, command);
  git(`merge.${driver}.name`, "generated code and pages");
}
