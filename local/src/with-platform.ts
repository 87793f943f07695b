import { join } from "node:path";
import type { Clock } from "@holdfast/common/clock.ts";
import { cacheDirectory, imagesDirectory } from "@holdfast/image/node-image.ts";
import { createBlockClaims } from "./block-claims.ts";
import { openInstallation } from "./installation.ts";
import { createMachineHost } from "./create-machine-host.ts";
import { chownTo, layoutOf, makeDirectories } from "./layout.ts";
import type { Options } from "./options.ts";
import { createPlatform, type Platform } from "./platform.ts";
import type { PlatformParts } from "./platform-parts.ts";
import type { Programs } from "./programs.ts";
import { checkPorts } from "./ports.ts";
import { programUser } from "./program-user.ts";
import { advertisedListenerOf } from "./advertised-listener.ts";
import { openSecrets } from "./secrets.ts";
import { openSoftware } from "./software.ts";
import { takeSupervisorLock } from "./supervisor-lock.ts";
import { openTransportPki } from "./transport-pki.ts";
import { UserError } from "./user-error.ts";

export interface UpDeps {
  /** Root directory of the code. */
  readonly checkout: string;
  /** Entry points of the programs; builds what is missing. */
  programs(): Promise<Programs>;
  readonly environment: Readonly<Record<string, string>>;
  readonly asRoot: boolean;
  readonly clock: Clock & { sleep(ms: number): Promise<void> };
  /** Prints a line for the user. */
  print(line: string): void;
  /** Directory of the claims of loopback addresses, shared by all users of the host. */
  readonly registryDir: string;
}

/**
 * Opens the installation of a directory, creates what is missing, and runs the function with its platform under the
 * supervisor lock.
 */
export async function withPlatform<T>(
  options: Omit<Options, "command">,
  deps: UpDeps,
  signal: AbortSignal,
  run: (platform: Platform, parts: PlatformParts) => Promise<T>,
): Promise<T> {
  const { environment, clock, print, asRoot } = deps;
  const layout = layoutOf(options.dataDir);
  const imagesDir = imagesDirectory(environment);
  const software = await openSoftware({ imagesDir, environment, print, signal });
  const programs = await deps.programs();

  makeDirectories(layout);
  const lock = takeSupervisorLock(layout.run);
  if (!lock.taken)
    throw new UserError(
      `${layout.root} is in use: process ${lock.pid} runs this installation; Ctrl-C there or \`kill ${lock.pid}\` stops it`,
    );
  try {
    const claims = createBlockClaims(deps.registryDir, clock.now);
    const installation = await openInstallation(layout, claims, options);
    const advertised = await advertisedListenerOf(installation);
    const machineHost = createMachineHost(layout, installation, environment);
    await machineHost.install(print, signal);
    const user = programUser(installation.loopback_block, asRoot);
    if (asRoot) chownTo(user.uid, [layout.etcd, layout.history]);
    await checkPorts(installation.ports, clock, advertised?.listen);
    const secrets = openSecrets(layout.keys);
    const pki = await openTransportPki(layout.pki, { now: clock.now(), programOwner: asRoot ? user.uid : undefined });
    const compileCache = join(cacheDirectory(environment), "compile-cache");
    const parts = {
      layout,
      installation,
      secrets,
      pki,
      imagesDir,
      machineHost,
      advertised,
      programs,
      environment: { NODE_COMPILE_CACHE: compileCache, ...environment },
    };
    return await run(createPlatform({ parts, ...software, user, monotonicMs: clock.monotonicMs, print }), parts);
  } finally {
    lock.release();
  }
}
