import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { expect } from "vitest";

/** Every log file of an installation: its own programs' and its machines'. */
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

/** The end of each log, for a failed test to show. `about` keeps only lines that have it. */
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

/** Of one installation. */
const keptBytes = 2 << 20;

/**
 * Copies the ends of an installation's logs to where `npm test` keeps those of files that failed; nothing is kept where tests
 * run otherwise.
 */
export function keepLogs(directory: string): void {
  const kept = process.env["HOLDFAST_TEST_LOGS"];
  // Benches have no test.
  if (kept === undefined) return;
  const { testPath } = expect.getState();
  if (testPath === undefined) return;
  const path = relative(join(import.meta.dirname, "..", ".."), testPath);
  const into = join(kept, path.replaceAll("/", "_"), basename(directory));
  const files = logFiles(directory);
  for (const file of files) {
    mkdirSync(into, { recursive: true });
    const text = readOr(file).slice(-Math.floor(keptBytes / files.length));
    writeFileSync(join(into, relative(directory, file).replaceAll("/", "_")), text);
  }
}

/**
 * What programs of the platform said before they ended by themselves while they served. One that is killed says nothing,
 * and one that cannot start yet, for want of its port or of etcd, may end and be started again.
 */
export function crashesOf(directory: string): string[] {
  return ["controller", "dns"].flatMap((name) => {
    const text = readOr(join(directory, "log", `${name}.log`));
    const lives = text.split(new RegExp(`^holdfast: ${name} ended with `, "m"));
    return lives.flatMap((life, index) => {
      const end = lives[index + 1]?.split("\n")[0];
      if (end?.startsWith("code ") !== true || !/"msg":"(serving|dns server ready)"/.test(life)) return [];
      const said = life.split("\n").filter((line) => !line.startsWith("{"));
      return [`${name} ended with ${end}\n${said.slice(-30).join("\n")}`];
    });
  });
}

/** Nothing of what is not there, or goes with its machine while it is looked at. */
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
