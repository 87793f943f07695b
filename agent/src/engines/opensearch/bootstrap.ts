import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { createCertificates } from "../member-certificates.ts";
import {
  certificatesOf,
  configDirectory,
  dataDirectory,
  engineDirectory,
  formingFile,
  formingNumbers,
  javaProgram,
  loggingName,
  ownNumber,
  repositoryDirectory,
  securityDirectory,
  serverProgram,
  settingsName,
  temporaryDirectory,
} from "./layout.ts";
import { linkTo } from "./link-to.ts";
import { firstSecurity } from "./roles.ts";

/** Prepares everything for a start: certificates, directories and the first contents of the security index. */
export async function bootstrap(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const isNew = !existsSync(dataDirectory(instance));
  await prepareDirectory(deps, instance, signal);
  // A snapshot that was interrupted does not continue.
  await deps.runAsEngine(["rm", "-rf", repositoryDirectory(instance)], { signal });
  if (isNew) await markForming(deps, instance, [ownNumber(instance)], signal);
}

/** Has the members with these numbers form a cluster at their first start. */
export async function markForming(
  deps: EngineDeps,
  instance: Instance,
  numbers: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  const { runAsEngine: run } = deps;
  await forgetForming(deps, instance, signal);
  const marker = formingFile(instance, numbers);
  await run(["touch", marker], { signal });
  await run(["sync", marker, engineDirectory(instance)], { signal });
  await run(["mkdir", "-p", "-m", "0750", dataDirectory(instance)], { signal });
}

/** Has this member form no cluster: it has one, or joins one. */
export async function forgetForming(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  const directory = engineDirectory(instance);
  const markers = (await readdir(directory)).filter((name) => formingNumbers(name) !== undefined);
  if (markers.length === 0) return;
  await run(["rm", "-f", ...markers.map((name) => join(directory, name))], { signal });
  await run(["sync", directory], { signal });
}

/** Creates what the engine has beside its data. Each step may be repeated. */
export async function prepareDirectory(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { runAsEngine: run } = deps;
  const directories = [engineDirectory, configDirectory, temporaryDirectory].map((of) => of(instance));
  for (const directory of directories)
    if (!existsSync(directory)) await run(["mkdir", "-m", "0750", directory], { signal });
  await createCertificates(deps, instance, certificatesOf(instance), signal);
  const { config, software } = instance.paths;
  await linkTo(deps, serverProgram(instance), javaProgram(software), signal);
  await linkTo(deps, join(configDirectory(instance), settingsName), join(config, settingsName), signal);
  await linkTo(deps, join(configDirectory(instance), "log4j2.properties"), join(config, loggingName), signal);
  if (!existsSync(securityDirectory(instance))) await writeSecurity(deps, instance, signal);
}

/** The files appear together or not at all. They have no user: the engine ships one whose password is public. */
async function writeSecurity({ runAsEngine: run }: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const directory = securityDirectory(instance);
  const partial = `${directory}.partial`;
  await run(["rm", "-rf", partial], { signal });
  await run(["mkdir", "-m", "0750", partial], { signal });
  for (const [name, content] of Object.entries(firstSecurity()))
    await run(["tee", join(partial, `${name}.yml`)], { input: JSON.stringify(content), signal });
  await run(["sync", "--file-system", partial], { signal });
  await run(["mv", partial, directory], { signal });
}
