import { existsSync } from "node:fs";
import { mkdir, readFile, rename, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { GoModule, GoProgram, SourceEdit } from "./artifact.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { hostSettings, openToolTree, toolDigest, type ToolOptions, type ToolTree } from "./tool-tree.ts";
import { inWorkDirectory } from "./work-directory.ts";

const suite = "sid";
const toolPackages = ["util-linux", "mount", "ca-certificates", "golang-go"];
const settings = ["GOPROXY", "GOSUMDB", "GONOSUMDB"];

/**
 * Returns a directory that has only the program. An absent program is built by Debian's tools in a separate tree, never
 * by tools of the host. It is linked statically, and runs in any image. Safe for concurrent processes. Throws
 * ImageImpossible.
 */
export async function ensureGoProgram(program: GoProgram, options: ToolOptions): Promise<string> {
  const { imagesDir, progress } = options;
  const destination = goProgramDirectory(program, imagesDir);
  const now = new Date();
  // A new time: sweeps remove a program that was unused for weeks.
  if (existsSync(destination)) {
    await utimes(destination, now, now).catch(() => undefined);
    return destination;
  }
  const name = basename(program.package);
  return inWorkDirectory(imagesDir, `program-${name}`, async (work) => {
    for (const directory of ["bin", "cache", "modules"]) await mkdir(join(work, directory));
    const tools = await openToolTree({ suite, packages: toolPackages }, work, options);
    progress(`building ${name} ${program.version} from its module (some minutes)`);
    await build(program, tools, work, options.signal);
    if (options.asRoot) await runProgram("chown", ["-R", "0:0", join(work, "bin")]);
    await rename(join(work, "bin"), destination).catch((error: unknown) => {
      // Another process was faster.
      if (!existsSync(destination)) throw error;
    });
    return destination;
  });
}

/** Directory of the program once it is built. */
export function goProgramDirectory(program: GoProgram, imagesDir: string): string {
  return join(imagesDir, `program-${basename(program.package)}-${toolDigest(program, toolPackages)}`);
}

async function build(
  { module, version, sum, package: target, dropReplaces = [], edits = [] }: GoProgram,
  tools: ToolTree,
  work: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const env = {
    ...hostSettings(settings),
    GOBIN: join(work, "bin"),
    GOCACHE: join(work, "cache"),
    GOMODCACHE: join(work, "modules"),
    GOFLAGS: "-trimpath -buildvcs=false -modcacherw",
    GOTOOLCHAIN: "local",
    CGO_ENABLED: "0",
  };
  const run = (...argv: string[]) => tools.run(argv, env);
  try {
    const download = JSON.parse(await run("go", "mod", "download", "-json", `${module}@${version}`)) as {
      readonly Sum?: string;
      readonly Dir?: string;
    };
    if (download.Sum !== sum)
      throw new Error(`the Go module ${module} ${version} has the sum ${download.Sum} instead of ${sum}`);
    if (dropReplaces.length === 0 && edits.length === 0) {
      await run("go", "install", `${target}@${version}`);
      return;
    }
    // `go install` of a version refuses a go.mod with replacements; a copy of the module without them is built instead.
    const source = join(work, "source");
    await run("cp", "-r", "--no-preserve=mode", download.Dir ?? "", source);
    await editSource(source, edits);
    if (dropReplaces.length > 0)
      await run("go", "-C", source, "mod", "edit", ...dropReplaces.map((each) => `-dropreplace=${each}`));
    await run("go", "-C", source, "install", "-mod=mod", `.${target.slice(module.length)}`);
  } catch (error) {
    signal?.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    throw new ImageImpossible(`${module} ${version} could not be built: ${why.slice(0, 2_000)}`, { cause: error });
  }
}

/** Makes the changes in the copy of a module. Throws if the text of one is not in its file exactly once. */
export async function editSource(source: string, edits: readonly SourceEdit[]): Promise<void> {
  for (const { file, before, after } of edits) {
    const path = join(source, file);
    const parts = (await readFile(path, "utf8")).split(before);
    if (parts.length !== 2)
      throw new Error(`${file} has this text ${parts.length - 1} times instead of once: ${before.slice(0, 200)}`);
    await writeFile(path, parts.join(after));
  }
  for (const file of new Set(edits.map((edit) => edit.file))) {
    const path = join(source, file);
    await writeFile(path, `${editedNotice}${await readFile(path, "utf8")}`);
  }
}

/** The licenses of sources ask for a notice in changed files. */
const editedNotice = "// This file was changed for Holdfast.\n";

/** The modules inside a built program, the standard library among them. `work` has a copy of the program. */
export async function modulesOf(name: string, work: string, options: ToolOptions): Promise<GoModule[]> {
  const tools = await openToolTree({ suite, packages: toolPackages }, work, options);
  return parseModules(await tools.run(["go", "version", "-m", join(work, name)], { GOTOOLCHAIN: "local" }));
}

/**
 * Modules in the output of `go version -m`, except the program's module. A replacement is listed instead of its module.
 */
export function parseModules(text: string): GoModule[] {
  const toolchain = /: go(\S+)/.exec(text.split("\n", 1)[0] ?? "")?.[1];
  const found: GoModule[] = toolchain === undefined ? [] : [{ name: "std", version: toolchain }];
  for (const line of text.split("\n")) {
    const [, mark = "", name = "", version = "", sum = ""] = line.split("\t");
    if (mark !== "dep" && mark !== "=>") continue;
    if (mark === "=>") found.pop();
    found.push({ name, version, ...(sum !== "" && { sum }) });
  }
  return found;
}
