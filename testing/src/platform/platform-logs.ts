import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { expect } from "vitest";

/** Every log file of an installation, of its programs and of its machines. */
export function logFiles(directory: string): string[] {
  const machines = join(directory, "machines");
  const folders = [
    join(directory, "log"),
    ...list(machines).flatMap((id) => [join(machines, id), join(machines, id, "state", "log")]),
  ];
  return folders.flatMap((folder) =>
    list(folder)
      .filter((name) => /\.log(\.\d+)?$/.test(name))
      .map((name) => join(folder, name)),
  );
}

/** The end of each log, for the report of a failed test. `about` selects lines that contain it. */
export function lastLogLines(directory: string, count: number, about = ""): string {
  return logFiles(directory)
    .map((file) => {
      const lines = readOr(file)
        .split("\n")
        .filter((line) => line !== "" && line.includes(about));
      return lines.length === 0 ? "" : `--- ${file.slice(directory.length + 1)}\n${lines.slice(-count).join("\n")}\n`;
    })
    .join("");
}

/** Maximum size of the saved logs of one installation. */
const maxLogBytes = 2 << 20;

/**
 * Copies the ends of an installation's logs to the directory in which `npm test` stores logs of failed files, in a
 * folder named after the file's path below the root of the run; does nothing in other runs.
 */
export function saveLogs(directory: string): void {
  const { HOLDFAST_TEST_LOGS: logsDirectory, HOLDFAST_TEST_ROOT: root } = process.env;
  // Benches have no test.
  if (logsDirectory === undefined || root === undefined) return;
  const { testPath } = expect.getState();
  if (testPath === undefined) return;
  const into = join(logsDirectory, relative(root, testPath).replaceAll("/", "_"), basename(directory));
  const files = logFiles(directory);
  for (const file of files) {
    mkdirSync(into, { recursive: true });
    const text = readOr(file).slice(-Math.floor(maxLogBytes / files.length));
    writeFileSync(join(into, relative(directory, file).replaceAll("/", "_")), text);
  }
}

/**
 * Output of programs of the platform that crashed while they served. A killed program has no such output, and a program
 * that cannot start yet, because its port is busy or etcd is down, may exit and be restarted.
 */
export function crashesOf(directory: string): string[] {
  return ["controller", "dns"].flatMap((name) => {
    const text = readOr(join(directory, "log", `${name}.log`));
    const lives = text.split(new RegExp(`^holdfast: ${name} ended with `, "m"));
    return lives.flatMap((life, index) => {
      const end = lives[index + 1]?.split("\n")[0];
      if (end?.startsWith("code ") !== true || !/"msg":"(serving|dns server ready)"/.test(life)) return [];
      const output = life.split("\n").filter((line) => !line.startsWith("{"));
      return [`${name} ended with ${end}\n${output.slice(-30).join("\n")}`];
    });
  });
}

/** Names of files in a directory; empty if it does not exist, such as after the removal of its machine. */
function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function readOr(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
