import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type DataPlaneName, dataPlaneNames } from "@holdfast/common/data-planes.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { digestOfFiles, storedBuild } from "@holdfast/common/stored-build.ts";

/** Node programs that a supervisor starts. */
export type ProgramName = DataPlaneName | "controller" | "recovery" | "host" | "acme";

/** Path of each program's entry point. */
export type Programs = Readonly<Record<ProgramName, string>>;

/** Patterns of the files below the checkout that determine the bundles; the lock file names the packages' versions. */
export const programSources = [
  "{common,compute,controller,dns,egress,feed,gateway,host,https,image,inference,ingress,issuer,local,mtls,registry,store}/src/**/*.ts",
  "proto/gen/**/*.ts",
  "{local/bundle.ts,pnpm-lock.yaml}",
];

/** Bundles of earlier states of the code that are kept: a platform that runs may still load from its own. */
const maxStored = 4;

/** The programs as source files of a checkout. */
export function sourcePrograms(checkout: string): Programs {
  const planes = Object.fromEntries(dataPlaneNames.map((name) => [name, join(checkout, name, "src", "main.ts")]));
  return {
    ...(planes as Record<DataPlaneName, string>),
    controller: join(checkout, "controller", "src", "main.ts"),
    recovery: join(checkout, "controller", "src", "operator", "recovery", "main.ts"),
    host: join(checkout, "host", "src", "main.ts"),
    acme: join(checkout, "local", "src", "acme", "main.ts"),
  };
}

/**
 * The programs of a checkout, bundled into its `local/dist` at the first start of the same code. The source files run,
 * which start slower, with `HOLDFAST_PROGRAMS=source`, in a checkout that this process cannot write, and where the
 * bundler fails.
 */
export async function openPrograms(
  checkout: string,
  environment: Readonly<Record<string, string | undefined>>,
  print: (line: string) => void,
): Promise<Programs> {
  const sources = sourcePrograms(checkout);
  if (lookUp(environment, "HOLDFAST_PROGRAMS") === "source" || !canWrite(join(checkout, "local"))) return sources;
  // The bundle contains paths of the checkout.
  const digest = digestOfFiles(checkout, programSources, [process.version, checkout]);
  const stored = join(checkout, "local", "dist");
  const build = async (directory: string) => {
    print("bundling the platform's programs (about 5 seconds)");
    await promisify(execFile)(process.execPath, [join(checkout, "local", "bundle.ts"), directory]);
  };
  const read = async (directory: string) => {
    await access(join(directory, "controller.mjs"));
    return directory;
  };
  try {
    await storedBuild(stored, digest, { build, read }, maxStored);
  } catch (error) {
    print(`the programs cannot be bundled, so their sources run: ${String(error)}`);
    return sources;
  }
  return Object.fromEntries(Object.keys(sources).map((name) => [name, join(stored, digest, `${name}.mjs`)])) as Record<
    ProgramName,
    string
  >;
}

function canWrite(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
