import type { Companion, EngineCommand, Instance } from "../engine-driver.ts";
import { dataDirectory } from "./layout.ts";

const env = { LC_ALL: "C", TZ: "UTC" };

export function command(instance: Instance): EngineCommand {
  const { software, config } = instance.paths;
  return { argv: [`${software}/bin/valkey-server`, `${config}/valkey.conf`], env, cwd: dataDirectory(instance) };
}

/** The only process that listens for clients. */
export function listener(instance: Instance): Companion {
  const { software, config } = instance.paths;
  return {
    name: "listener",
    command: { argv: [`${software}/sbin/haproxy`, "-db", "-f", `${config}/listener.cfg`], env, cwd: "/" },
    // It leaves SIGTERM to the kernel, which drops it for the first process of a namespace.
    stop: { signal: "SIGUSR1", graceMs: 2_000 },
  };
}
